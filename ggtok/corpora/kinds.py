"""Files named .json: JSON lines, as many corpora call them so, or a text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ggtok.corpora.documents import BOM
from ggtok.corpora.fields import Fields
from ggtok.corpora.sources import Source
from ggtok.corpora.streams import Stream
from ggtok.errors import Argument, InvalidValueError, Wording

LOOK = 256 << 10  # bytes, decompressed, of a file's beginning that decide


def decided(sources: Iterable[Source], fields: Fields) -> list[Source]:
    """The sources, each of a kind that can be read.

    Raises:
        InvalidValueError: a file may be either, or holds records in another form.
    """
    return [
        replace(source, kind=_kind(source, fields)) if source.kind == "json" else source
        for source in sources
    ]


def _kind(source: Source, fields: Fields) -> str:
    """JSON lines, if two lines begin an object, or if the only one is an object with the fields."""
    start, is_whole = _start(source)
    if start[:1] == b"[" and _is_record(start[1:].lstrip(), fields):
        raise InvalidValueError(
            Wording(
                f"{source.path}: an array of records, not a line for each: 'jq -c .[]' makes such "
                "lines; ",
                *(Argument("kind", "'text'"), " takes the file as a text"),
            )
        )
    line, newline, rest = start.partition(b"\n")
    if start[:1] != b"{":
        return "text"
    if not newline and not is_whole:
        raise InvalidValueError(
            Wording(
                f"{source.path}: its first line is too long to tell JSON lines from a text: pass ",
                *(Argument("kind", "'jsonl'"), " or ", Argument("kind", "'text'")),
            )
        )
    return "jsonl" if rest.lstrip()[:1] == b"{" or _is_record(line, fields) else "text"


def _start(source: Source) -> tuple[bytes, bool]:
    """The beginning of a file, without white space before it, and whether that is all."""
    start = b""
    with Stream(source) as stream:
        for block in stream.blocks():
            start += block
            if len(start) > LOOK:
                return start[:LOOK].removeprefix(BOM).lstrip(), False
    return start.removeprefix(BOM).lstrip(), True


def _is_record(text: bytes, fields: Fields) -> bool:
    """Whether it begins with an object that has the fields."""
    try:
        record: Any = json.JSONDecoder().raw_decode(text.decode("utf-8", "replace"))[0]
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and fields.fault(record) is None
