"""``ggtok truncate``: the beginning or the end of texts, by a number of tokens."""

from __future__ import annotations

import argparse
import os

import ggtok
from ggtok.cli import progress, reading, texts, writing
from ggtok.cli.arguments import MODEL_FIRST, Command, Parser, add_json, add_model, load, take_model
from ggtok.cli.status import UsageError
from ggtok.text.truncate import beginning


def add_arguments(parser: Parser) -> None:
    texts.add_arguments(parser)
    parser.add_argument(
        "--side",
        choices=["right", "left"],
        default="right",
        help="where to cut: right keeps the beginning (default), left the end",
    )
    add_json(parser)
    add_model(parser)


def run(args: argparse.Namespace) -> int:
    take_model(args)
    files = texts.paths(args)
    if len(files) > 1 and not (args.json or args.null):
        raise UsageError("several texts would become one: give --null or --json")
    tok = load(args)
    return texts.each(files, lambda path: _truncate(tok, path, args))


def _truncate(tok: ggtok.Tokenizer, path: str, args: argparse.Namespace) -> None:
    add_special = not args.no_special
    if args.side == "right":
        text, more = _beginning(tok, path, args.tokens, add_special)
        start = 0
    else:
        whole = reading.file(path)
        with progress.waiting(args.quiet, "cutting"):
            text = tok.truncate(whole, args.tokens, side="left", add_special=add_special)
        start = len(whole) - len(text)
        more = start > 0
    if args.json:
        line = {
            "path": os.fsencode(path).decode("utf-8", "surrogateescape"),
            "start": start,
            "end": start + len(text),
            "n_tokens": tok.count(text, add_special=add_special),
            "truncated": more,
            "text": text.decode("utf-8", "replace"),
        }
        writing.write_json(line)
    elif args.null:
        texts.warn_of_nul(path, text)
        writing.write(text + b"\0")
    else:
        writing.write_text(text)


def _beginning(tok: ggtok.Tokenizer, path: str, n: int, add_special: bool) -> tuple[bytes, bool]:
    """The beginning, and whether there is more. No more is read than it takes to know it: the
    text may be without end."""
    data = bytearray()
    enough = 0
    with reading.blocks(path) as blocks:
        for block in blocks:
            data += block
            if len(data) < enough:
                continue
            found = beginning(tok._native, bytes(data), n, add_special)
            if found is not None:
                return found, True
            enough = 2 * len(data)
    text = tok.truncate(bytes(data), n, add_special=add_special)
    return text, len(text) < len(data)


COMMAND = Command(
    usage="[MODEL] [FILE]...",
    details="Prints the greatest number of the text's first (last) tokens whose text has at most "
    "N tokens and is cut inside no character; the whole text, if it fits. Counted are the tokens "
    "that are added to a text, too. Texts of special tokens are plain text.",
    words={
        "MODEL": MODEL_FIRST,
        "FILE": "a file, or - for standard input, which is read if there is none",
    },
    examples=[
        "ggtok truncate model.gguf -n 2000 prompt.txt",
        "dmesg | ggtok truncate model.gguf -n 4000 --side left",
        "ggtok truncate -m model.gguf -n 500 *.md --json",
    ],
    add_arguments=add_arguments,
    run=run,
)
