"""Applies changes to the values of a header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from ggtok.base.escape import printable
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.gguf import ARRAY, BOOL, FLOAT32, INT32, INT64, STRING, UINT32, UINT64
from ggtok.vocabularies.edit.header import ALIGNMENT, Header, HeaderEntry, utf8

_ELEMENT = re.compile(r"(.+)\[([0-9]+)\]", re.DOTALL)
_LONGEST_KEY = 65535  # bytes in a key, according to GGUF's specification
_INDEX_DIGITS = 18  # the maximum number of digits in an index; no array is so long
# Keys that can't be changed, and what each determines. Another value would make the file
# unreadable, or turn it into a different model.
_FIXED = {ALIGNMENT: "where the tensors are", "general.architecture": "what the tensors mean"}


class Change(NamedTuple):
    """A change of one value.

    Attributes:
        key: the key, or ``key[index]`` for one element of an array.
        before: the value in the file (strings as ``str`` with surrogates for bytes that aren't
            UTF-8, arrays as lists), or None if the file doesn't have the key.
        after: the new value, or None if the key is removed.
    """

    key: str
    before: object
    after: object


def apply(
    header: Header, changes: Mapping[str, object]
) -> tuple[dict[str, HeaderEntry], list[Change]]:
    """Returns the entries after the changes, and the changes that make a difference.

    Raises:
        InvalidTypeError, InvalidValueError: a key doesn't exist or can't be changed, or a value
            has the wrong type; the message names the key.
    """
    if not isinstance(changes, Mapping):
        raise InvalidTypeError(
            f"changes must be a mapping of keys to values, not {type(changes).__name__}"
        )
    entries = dict(header.entries)
    arrays: dict[str, _Array] = {}
    effective = []
    for key, value in changes.items():
        if not isinstance(key, str):
            raise InvalidTypeError(f"a key must be str, not {type(key).__name__}")
        value = _without_numpy(value)
        if isinstance(value, (list, tuple)):
            value = [_without_numpy(item) for item in value]
        element = _ELEMENT.fullmatch(key)
        if element is not None and key not in entries:
            name = element[1]
            if name not in arrays:
                arrays[name] = _Array(header, entries, name)
            before, differs = arrays[name].change(element[2], value)
        else:
            if key in arrays:
                entries[key] = arrays.pop(key).entry()
            before, differs = _change(header, entries, key, value)
        if differs:
            effective.append(Change(key, before, None if value is None else _plain(value)))
    for key, array in arrays.items():
        entries[key] = array.entry()
    return entries, effective


class _Array:
    """An array of which several elements may change. It is decoded and encoded only once."""

    def __init__(self, header: Header, entries: Mapping[str, HeaderEntry], key: str) -> None:
        _check_key(key)
        entry = entries.get(key)
        if entry is None or entry.kind != ARRAY:
            raise InvalidValueError(f"{printable(key)}: the file has no such array")
        self._header, self._name = header, printable(key)
        self._of, self._length = header.length(entry)
        # Scalars are changed in the array's bytes, so that all other scalars keep their bytes.
        self._strings = cast("list[bytes]", header.value(entry)) if self._of == STRING else []
        self._raw = bytearray(entry.raw)

    def change(self, digits: str, value: object) -> tuple[object, bool]:
        """Changes an element. Returns the old value, and whether the new value differs from it."""
        digits = digits.lstrip("0") or "0"
        name = f"{self._name}[{printable(digits, _INDEX_DIGITS)}]"
        # int() refuses to convert thousands of digits.
        if len(digits) > _INDEX_DIGITS or (index := int(digits)) >= self._length:
            raise InvalidValueError(f"{name}: the array has {self._length} elements")
        if self._of == STRING:
            old, new = self._strings[index], self._header.encoded(STRING, value, name).raw[8:]
            self._strings[index] = new
            return _plain(old), new != old
        return self._header.set_element(self._raw, self._of, index, value, name)

    def entry(self) -> HeaderEntry:
        if self._of == STRING:
            return self._header.encoded(ARRAY, self._strings, self._name, STRING)
        return HeaderEntry(ARRAY, bytes(self._raw))


def _change(
    header: Header, entries: dict[str, HeaderEntry], key: str, value: object
) -> tuple[object, bool]:
    """Changes, adds or removes a value. Returns the old value or None, and whether the new value
    differs from it."""
    _check_key(key)
    old = entries.get(key)
    before = None if old is None else _plain(header.value(old))
    if value is None:
        if old is None:
            raise InvalidValueError(f"{printable(key)}: the file has no such key")
        del entries[key]
    elif old is None:
        entries[key] = _new(header, key, value)
    else:
        of = header.length(old)[0] if old.kind == ARRAY else None
        entries[key] = header.encoded(old.kind, value, printable(key), of)
    return before, entries.get(key) != old


def _check_key(key: str) -> None:
    size = len(utf8(key, printable(key, 60)))
    if not 0 < size <= _LONGEST_KEY or "\0" in key:
        raise InvalidValueError(
            f"{printable(key, 60)!r} can't be a key: keys have 1 to {_LONGEST_KEY} bytes, and no "
            "NUL"
        )
    reason = _FIXED.get(key, "the file's part of a model" if key.startswith("split.") else None)
    if reason is not None:
        raise InvalidValueError(f"{key} says {reason}, and can't be changed")


def _new(header: Header, key: str, value: object) -> HeaderEntry:
    """Returns an entry for a key that the file doesn't have, with a type that fits the value."""
    name = printable(key)
    if isinstance(value, (list, tuple)):
        if not value:
            raise InvalidTypeError(f"{name}: the type of an empty array is unknown")
        return header.encoded(ARRAY, value, name, _kind(value[0], name, INT32))
    return header.encoded(_kind(value, name, UINT32), value, name)


def _without_numpy(value: Any) -> object:
    """Converts NumPy's numbers and arrays to Python's."""
    return value.tolist() if type(value).__module__ == "numpy" else value


def _kind(value: object, name: str, of_int: int) -> int:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        fits = range(1 << 32) if of_int == UINT32 else range(-(1 << 31), 1 << 31)
        return of_int if value in fits else INT64 if value < 1 << 63 else UINT64
    if isinstance(value, float):
        return FLOAT32
    if isinstance(value, (str, bytes)):
        return STRING
    raise InvalidTypeError(
        f"{name}: a value must be bool, int, float, str, bytes or a list of these, not "
        f"{type(value).__name__}"
    )


def _plain(value: object) -> object:
    """Converts a value for users: strings to `str`, arrays to lists."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "surrogateescape")
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
