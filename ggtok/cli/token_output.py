"""The output of ``ggtok tokenize``: ids, pieces, positions, colours, JSON."""

from __future__ import annotations

import argparse
import os
from array import array
from collections.abc import Callable, Iterable, Iterator

import ggtok
from ggtok.cli import progress, standard_output
from ggtok.cli.input_texts import text_of
from ggtok.text.shown import color_token, visible_lines

TYPE_CHECKING = False  # importing typing takes time
if TYPE_CHECKING:
    from typing import Any

AT_ONCE = 1 << 16  # the most ids in a list, which takes eight times as much memory as an array


def write(args: argparse.Namespace, tok: ggtok.Tokenizer, batches: Iterator[list[int]]) -> None:
    """Writes a text's ids, which arrive in batches."""
    if args.json:
        _write_json(tok, batches)
        return
    if args.ids:
        count = _write_ids(batches)
    elif _wants_color(args.color):
        count = _write_colored(tok, batches)
    else:
        count = _write_pieces(tok, batches)
    _write_count(args, count)


def _write_count(args: argparse.Namespace, count: int) -> None:
    if args.show_count:
        standard_output.write(b"Total number of tokens: %d\n" % count)


def _write_ids(batches: Iterable[list[int]]) -> int:
    """Writes the ids as a list such as ``[1, 2, 3]``. Returns their number."""
    standard_output.write(b"[")
    count = _write_joined(batches, lambda ids: repr(ids)[1:-1].encode())
    standard_output.write(b"]\n")
    return count


def _write_joined(batches: Iterable[list[int]], text: Callable[[list[int]], bytes]) -> int:
    count = 0
    for ids in batches:
        if ids:
            standard_output.write((b", " if count else b"") + text(ids))
            count += len(ids)
    return count


def _as_printf(tok: ggtok.Tokenizer, id: int) -> bytes:
    """Returns what llama-tokenize's printf("%s") prints of a piece: the part before a NUL."""
    piece = tok.token_to_piece(id).split(b"\0", 1)[0]
    return standard_output.visible(piece) if standard_output.to_terminal() else piece


def _write_pieces(tok: ggtok.Tokenizer, batches: Iterable[list[int]]) -> int:
    """Writes a line for each id, and returns the number of ids."""
    lines: dict[int, bytes] = {}
    count = 0
    for ids in batches:
        for id in set(ids).difference(lines):
            lines[id] = b"%6d -> '%b'\n" % (id, _as_printf(tok, id))
        standard_output.write(b"".join(map(lines.__getitem__, ids)))
        count += len(ids)
    return count


def _json_token(tok: ggtok.Tokenizer, id: int) -> dict[str, Any]:
    piece = tok.token_to_piece(id)
    try:
        return {"id": id, "piece": piece.decode()}
    except UnicodeDecodeError:  # the piece is part of a character, so add its bytes
        return {"id": id, "piece": piece.decode("utf-8", "replace"), "bytes": list(piece)}


def _write_json(tok: ggtok.Tokenizer, batches: Iterable[list[int]]) -> None:
    """Writes the count, then the ids, then the pieces.

    The count is known only at the end. Until then, only the ids are kept, on disk if there are
    many.
    """
    from tempfile import SpooledTemporaryFile

    with SpooledTemporaryFile(1 << 24) as spool:
        count = 0
        for ids in batches:
            spool.write(array("i", ids).tobytes())
            count += len(ids)

        def stored() -> Iterator[list[int]]:
            spool.seek(0)
            while data := spool.read(4 * AT_ONCE):
                yield array("i", data).tolist()

        texts: dict[int, bytes] = {}

        def tokens(ids: list[int]) -> bytes:
            for id in set(ids).difference(texts):
                texts[id] = standard_output.json_text(_json_token(tok, id))
            return b", ".join(map(texts.__getitem__, ids))

        standard_output.write(b'{"count": %d, "ids": [' % count)
        _write_joined(stored(), lambda ids: repr(ids)[1:-1].encode())
        standard_output.write(b'], "tokens": [')
        _write_joined(stored(), tokens)
        standard_output.write(b"]}\n")


# ---- positions ----


def write_offsets(
    args: argparse.Namespace, tok: ggtok.Tokenizer, text: bytes, **special: bool
) -> None:
    """Encodes a text, and writes each id with its span."""
    with progress.waiting(args.quiet, "encoding"):
        ids, spans = tok.encode_with_offsets(
            text if args.unit == "byte" else text_of(text, "the text"), unit=args.unit, **special
        )
    rows = [(id, start, end) for id, (start, end) in zip(ids, spans.tolist(), strict=True)]
    if args.json:
        tokens = [{**_json_token(tok, id), "start": start, "end": end} for id, start, end in rows]
        listed = [id for id, _, _ in rows]
        standard_output.write_json(
            {"count": len(ids), "unit": args.unit, "ids": listed, "tokens": tokens}
        )
        return
    if args.ids:
        standard_output.write(b"%a\n" % list(map(list, rows)))
    else:
        width = len(str(max((end for _, _, end in rows), default=0)))
        line = b"%6d  %*d:%-*d -> '%b'\n"
        for id, start, end in rows:
            standard_output.write(line % (id, width, start, width, end, _as_printf(tok, id)))
    _write_count(args, len(ids))


# ---- colours ----


def _wants_color(when: str) -> bool:
    """Whether to colour the output. `when` is always, never, or auto: on a terminal that supports
    it, unless NO_COLOR is set (no-color.org)."""
    if when != "auto":
        return when == "always"
    return (
        standard_output.to_terminal()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def _write_colored(tok: ggtok.Tokenizer, batches: Iterable[list[int]]) -> int:
    """Writes the text with a background for each token, and returns the number of ids."""
    special = tok.special_ids
    pieces: dict[int, list[str]] = {}
    count = 0
    at_start = True
    for ids in batches:
        out = []
        for id in ids:
            lines = pieces.get(id)
            if lines is None:
                lines = pieces[id] = visible_lines(tok.token_to_piece(id))
            out.append(color_token(lines, count, id in special))
            if lines != [""]:
                at_start = not lines[-1]
            count += 1
        standard_output.write("".join(out).encode())
    if not at_start:
        standard_output.write(b"\n")
    return count
