"""Input: files, standard input (named ``-``), and escapes in texts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, BinaryIO

from ggtok.base.files import open_regular
from ggtok.cli import messages
from ggtok.cli.messages import UsageError, hint, warn

BLOCK = 1 << 20  # bytes to read at a time
STDIN = "standard input"


def name_of(path: str) -> str:
    """Returns the name of an input for messages."""
    return STDIN if path == "-" else path


@contextmanager
def blocks(
    path: str, *, regular: bool = False, decompress: bool = False
) -> Iterator[Iterator[bytes]]:
    """Opens a file as an iterator over blocks of about :data:`BLOCK` bytes; ``-`` is standard
    input.

    Args:
        regular: raise an error if the path, which named a regular file before, no longer does.
        decompress: decompress .gz, .bz2, .xz and .zst files.
    """
    if path == "-":
        yield _blocks(_standard_input(), STDIN)
        return
    try:
        with open_regular(path) if regular else open(path, "rb", buffering=0) as f:
            yield _decompress(f, path) if decompress else _blocks(f, path)
    except IsADirectoryError as e:
        if e.filename != path:  # raised in the caller's block
            raise
        advice = f"this is a folder; name the files in it, such as {os.path.join(path, '*')}"
        raise IsADirectoryError(e.errno, advice, path) from None


def _decompress(f: Any, path: str) -> Iterator[bytes]:
    from ggtok.corpora import sources, streams

    compression = sources.compression_of(path)
    with streams.naming(path) if compression else nullcontext():
        yield from _blocks(streams.decompressor(path, compression, f), path)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    if sys.stdin.isatty():
        key = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        hint(f"reading standard input; {key} ends it")
    return sys.stdin.buffer


def _blocks(f: Any, name: str) -> Iterator[bytes]:
    # One system call per block: otherwise, users would have to type end-of-file twice.
    read = getattr(f, "read1", f.read)
    try:
        while block := read(BLOCK):
            yield block
    except OSError as e:  # the error lacks the file's name, which is added here
        if e.errno is None:  # raised by a decompressor
            raise
        raise OSError(e.errno, e.strerror, name) from None


def file(path: str) -> bytes:
    """Reads a whole file; ``-`` is standard input."""
    with blocks(path) as parts:
        return b"".join(parts)


def begins_with_conversation(path: str) -> bool:
    """Whether the first line of a file is a conversation."""
    from ggtok.corpora.conversations import is_conversation

    with suppress(OSError), blocks(path, decompress=True) as parts:
        return is_conversation(next(parts, b"").partition(b"\n")[0])
    return False


def text_of(data: bytes, name: str) -> str:
    """Decodes a text; it must be UTF-8, because positions in it are counted in characters."""
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise UsageError(f"{name} is not UTF-8 (byte {e.start}): use --unit byte") from None


def json_file(path: str) -> Any:
    """Parses a JSON file."""
    return parsed_json(file(path), path)


def parsed_json(data: bytes, path: str) -> Any:
    """Parses the contents of a JSON file."""
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise UsageError(f"{name_of(path)}: not valid JSON: {e}") from None


def each(paths: Iterable[str], process: Callable[[str], None]) -> int:
    """Calls `process` for each file, reports files that can't be read, and returns the exit
    status."""
    status = messages.OK
    for path in paths:
        try:
            process(path)
        except OSError as e:
            messages.say("error", messages.reason(e))
            status = messages.ERROR
    return status


def warn_of_nul(path: str, text: bytes) -> None:
    """Warns if a text contains NUL, which makes the output of --null ambiguous."""
    if b"\0" in text:
        warn(f"{name_of(path)} contains NUL: use --json")


# ---- escapes ----

_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"'": b"'", b'"': b'"', b"\\": b"\\"}
# _ESCAPE matches an escape. llama.cpp parses the digits after \x with strtol, which also accepts
# white space or a sign as the first character.
_FIRST, _DIGIT = rb"[0-9A-Fa-f \t-\r+-]", rb"[0-9A-Fa-f]"
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2}|[ \t-\r+-]%b)|(.))" % _DIGIT, re.DOTALL)
# Matches what _ESCAPE matches, or an incomplete escape at the end of the text.
_ESCAPE_OR_END = re.compile(rb"(\\(?:x%b?)?\Z)|%b" % (_FIRST, _ESCAPE.pattern), re.DOTALL)


def unescape(text: bytes) -> bytes:
    r"""Replaces ``\n \r \t \' \" \\ \xHH`` as llama.cpp's tools do; keeps other escapes."""
    return _ESCAPE.sub(lambda match: _replacement(match[0], *match.groups()), text)


def unescape_argument(text: str) -> bytes:
    return unescape(os.fsencode(text))


def unescape_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Does the same as :func:`unescape` for a text in blocks."""
    incomplete = b""

    def replacement(match: re.Match[bytes]) -> bytes:
        nonlocal incomplete
        end, digits, letter = match.groups()
        if end is None:
            return _replacement(match[0], digits, letter)
        incomplete = end
        return b""

    for block in blocks:
        text, incomplete = incomplete + block, b""
        yield _ESCAPE_OR_END.sub(replacement, text)
    yield unescape(incomplete)


def _replacement(escape: bytes, digits: bytes | None, letter: bytes | None) -> bytes:
    if digits is not None:
        return bytes([int(digits, 16) & 0xFF])
    return _LETTERS.get(letter or b"", escape)
