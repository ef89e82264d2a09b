"""Files that a vocabulary can be written to: one row for each kind."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable

from ggtok.errors import InvalidTypeError, InvalidValueError, file_error
from ggtok.making.contents import Contents
from ggtok.making.gguf_writer import gguf_bytes


def _gguf(vocabulary: Contents) -> bytes:
    return gguf_bytes(vocabulary)


def _tokenizer_json(vocabulary: Contents) -> bytes:
    from ggtok.making.export.tokenizer_json import tokenizer_json

    return tokenizer_json(vocabulary)


def _tiktoken(vocabulary: Contents) -> bytes:
    from ggtok.making.export.tiktoken import tiktoken

    return tiktoken(vocabulary)


def _sentencepiece(vocabulary: Contents) -> bytes:
    from ggtok.making.export.sentencepiece import sentencepiece

    return sentencepiece(vocabulary)


# How a file's name ends, and what makes its contents.
WRITERS: dict[str, Callable[[Contents], bytes]] = {
    ".gguf": _gguf,
    ".json": _tokenizer_json,
    ".tiktoken": _tiktoken,
    ".model": _sentencepiece,
}


def write(vocabulary: Contents, path: str | os.PathLike[str]) -> None:
    """Writes the file that `path` names."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"path must be str or a path, not {type(path).__name__}")
    name = os.fsdecode(os.fspath(path))
    for end, contents in WRITERS.items():
        if name.endswith(end):
            write_whole(name, contents(vocabulary))
            return
    kinds = ", ".join(WRITERS)
    raise InvalidValueError(f"{name}: the name must end in one of {kinds}, to say what to write")


def write_whole(path: str, data: bytes) -> None:
    """Writes a file in one step: under another name first, so that none is ever half there."""
    folder, name = os.path.split(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=folder or ".", prefix=f".{name}.", delete=False
        ) as file:
            temporary = file.name
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
