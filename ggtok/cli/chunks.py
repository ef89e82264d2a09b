"""``ggtok chunks``: texts cut into chunks of at most so many tokens."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

import ggtok
from ggtok.base.escape import shown
from ggtok.cli import escapes, progress, reading, texts, writing
from ggtok.cli.arguments import MODEL_FIRST, Command, Parser, add_json, add_model, load, take_model
from ggtok.cli.offsets import add_unit, decoded
from ggtok.cli.status import UsageError


def add_arguments(parser: Parser) -> None:
    texts.add_arguments(parser)
    add = parser.add_argument
    add("--overlap", type=int, default=0, metavar="N", help="tokens shared with the chunk before")
    add("--prefix", default="", metavar="TEXT", help="what will be put before each; it is counted")
    add(
        "--at",
        metavar="TEXT",
        action="append",
        help=r"where a chunk may rather end, with \n \t \xHH: after this text, if that is in its "
        "last quarter; may be given several times, the best first",
    )
    add_unit(parser, utf16=False)
    add_json(parser)
    add_model(parser)


def run(args: argparse.Namespace) -> int:
    take_model(args)
    files = texts.paths(args)
    if args.overlap < 0:
        raise UsageError(f"--overlap must not be negative, but is {args.overlap}")
    if "" in (args.at or ()):
        raise UsageError("--at needs a text, but it is empty")
    tok = load(args)
    return texts.each(files, lambda path: _cut(tok, path, args))


def _cut(tok: ggtok.Tokenizer, path: str, args: argparse.Namespace) -> None:
    data = reading.file(path)
    name = "standard input" if path == "-" else path
    text = decoded(data, name) if args.unit == "char" else data
    with progress.waiting(args.quiet, f"cutting {shown(os.fsencode(name))}"):
        chunks = tok.chunks(
            text,
            args.tokens,
            overlap=args.overlap,
            prefix=os.fsencode(args.prefix),
            add_special=not args.no_special,
            at=args.at and [escapes.replace(os.fsencode(separator)) for separator in args.at],
        )
    if args.null:
        texts.warn_of_nul(path, data)
        for chunk in chunks:
            writing.write(_utf8(text[chunk.start : chunk.end]) + b"\0")
        return
    for line in _json(path, text, chunks) if args.json else _lines(path, chunks):
        writing.write(line)


def _utf8(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _json(path: str, text: str | bytes, chunks: list[ggtok.Chunk]) -> Iterator[bytes]:
    name = os.fsencode(path).decode("utf-8", "surrogateescape")
    for start, end, n_tokens in chunks:
        part = _utf8(text[start:end]).decode("utf-8", "replace")
        line = {"path": name, "start": start, "end": end, "n_tokens": n_tokens, "text": part}
        yield writing.json_text(line) + b"\n"


def _lines(path: str, chunks: list[ggtok.Chunk]) -> Iterator[bytes]:
    """A line for each, in columns: start, end, number of tokens, file."""
    width = len(str(chunks[-1].end)) if chunks else 0
    tokens = len(str(max((chunk.n_tokens for chunk in chunks), default=0)))
    name = shown(os.fsencode(path))
    for start, end, n_tokens in chunks:
        yield f"{start:>{width}}  {end:>{width}}  {n_tokens:>{tokens}}  {name}\n".encode()


COMMAND = Command(
    usage="[MODEL] [FILE]...",
    details="Prints where each chunk starts and ends and how many tokens it has, with those that "
    "are added, by itself. With --json a line of JSON for each, which has its text, too; with "
    "--null the texts. Chunks are cut inside no character. Texts of special tokens are plain text.",
    words={
        "MODEL": MODEL_FIRST,
        "FILE": "a file, or - for standard input, which is read if there is none",
    },
    examples=[
        "ggtok chunks model.gguf -n 512 book.txt",
        r"ggtok chunks model.gguf -n 512 --overlap 64 --at '\n\n' --at '. ' --json *.md",
        "ggtok chunks model.gguf -n 512 -0 book.txt | xargs -0 -n 1 embed",
        "pdftotext paper.pdf - | ggtok chunks model.gguf -n 512 --prefix 'passage: ' --json",
    ],
    add_arguments=add_arguments,
    run=run,
)
