"""``ggtok parity``: a model's ids against those of the llama.cpp that is installed."""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import ggtok
from ggtok.base.escape import number, shown
from ggtok.cli import progress, reading, writing
from ggtok.cli.arguments import (
    MODEL,
    Command,
    Parser,
    add_json,
    add_model,
    overrides,
    take_only_model,
    telling,
)
from ggtok.cli.messages import warn
from ggtok.cli.status import FINDING, OK, UsageError
from ggtok.errors import VocabWarning

if TYPE_CHECKING:
    from ggtok.inspect.parity.compare import Comparison, Difference

_SHOWN = 5  # differences
_IDS = 8  # of them, from the first that differs


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_model(parser)
    add = parser.add_argument
    add("--texts", type=int, metavar="N", help="compare so many generated texts (default: 200)")
    add("--seed", type=int, metavar="S", help="generate other texts (default: 1)")
    add("--text", metavar="FILE", help="compare the lines of this file instead ('-': stdin)")


def run(args: argparse.Namespace) -> int:
    take_only_model(args)
    if args.text is not None and (args.texts, args.seed) != (None, None):
        raise UsageError("--text takes the place of --texts and --seed")
    n, seed = (200 if args.texts is None else args.texts), args.seed or 1
    if n < 1:
        raise UsageError("--texts must be at least 1")
    from ggtok.inspect.parity import compare
    from ggtok.vocabularies.read import metadata_of, vocabulary_only

    with telling(args):
        data = metadata_of(args.model)[1]
    given = overrides(args) or {}
    if args.pre is not None:
        given["tokenizer.ggml.pre"] = args.pre
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)  # llama.cpp does the same
        tok = ggtok.load(data, overrides=given)
    if tok.vocab_type == "NONE":
        raise UsageError(f"{args.model} has no vocabulary")
    if args.text is not None:
        texts = iter(reading.file(args.text).splitlines(keepends=True))
    else:
        texts = compare.generated(tok, n, seed)
    with progress.waiting(args.quiet, "starting llama.cpp") as say:
        llama, package = compare.connect()
        with llama, tempfile.TemporaryDirectory(prefix="ggtok-parity-") as folder:
            path = os.path.join(folder, "vocabulary.gguf")
            with open(path, "wb") as file:
                file.write(vocabulary_only(data))
            vocab = llama.load(path, given)
            report = _report(say, None if args.text is not None else n)
            found = compare.compare(tok, vocab, texts, _SHOWN, report)
    _write(args, tok, package, found)
    return FINDING if found.different else OK


def _report(say: Callable[[str], None], total: int | None) -> Callable[[int], None]:
    """What :func:`compare.compare` calls with the number of texts that it has compared."""
    of = "" if total is None else f" of {total}"
    return lambda n: say(f"{n}{of} texts compared")


def _write(args: argparse.Namespace, tok: ggtok.Tokenizer, package: str, found: Comparison) -> None:
    if args.json:
        writing.write_json(
            {
                "llama.cpp": package,
                "texts": found.texts,
                "differences": found.different,
                "deaths": found.deaths,
                "first": [_as_dict(difference) for difference in found.first],
            },
            indent=2,
        )
        return
    if found.deaths:
        warn(
            f"llama.cpp crashed on {found.deaths} of the texts, or refused them; they aren't "
            "compared"
        )
    ways = f"{number(found.texts, 'text')}, each encoded in 4 ways, with the llama.cpp of {package}"
    result = number(found.different, "difference") if found.different else "no difference"
    writing.write_line(f"{ways}: {result}")
    for difference in found.first:
        for line in _lines(tok, difference):
            writing.write_line(line)
    if found.different > len(found.first):
        writing.write_line(f"... and {found.different - len(found.first)} more")


def _as_dict(difference: Difference) -> dict[str, Any]:
    return {
        "text": difference.text.decode("utf-8", "surrogateescape"),
        "add_special": difference.add_special,
        "parse_special": difference.parse_special,
        "llama.cpp": difference.llama_cpp,
        "ggtok": difference.ggtok,
    }


def _lines(tok: ggtok.Tokenizer, difference: Difference) -> list[str]:
    theirs, ours = difference.llama_cpp, difference.ggtok
    flags = [name for name in ("add_special", "parse_special") if getattr(difference, name)]
    head = f"{shown(difference.text, 200)!r}{', ' if flags else ''}{', '.join(flags)}"
    if isinstance(ours, str):
        return [head, f"  llama.cpp  {_ids(tok, theirs)}", f"  ggtok      {shown(ours)}"]
    at = next((i for i, (a, b) in enumerate(zip_longest(theirs, ours)) if a != b), 0)
    return [
        f"{head}, from token {at} on",
        f"  llama.cpp  {_ids(tok, theirs[at:])}",
        f"  ggtok      {_ids(tok, ours[at:])}",
    ]


def _ids(tok: ggtok.Tokenizer, ids: list[int]) -> str:
    """Ids and their pieces; llama.cpp may emit -1."""
    listed = [
        f"{id} {shown(tok.token_to_piece(id))!r}" if 0 <= id < tok.n_tokens else str(id)
        for id in ids[:_IDS]
    ]
    return " ".join(listed) + (" ..." if len(ids) > _IDS else "") or "-"


COMMAND = Command(
    usage="MODEL",
    details="Texts that are easy to get wrong are generated, and encoded by ggtok and by the "
    "llama.cpp of the package xllamacpp or llama-cpp-python, whichever is installed: with and "
    "without added and parsed special tokens. llama.cpp runs in a separate process, so that a "
    "crash of it ends nothing else.",
    words={"MODEL": MODEL},
    examples=[
        "ggtok parity model.gguf",
        "ggtok parity hf://user/repo/file.gguf --texts 2000 --seed 7",
        "ggtok parity model.gguf --text corpus.txt",
    ],
    add_arguments=add_arguments,
    run=run,
    finding="ids differ",
)
