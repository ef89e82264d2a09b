"""Reads source files, within limits on size: JSON, with the position in error messages."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ggtok.base.diagnose import explain_no_tokenizer
from ggtok.base.files import read_regular
from ggtok.errors import VocabError

T = TypeVar("T")

MAX_BYTES = 128 << 20  # bytes in a file; the largest known tokenizer.json has 33 MB
MAX_VALUES = 1 << 22  # JSON values, each up to 160 bytes in memory; known files have 1.8 million
MAX_TOKENS = 1 << 21  # tokens, which take about 500 bytes each
MAX_TOKEN_BYTES = 1 << 16  # bytes in one token
# The limit for the sum of the squares of all tokens' lengths. At this limit, examining all splits
# of the tokens takes some seconds. Gemma 3's sum is 1 << 24.
MAX_SPLITS = 1 << 33

_REQUIRED: Any = object()
_NAMES = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
}


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Reads a file.

    Raises:
        FileError: the file can't be read, or isn't a regular file.
        VocabError: the file is too large for a vocabulary.
    """
    name = os.fsdecode(path)
    data = read_regular(name, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise VocabError(f"{name}: has more than {MAX_BYTES} bytes: too large for a vocabulary")
    reason = explain_no_tokenizer(data[:HEAD])
    if reason is not None:
        raise VocabError(f"{name}: {reason}")
    noted = _NOTED.get()
    if noted is not None:
        noted.append(os.path.abspath(name))
    return data


_NOTED: ContextVar[list[str] | None] = ContextVar("ggtok.convert", default=None)


@contextmanager
def noting() -> Iterator[list[str]]:
    """A context that collects the paths of all files read within it."""
    outer = _NOTED.get()
    paths: list[str] = [] if outer is None else outer
    token = _NOTED.set(paths)
    try:
        yield paths
    finally:
        _NOTED.reset(token)


HEAD = 1 << 16  # bytes at the start of a file by which its format is recognized


def first_bytes(path: str) -> bytes:
    return read_regular(path, HEAD)


def read_text(path: str | os.PathLike[str]) -> str:
    """Reads a UTF-8 file as text."""
    return decode_text(read_bytes(path), os.fsdecode(path))


def decode_text(data: bytes, where: str) -> str:
    """Decodes a UTF-8 file as text."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise VocabError(f"{where}: not UTF-8 at byte {e.start}") from None


def lines_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields numbered lines without their line ends, one at a time to save memory."""
    for number, line in enumerate(io.BytesIO(data), 1):
        yield number, line.rstrip(b"\r\n")


def read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a file that contains a JSON object."""
    return parse_object(read_bytes(path), os.fsdecode(path))


def parse_object(data: bytes, where: str) -> dict[str, Any]:
    """Parses a JSON object."""
    value = parse_json(data, where)
    if not isinstance(value, dict):
        raise VocabError(f"{where}: must be a JSON object, but is {_kind(value)}")
    return value


def parse_json(data: bytes, where: str) -> Any:
    """Parses JSON, within limits."""
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise VocabError(f"{where}: more than {MAX_VALUES} values: too large for a vocabulary")
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise VocabError(f"{where}: not valid JSON: nested too deeply") from None
    except json.JSONDecodeError as e:
        raise VocabError(
            f"{where}: not valid JSON: line {e.lineno}, column {e.colno}: {e.msg}"
        ) from None
    except UnicodeDecodeError as e:
        raise VocabError(f"{where}: not valid JSON: not UTF-8 at byte {e.start}") from None
    except ValueError as e:
        raise VocabError(f"{where}: not valid JSON: {e}") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return _NAMES.get(type(value), type(value).__name__)


def field(
    mapping: Mapping[str, Any], key: str, kind: type[T], where: str, default: Any = _REQUIRED
) -> T:
    """Returns a key's value, after checking its type. If there is a default, null counts as
    absent."""
    value = mapping.get(key)
    if value is None and default is not _REQUIRED:
        return default  # type: ignore[no-any-return]
    return expect_type(value, kind, f"{where}.{key}" if where else key)


def expect_type(value: Any, kind: type[T], where: str) -> T:
    """Returns the value; raises VocabError if it isn't of type `kind`."""
    if kind is float and type(value) is int:
        value = _as_float(value, where)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise VocabError(f"{where}: is {_kind(value)}, should be {_NAMES[kind]}")
    return value


def _as_float(value: int, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise VocabError(f"{where}: the number is too large") from None


def utf8(text: str, where: str) -> bytes:
    """Encodes a text to UTF-8. Raises VocabError for lone surrogates, which JSON can contain."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise VocabError(f"{where}: {text!r} contains a lone surrogate, so isn't UTF-8") from None
    if len(data) > MAX_TOKEN_BYTES:
        raise VocabError(f"{where}: a text of {len(data)} bytes is too long for a token")
    return data


def token_id(value: Any, where: str) -> int:
    """Checks that a value is an integer in the range of token ids, and returns it."""
    id = expect_type(value, int, where)
    if not 0 <= id < MAX_TOKENS:
        raise VocabError(f"{where}: {id} is not a token id (0 to {MAX_TOKENS - 1})")
    return id


def check_splits(texts: Iterable[Sized], where: str) -> None:
    """Raises VocabError for tokens so long that examining all their splits, which needs quadratic
    time, would take too long."""
    if sum(len(text) ** 2 for text in texts) > MAX_SPLITS:
        raise VocabError(f"{where}: the tokens are too long to examine all their splits")


def by_id(pairs: Iterable[tuple[str, Any]], where: str) -> dict[int, str]:
    """Returns texts by id. Raises VocabError for duplicate ids."""
    texts: dict[int, str] = {}
    for text, value in pairs:
        id = value if type(value) is int and 0 <= value < MAX_TOKENS else token_id(value, where)
        other = texts.setdefault(id, text)
        if other != text:
            raise VocabError(f"{where}: {other!r} and {text!r} have the same id {id}")
    return texts
