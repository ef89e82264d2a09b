"""``ggtok truncate``: cuts texts to their first or last N tokens."""

from __future__ import annotations

import argparse

import ggtok
from ggtok.cli import input_texts, progress, standard_output
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import (
    MODEL_FIRST,
    add_cutting_options,
    add_model,
    load_model,
    take_model,
    texts_to_cut,
)
from ggtok.text.truncate import beginning


def add_arguments(parser: Parser) -> None:
    add_cutting_options(parser)
    parser.add_argument(
        "--side",
        choices=["right", "left"],
        default="right",
        help="the side to cut: right keeps the beginning (default), left the end",
    )
    add_model(parser)


def run(args: argparse.Namespace) -> int:
    take_model(args)
    files = texts_to_cut(args)
    if len(files) > 1 and not (args.json or args.null):
        raise UsageError("to separate several texts, give --null or --json")
    tok = load_model(args)
    return input_texts.each(files, lambda path: _truncate(tok, path, args))


def _truncate(tok: ggtok.Tokenizer, path: str, args: argparse.Namespace) -> None:
    add_special = not args.no_special
    if args.side == "right":
        text, truncated = _beginning(tok, path, args.tokens, add_special)
        start = 0
    else:
        whole = input_texts.file(path)
        with progress.waiting(args.quiet, "cutting"):
            text = tok.truncate(whole, args.tokens, side="left", add_special=add_special)
        start = len(whole) - len(text)
        truncated = start > 0
    if args.json:
        line = {
            "path": standard_output.utf8(path),
            "start": start,
            "end": start + len(text),
            "n_tokens": tok.count(text, add_special=add_special),
            "truncated": truncated,
            "text": text.decode("utf-8", "replace"),
        }
        standard_output.write_json(line)
    elif args.null:
        input_texts.warn_of_nul(path, text)
        standard_output.write(text + b"\0")
    else:
        standard_output.write_text(text)


def _beginning(tok: ggtok.Tokenizer, path: str, n: int, add_special: bool) -> tuple[bytes, bool]:
    """Returns the beginning of a text, and whether the text continues. Reads no further than
    necessary, because the text may be endless."""
    data = bytearray()
    enough = 0
    with input_texts.blocks(path) as blocks:
        for block in blocks:
            data += block
            if len(data) < enough:
                continue
            found = beginning(tok._loaded, bytes(data), n, add_special)
            if found is not None:
                return found, True
            enough = 2 * len(data)
    text = tok.truncate(bytes(data), n, add_special=add_special)
    return text, len(text) < len(data)


HELP = Help(
    usage="[MODEL] [FILE]...",
    details="Prints the longest beginning of the text, cut at a token boundary and not inside a "
    "character, that encodes to at most N tokens, including added ones; with --side left, the "
    "longest end. Texts of special tokens are plain text.",
    words={"MODEL": MODEL_FIRST, "FILE": "a file, or - for standard input (the default)"},
    examples=[
        "ggtok truncate model.gguf -n 2000 prompt.txt",
        "dmesg | ggtok truncate model.gguf -n 4000 --side left",
        "ggtok truncate -m model.gguf -n 500 *.md --json",
    ],
)
