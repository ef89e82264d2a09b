"""Which part of a text each token is: ``ggtok tokenize --offsets``."""

from __future__ import annotations

import argparse

import ggtok
from ggtok.cli import progress, writing
from ggtok.cli.arguments import Parser
from ggtok.cli.status import UsageError

TYPE_CHECKING = False  # importing typing takes time
if TYPE_CHECKING:
    from typing import Any


def add_unit(parser: Parser, *, utf16: bool) -> None:
    more = ", or UTF-16 code units, as in JavaScript" if utf16 else ""
    parser.add_argument(
        "--unit",
        choices=["byte", "char", "utf16"] if utf16 else ["byte", "char"],
        default="byte",
        help=f"what places in a text count: bytes of UTF-8 (default), or code points{more}",
    )


def decoded(text: bytes, name: str = "the text") -> str:
    """The text, whose code points are to be counted."""
    try:
        return text.decode()
    except UnicodeDecodeError as e:
        raise UsageError(f"{name} is not UTF-8 (byte {e.start}): use --unit byte") from None


def write(
    args: argparse.Namespace,
    tok: ggtok.Tokenizer,
    text: bytes,
    *,
    add_special: bool,
    parse_special: bool,
) -> None:
    with progress.waiting(args.quiet, "encoding"):
        ids, spans = tok.encode_with_offsets(
            text if args.unit == "byte" else decoded(text),
            add_special=add_special,
            parse_special=parse_special,
            unit=args.unit,
        )
    rows = [(id, start, end) for id, (start, end) in zip(ids, spans.tolist(), strict=True)]
    if args.json:
        _write_json(tok, rows, args.unit)
        return
    if args.ids:
        listed = ", ".join(map(str, map(list, rows)))
        writing.write(b"[%b]\n" % listed.encode())
    else:
        _write_lines(tok, rows)
    if args.show_count:
        writing.write(b"Total number of tokens: %d\n" % len(ids))


def _write_lines(tok: ggtok.Tokenizer, rows: list[tuple[int, int, int]]) -> None:
    """The list of tokens, with a column for their places, as slices are written."""
    visible = writing.visible if writing.to_terminal() else bytes
    width = len(str(max((end for _, _, end in rows), default=0)))
    for id, start, end in rows:
        piece = visible(writing.printed(tok.token_to_piece(id)))
        writing.write(b"%6d  %*d:%-*d -> '%b'\n" % (id, width, start, width, end, piece))


def _write_json(tok: ggtok.Tokenizer, rows: list[tuple[int, int, int]], unit: str) -> None:
    tokens = [
        {**json_token(id, tok.token_to_piece(id)), "start": start, "end": end}
        for id, start, end in rows
    ]
    ids = [id for id, _, _ in rows]
    writing.write_json({"count": len(ids), "unit": unit, "ids": ids, "tokens": tokens})


def json_token(id: int, piece: bytes) -> dict[str, Any]:
    """A token for JSON."""
    try:
        return {"id": id, "piece": piece.decode()}
    except UnicodeDecodeError:  # half a character: give the bytes too
        return {"id": id, "piece": piece.decode("utf-8", "replace"), "bytes": list(piece)}
