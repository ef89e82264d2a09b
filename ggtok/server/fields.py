"""Reads fields of JSON objects.

As in llama-server, a field that is missing, null or of another type counts as the default, and a
value that isn't an object has no fields. The functions from `object_of` on are strict: they refuse
other types.
"""

from __future__ import annotations

from typing import Any

from ggtok import Tokenizer
from ggtok.native import arguments
from ggtok.server.refusals import Refusal

_HALF = 1 << 31


def has(value: Any, name: str) -> bool:
    return isinstance(value, dict) and name in value


def text_field(value: Any, name: str, default: str = "") -> str:
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


def object_of(body: Any) -> dict[str, Any]:
    """Returns a body that is an object. Raises Refusal for anything else."""
    if not isinstance(body, dict):
        raise Refusal(f"the body must be an object, not {kind(body)}")
    return body


def typed_field(fields: dict[str, Any], name: str, wanted: type) -> Any:
    """Returns a field. Raises Refusal if it is missing or has another type."""
    value = fields.get(name)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise Refusal(f"{name} must be {_NAMES[wanted]}, not {kind(value)}")
    return value


def optional(fields: dict[str, Any], name: str, wanted: type) -> Any:
    return None if fields.get(name) is None else typed_field(fields, name, wanted)


def truth(fields: dict[str, Any], name: str, default: bool) -> bool:
    value: bool | None = optional(fields, name, bool)
    return default if value is None else value


def valid_ids(value: Any, name: str, tok: Tokenizer) -> list[int]:
    """Returns an array of ids. Unlike :func:`token_ids`, accepts only integers in the vocabulary.

    Raises:
        Refusal: it isn't an array of integers.
        TokenIdError: an id isn't in the vocabulary.
    """
    if not isinstance(value, list):
        raise Refusal(f"{name} must be an array, not {kind(value)}")
    for i, id in enumerate(value):
        if type(id) is not int:
            raise Refusal(f"{name}[{i}] must be an integer, not {quote_value(id)}")
    return arguments.token_ids(value, tok.n_tokens, name)


def quote_value(value: Any, most: int = 80) -> str:
    """Returns a value for a message: a text's first `most` characters or a number, quoted, and the
    type of any other value, which may be large or deeply nested."""
    if isinstance(value, str):
        return repr(value[:most]) + ("..." if len(value) > most else "")
    return repr(value) if isinstance(value, (bool, int, float)) else kind(value)


_NAMES = {
    str: "a string",
    list: "an array",
    dict: "an object",
    bool: "a boolean",
    int: "an integer",
}
_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array"}


def kind(value: Any) -> str:
    """Returns JSON's name for the type of a value."""
    return "null" if value is None else _KINDS.get(type(value), "an object")
