"""``ggtok export``: writes a model's vocabulary in another library's format."""

from __future__ import annotations

import argparse
import os

import ggtok
from ggtok.base.escape import number
from ggtok.cli import standard_output
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import add_model_name, add_output_options, no_words, take_named_model
from ggtok.vocabularies.spelling import TYPES, UNUSED


def add_arguments(parser: Parser) -> None:
    add_model_name(parser)
    help = "the file to write: tokenizer.json, *.tiktoken, *.model or *.gguf; or a folder"
    parser.add_argument("--to", "-o", "--output", metavar="OUT", help=help)
    add_output_options(parser, inexact=True)
    help = "write the published expressions, for libraries that recognize only these"
    parser.add_argument("--published", action="store_true", help=help)


def run(args: argparse.Namespace) -> None:
    take_named_model(args, needed=0)
    no_words(args)
    if args.to is None:
        raise UsageError("no file to write: give --to FILE, or --to DIR/")
    vocabulary = ggtok.vocabulary(args.model)
    options = {"inexact": args.inexact, "force": args.force, "published": args.published}
    paths = [args.to]
    if args.to.endswith(("/", os.sep)) or os.path.isdir(args.to):
        paths = vocabulary.save_pretrained(args.to, **options)
    else:
        vocabulary.save(args.to, **options)
    sizes = [os.path.getsize(path) for path in paths]
    notes = _notes(vocabulary) if any(path.endswith(".json") for path in paths) else []
    value = {"path": standard_output.utf8(args.to), "bytes": sum(sizes), "notes": notes}
    standard_output.write_result(args, value, standard_output.lines_of_files(*paths) + notes)


def _notes(vocabulary: ggtok.Vocabulary) -> list[str]:
    """Says which tokens have another type after a conversion of the file. A warning names the
    unused ones, which become ordinary tokens."""
    from ggtok.vocabularies.export.to_tokenizer_json import changed_types

    changes = {types: ids for types, ids in changed_types(vocabulary).items() if types[0] != UNUSED}
    if not changes:
        return []
    names = {type: name for name, type in TYPES.items()}
    listed = ", ".join(
        f"{number(len(ids), 'token')} from {names.get(before, before)} to {names[after]}"
        for (before, after), ids in changes.items()
    )
    return [f"types that 'ggtok convert' would change: {listed}"]


HELP = Help(
    usage="MODEL --to FILE|DIR/",
    details="The file's name selects the format. A folder gets the files that transformers' "
    "AutoTokenizer loads. If the other library can't produce llama.cpp's ids, nothing is written, "
    "and the error says why; --inexact writes the file if only some texts differ.",
    words={"MODEL": "a GGUF file, or a model's name (see 'ggtok --help')"},
    examples=[
        "ggtok export model.gguf --to tokenizer.json",
        "ggtok export model.gguf --to ranks.tiktoken",
        "ggtok export 40GB.gguf --to vocabulary.gguf",
        "ggtok export model.gguf --to tokenizer/",
        "ggtok export model.gguf --to tokenizer/ --published",
    ],
)
