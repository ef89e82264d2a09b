"""Reads fields of JSON objects as llama-server does.

A field that is missing, null or of another type counts as the default. A value that isn't an object
has no fields.
"""

from __future__ import annotations

from typing import Any

from ggtok.server.errors import Refusal

_HALF = 1 << 31


def has(value: Any, name: str) -> bool:
    return isinstance(value, dict) and name in value


def text(value: Any, name: str, default: str = "") -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else default


def flag(value: Any, name: str, default: bool = False) -> bool:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, bool) else default


def anything(value: Any, name: str, default: Any = None) -> Any:
    found = value.get(name) if isinstance(value, dict) else None
    return default if found is None else found


def token_id(value: Any) -> int:
    """Converts a number to 32 bits as C++ does on x86-64. Raises Refusal for anything else."""
    if isinstance(value, float):
        return int(value) if -_HALF - 1 < value < _HALF else -_HALF
    if not isinstance(value, int):
        raise Refusal(f"an id must be a number, not {kind(value)}")
    return (value + _HALF) % (2 * _HALF) - _HALF


def token_ids(value: Any, name: str) -> list[int]:
    """Converts an array of numbers to ids. Raises Refusal for anything else."""
    if not isinstance(value, list):
        raise Refusal(f"{name} must be an array, not {kind(value)}")
    return [token_id(item) for item in value]


def quoted(value: Any, most: int = 80) -> str:
    """Returns a value for a message: a text's first `most` characters or a number, quoted, and the
    type of any other value, which may be large or deeply nested."""
    if isinstance(value, str):
        return repr(value[:most]) + ("..." if len(value) > most else "")
    return repr(value) if isinstance(value, (bool, int, float)) else kind(value)


_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array"}


def kind(value: Any) -> str:
    """Returns JSON's name for the type of a value."""
    return "null" if value is None else _KINDS.get(type(value), "an object")
