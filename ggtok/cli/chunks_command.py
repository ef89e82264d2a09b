"""``ggtok chunks``: cuts texts into chunks of at most N tokens."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

import ggtok
from ggtok.base.escape import printable
from ggtok.cli import input_texts, progress, standard_output
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser, token_count
from ggtok.cli.shared_options import (
    MODEL_FIRST,
    add_cutting_options,
    add_model,
    add_unit,
    load_model,
    take_model,
    texts_to_cut,
)


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add_cutting_options(parser)
    add(
        "--overlap",
        type=token_count,
        default=0,
        metavar="N",
        help="tokens repeated from the previous chunk",
    )
    add("--prefix", default="", metavar="TEXT", help="count this text with each chunk")
    add(
        "--at",
        metavar="TEXT",
        action="append",
        help=r"prefer to end chunks after this text (with \n \t \xHH), if it is in the chunk's "
        "last quarter; may be repeated, best first",
    )
    add_unit(parser, utf16=False)
    add_model(parser)


def run(args: argparse.Namespace) -> int:
    take_model(args)
    files = texts_to_cut(args)
    if args.overlap < 0:
        raise UsageError(f"--overlap must not be negative, but is {args.overlap}")
    if "" in (args.at or ()):
        raise UsageError("--at must not be empty")
    tok = load_model(args)
    return input_texts.each(files, lambda path: _cut_file(tok, path, args))


def _cut_file(tok: ggtok.Tokenizer, path: str, args: argparse.Namespace) -> None:
    data = input_texts.file(path)
    name = input_texts.name_of(path)
    text = input_texts.text_of(data, name) if args.unit == "char" else data
    with progress.waiting(args.quiet, f"cutting {printable(os.fsencode(name))}"):
        chunks = tok.chunks(
            text,
            args.tokens,
            overlap=args.overlap,
            prefix=os.fsencode(args.prefix),
            add_special=not args.no_special,
            at=args.at and list(map(input_texts.unescape_argument, args.at)),
        )
    if args.null:
        input_texts.warn_of_nul(path, data)
        for chunk in chunks:
            standard_output.write(_bytes(text[chunk.start : chunk.end]) + b"\0")
        return
    for line in _json(path, text, chunks) if args.json else _chunk_lines(path, chunks):
        standard_output.write(line)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _json(path: str, text: str | bytes, chunks: list[ggtok.Chunk]) -> Iterator[bytes]:
    name = standard_output.utf8(path)
    for start, end, n_tokens in chunks:
        part = _bytes(text[start:end]).decode("utf-8", "replace")
        line = {"path": name, "start": start, "end": end, "n_tokens": n_tokens, "text": part}
        yield standard_output.json_text(line) + b"\n"


def _chunk_lines(path: str, chunks: list[ggtok.Chunk]) -> Iterator[bytes]:
    """Yields a line for each chunk: start, end, number of tokens, file."""
    width = len(str(chunks[-1].end)) if chunks else 0
    tokens = len(str(max((chunk.n_tokens for chunk in chunks), default=0)))
    name = printable(os.fsencode(path))
    for start, end, n_tokens in chunks:
        yield f"{start:>{width}}  {end:>{width}}  {n_tokens:>{tokens}}  {name}\n".encode()


HELP = Help(
    usage="[MODEL] [FILE]...",
    details="Prints each chunk's start, end and number of tokens, including the tokens that the "
    "vocabulary adds to each; with --json also its text, as JSON lines; with --null only the "
    "texts. Characters are never cut. Texts of special tokens are plain text.",
    words={"MODEL": MODEL_FIRST, "FILE": "a file, or - for standard input (the default)"},
    examples=[
        "ggtok chunks model.gguf -n 512 book.txt",
        r"ggtok chunks model.gguf -n 512 --overlap 64 --at '\n\n' --at '. ' --json *.md",
        "ggtok chunks model.gguf -n 512 -0 book.txt | xargs -0 -n 1 embed",
        "pdftotext paper.pdf - | ggtok chunks model.gguf -n 512 --prefix 'passage: ' --json",
    ],
)
