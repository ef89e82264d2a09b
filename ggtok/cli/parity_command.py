"""``ggtok parity``: compares a model's ids with those from the installed llama.cpp."""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import ggtok
from ggtok.base.escape import number, printable
from ggtok.cli import input_texts, progress, standard_output
from ggtok.cli.messages import FINDING, OK, UsageError, warn
from ggtok.cli.parser import Help, Parser, token_count
from ggtok.cli.shared_options import MODEL, add_model, overrides, reporting_waits, take_only_model
from ggtok.errors import VocabWarning

if TYPE_CHECKING:
    from ggtok.inspect.parity.compare import ParityComparison, ParityDifference

_MAX_DIFFERENCES = 5  # the most differences to show
_LIBRARY_VARIABLE = "GGTOK_LLAMA_LIBRARY"
_MAX_IDS = 8  # the most ids to show for a difference, from the first id that differs


def add_arguments(parser: Parser) -> None:
    add_model(parser)
    add = parser.add_argument
    add("--texts", type=token_count, metavar="N", help="compare N generated texts (default: 200)")
    add("--seed", type=int, metavar="S", help="generate other texts (default: 1)")
    add("--text", metavar="FILE", help="compare the lines of this file instead ('-': stdin)")
    add(
        "--library",
        metavar="PATH",
        default=os.environ.get(_LIBRARY_VARIABLE) or None,
        help="compare with this llama.cpp: a shared library, such as libllama.so (default: "
        f"${_LIBRARY_VARIABLE}, or an installed package)",
    )


def run(args: argparse.Namespace) -> int:
    take_only_model(args)
    if args.text is not None and (args.texts, args.seed) != (None, None):
        raise UsageError("--text excludes --texts and --seed")
    n, seed = (200 if args.texts is None else args.texts), (1 if args.seed is None else args.seed)
    if n < 1:
        raise UsageError("--texts must be at least 1")
    from ggtok.inspect.parity import compare
    from ggtok.vocabularies.read import metadata_of, vocabulary_only

    with reporting_waits(args):
        data = metadata_of(args.model)[1]
    given = overrides(args) or {}
    if args.pre is not None:
        given["tokenizer.ggml.pre"] = args.pre
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)  # llama.cpp warns, too
        tok = ggtok.load(data, overrides=given)
    if tok.vocab_type == "NONE":
        raise UsageError(f"{args.model} has no vocabulary")
    if args.text is not None:
        texts = iter(input_texts.file(args.text).splitlines(keepends=True))
    else:
        texts = compare.generate_texts(tok, n, seed)
    with progress.waiting(args.quiet, "starting llama.cpp") as say:
        llama, package = compare.connect(args.library)
        with llama, tempfile.TemporaryDirectory(prefix="ggtok-parity-") as folder:
            path = os.path.join(folder, "vocabulary.gguf")
            with open(path, "wb") as file:
                file.write(vocabulary_only(data))
            vocab = llama.load(path, given)
            report = _report(say, None if args.text is not None else n)
            found = compare.compare(tok, vocab, texts, _MAX_DIFFERENCES, report)
            reasons = compare.reasons(tok, llama, found)
    if found.deaths and not args.json:
        warn(
            f"llama.cpp crashed on {found.deaths} of the texts, or refused them; these are not "
            "compared"
        )
    lines = [*_comparison_lines(tok, package, found), *(f"known: {reason}" for reason in reasons)]
    standard_output.write_result(args, {**_as_json(package, found), "known": reasons}, lines)
    return FINDING if found.different else OK


def _report(say: Callable[[str], None], total: int | None) -> Callable[[int], None]:
    """Returns a callback for :func:`compare.compare` that reports the number of compared texts."""
    of = "" if total is None else f" of {total}"
    return lambda n: say(f"{n}{of} texts compared")


def _as_json(package: str, found: ParityComparison) -> dict[str, Any]:
    return {
        "llama.cpp": package,
        "texts": found.texts,
        "differences": found.different,
        "deaths": found.deaths,
        "first": [
            {
                "text": difference.text.decode("utf-8", "surrogateescape"),
                "add_special": difference.add_special,
                "parse_special": difference.parse_special,
                "llama.cpp": difference.llama_cpp,
                "ggtok": difference.ggtok,
            }
            for difference in found.first
        ],
    }


def _comparison_lines(tok: ggtok.Tokenizer, package: str, found: ParityComparison) -> list[str]:
    texts = f"{number(found.texts, 'text')}, each encoded in 4 ways, with the llama.cpp of"
    result = number(found.different, "difference") if found.different else "no difference"
    more = found.different - len(found.first)
    return [
        f"{texts} {package}: {result}",
        *(line for difference in found.first for line in _difference_lines(tok, difference)),
        *([f"... and {more} more"] if more > 0 else []),
    ]


def _difference_lines(tok: ggtok.Tokenizer, difference: ParityDifference) -> list[str]:
    theirs, ours = difference.llama_cpp, difference.ggtok
    flags = [name for name in ("add_special", "parse_special") if getattr(difference, name)]
    head = ", ".join([repr(printable(difference.text, 200)), *flags])
    if isinstance(ours, str):
        return [head, f"  llama.cpp  {_show_ids(tok, theirs)}", f"  ggtok      {printable(ours)}"]
    at = next((i for i, (a, b) in enumerate(zip_longest(theirs, ours)) if a != b), 0)
    return [
        f"{head}, from token {at} on",
        f"  llama.cpp  {_show_ids(tok, theirs[at:])}",
        f"  ggtok      {_show_ids(tok, ours[at:])}",
    ]


def _show_ids(tok: ggtok.Tokenizer, ids: list[int]) -> str:
    """Lists ids with their pieces. llama.cpp may produce -1, which has no piece."""
    listed = [
        f"{id} {printable(tok.token_to_piece(id))!r}" if 0 <= id < tok.n_tokens else str(id)
        for id in ids[:_MAX_IDS]
    ]
    return " ".join(listed) + (" ..." if len(ids) > _MAX_IDS else "") or "-"


HELP = Help(
    usage="MODEL",
    details="Generates texts that are easy to get wrong, and encodes them with ggtok and with the "
    "llama.cpp of the package xllamacpp or llama-cpp-python, whichever is installed, or with the "
    "library that --library names: with and without added special tokens, and parsed ones. Known "
    "differences between builds are explained. llama.cpp runs in a separate process, so that "
    "its crashes don't stop the comparison.",
    words={"MODEL": MODEL},
    examples=[
        "ggtok parity model.gguf",
        "ggtok parity hf://user/repo/file.gguf --texts 2000 --seed 7",
        "ggtok parity model.gguf --text corpus.txt",
        "ggtok parity model.gguf --library llama.cpp/build/bin/libllama.so",
    ],
    finding="ids differ",
)
