"""Reads and writes JSON with orjson, which accepts the same JSON as llama-server's parser, and
writes a list of a million ids in milliseconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from ggtok.native.json_size import json_size
from ggtok.server.refusals import Refusal

# Lists, objects and members. For millions, a parser holds the GIL for seconds.
MOST_PARTS = 250_000
_ROWS = 8192
_BOM = b"\xef\xbb\xbf"


def parse_body(data: bytes) -> Any:
    """Parses the JSON in a body. Raises Refusal if it isn't valid, or has too many parts."""
    # As in llama-server, a BOM may precede the JSON, and a NUL ends it.
    data = data.removeprefix(_BOM).partition(b"\0")[0]
    check_parts([data])
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as e:
        raise Refusal(f"the body isn't valid JSON: {e}") from None


def check_parts(texts: Sequence[bytes]) -> None:
    """Raises Refusal if the JSON in these texts of a body has too many parts."""
    # A short text has few parts. Counting holds no lock, unlike bytes.count.
    if sum(map(len, texts)) > MOST_PARTS and sum(map(json_size, texts)) > MOST_PARTS:
        raise Refusal(f"the body has more than {MOST_PARTS} lists, objects and members: split it")


def parse_all(data: bytes) -> Any:
    """Parses the JSON in a body that :func:`parse` accepts. Each object becomes a list of its names
    and values, so that a name that occurs several times keeps all of its values."""
    return json.loads(data.removeprefix(_BOM).partition(b"\0")[0], object_pairs_hook=Pairs)


class Pairs(list[tuple[str, Any]]):
    """The names and values of an object, in the order of the body."""


def dump(value: Any) -> bytes:
    """Writes JSON in UTF-8. Arrays may be NumPy arrays."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # a text, such as a file's name, isn't UTF-8
        return orjson.dumps(_valid(value), option=orjson.OPT_SERIALIZE_NUMPY)


def rows(array: Any) -> orjson.Fragment:
    """Converts a NumPy array of rows to JSON for :func:`dump`, a part at a time, because orjson
    uses 100 bytes of memory for each row of an array."""
    parts = [b"["]  # joined once, since copying the whole would hold the GIL for long
    for at in range(0, len(array), _ROWS):
        parts += dump(array[at : at + _ROWS])[1:-1], b","
    parts[max(1, len(parts) - 1) :] = [b"]"]
    return orjson.Fragment(b"".join(parts))


def _valid(value: Any) -> Any:
    """Copies a value, replacing bytes that aren't UTF-8 with U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_valid(key): _valid(item) for key, item in value.items()}
    return [_valid(item) for item in value] if isinstance(value, list) else value
