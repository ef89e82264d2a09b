"""``ggtok export``: a model's vocabulary in another library's format."""

from __future__ import annotations

import argparse

import ggtok
from ggtok.cli import writing
from ggtok.cli.arguments import Command, Parser, add_force, add_inexact, add_words, no_words
from ggtok.cli.status import UsageError


def add_arguments(parser: Parser) -> None:
    add_words(parser)
    add = parser.add_argument
    add("-m", "--model", metavar="MODEL", help="the model, in place of the argument")
    add("--to", metavar="FILE", help="tokenizer.json, *.tiktoken, *.model or *.gguf")
    add_inexact(parser)
    add_force(parser)


def run(args: argparse.Namespace) -> None:
    if args.model is None:
        if not args.words:
            raise UsageError("no model: give a GGUF file or a model's name")
        args.model = args.words.pop(0)
    no_words(args)
    if args.to is None:
        raise UsageError("no file to write: give --to FILE")
    ggtok.vocabulary(args.model).save(args.to, inexact=args.inexact, force=args.force)
    writing.write_made(args.to)


COMMAND = Command(
    usage="MODEL --to FILE",
    details="The file's name decides the format. If the other library couldn't give llama.cpp's "
    "ids, nothing is written, and the error says why; --inexact writes the file if only "
    "some texts differ.",
    words={"MODEL": "a GGUF file, or a model's name (see 'ggtok --help')"},
    examples=[
        "ggtok export model.gguf --to tokenizer.json",
        "ggtok export model.gguf --to ranks.tiktoken",
        "ggtok export 40GB.gguf --to vocabulary.gguf",
    ],
    add_arguments=add_arguments,
    run=run,
)
