"""``ggtok extract``: a model's vocabulary without its weights."""

from __future__ import annotations

import argparse

from ggtok.cli import writing
from ggtok.cli.arguments import (
    Command,
    Parser,
    add_force,
    add_json,
    add_words,
    check_output,
    no_second_model,
    no_words,
    telling,
)
from ggtok.cli.status import UsageError


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_words(parser)
    parser.add_argument(
        "-m", "--model", metavar="MODEL", help="the model, in place of the argument"
    )
    add_force(parser)


def run(args: argparse.Namespace) -> None:
    if args.model is None:
        if not args.words:
            raise UsageError("no model: give a GGUF file or a model's name")
        args.model = args.words.pop(0)
    elif len(args.words) > 1:
        no_second_model(args.model, args.words[0])
    if not args.words:
        raise UsageError("no file to write: give its name after the model's")
    out = args.words.pop(0)
    no_words(args)
    check_output(out)
    from ggtok.vocabularies.read import extract

    with telling(args):
        size = extract(args.model, out, force=args.force)
    if args.json:
        writing.write_json({"path": out, "bytes": size}, indent=2)
    else:
        writing.write_made(out)


COMMAND = Command(
    usage="MODEL OUT.gguf",
    details="OUT has all key/values of the model with their values, in little-endian order, "
    "without tensors and without what says that a model is split. ggtok and llama.cpp (with "
    "vocab_only) load it as they load the model. Of a model that is elsewhere only the beginning "
    "is fetched.",
    words={
        "MODEL": "a GGUF file, one of a split model, or a model's name (see 'ggtok --help')",
        "OUT.gguf": "the file to write; it appears when it is complete",
    },
    examples=[
        "ggtok extract model.gguf vocabulary.gguf",
        "ggtok extract model-00001-of-00005.gguf vocabulary.gguf",
        "ggtok extract hf://user/repo/model.gguf vocabulary.gguf",
    ],
    add_arguments=add_arguments,
    run=run,
)
