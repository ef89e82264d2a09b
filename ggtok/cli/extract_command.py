"""``ggtok extract``: copies a model's vocabulary without its weights."""

from __future__ import annotations

import argparse

from ggtok.cli import standard_output
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import (
    add_model_name,
    add_output_options,
    check_output,
    no_words,
    reporting_waits,
    take_named_model,
)


def add_arguments(parser: Parser) -> None:
    add_model_name(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="the file, instead of an argument")
    add_output_options(parser)


def run(args: argparse.Namespace) -> None:
    take_named_model(args, needed=args.output is None)
    if not args.words and args.output is None:
        raise UsageError("no file to write: give its name after the model's, or use -o")
    out = args.words.pop(0) if args.output is None else args.output
    no_words(args)
    check_output(out)
    from ggtok.vocabularies.read import extract

    with reporting_waits(args):
        size = extract(args.model, out, force=args.force)
    value = {"path": standard_output.utf8(out), "bytes": size}
    standard_output.write_result(args, value, standard_output.lines_of_files(out))


HELP = Help(
    usage="MODEL OUT.gguf",
    details="OUT contains all key/values of the model, in little-endian order, except those that "
    "say that the model is split, and no tensors. ggtok and llama.cpp (with vocab_only) load it "
    "like the model. Of a model elsewhere, only the beginning is fetched.",
    words={
        "MODEL": "a GGUF file, a part of a split model, or a model's name (see 'ggtok --help')",
        "OUT.gguf": "the file to write; it appears when it is complete",
    },
    examples=[
        "ggtok extract model.gguf vocabulary.gguf",
        "ggtok extract model-00001-of-00005.gguf vocabulary.gguf",
        "ggtok extract hf://user/repo/model.gguf vocabulary.gguf",
    ],
)
