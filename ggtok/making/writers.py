"""Files that a vocabulary can be written to: one row for each kind."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Callable

from ggtok.errors import (
    InvalidTypeError,
    InvalidValueError,
    VocabError,
    VocabWarning,
    file_error,
)
from ggtok.making.contents import Contents, Differs
from ggtok.making.gguf_writer import gguf_bytes


def _gguf(vocabulary: Contents, differs: Differs) -> bytes:
    return gguf_bytes(vocabulary)


def _tokenizer_json(vocabulary: Contents, differs: Differs) -> bytes:
    from ggtok.making.export.tokenizer_json import tokenizer_json

    return tokenizer_json(vocabulary, differs)


def _tiktoken(vocabulary: Contents, differs: Differs) -> bytes:
    from ggtok.making.export.tiktoken import tiktoken

    return tiktoken(vocabulary)


def _sentencepiece(vocabulary: Contents, differs: Differs) -> bytes:
    from ggtok.making.export.sentencepiece import sentencepiece

    return sentencepiece(vocabulary, differs)


# How a file's name ends, and what makes its contents.
WRITERS: dict[str, Callable[[Contents, Differs], bytes]] = {
    ".gguf": _gguf,
    ".json": _tokenizer_json,
    ".tiktoken": _tiktoken,
    ".model": _sentencepiece,
}


def write(vocabulary: Contents, path: str | os.PathLike[str], *, inexact: bool) -> None:
    """Writes the file that `path` names."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"path must be str or a path, not {type(path).__name__}")
    name = os.fsdecode(os.fspath(path))
    contents = next((made for end, made in WRITERS.items() if name.endswith(end)), None)
    if contents is None:
        kinds = ", ".join(WRITERS)
        raise InvalidValueError(
            f"{name}: the name must end in one of {kinds}, to say what to write"
        )
    differs = Differs(inexact)
    data = contents(vocabulary, differs)
    if differs.reasons and not inexact:
        why = "; ".join(differs.reasons)
        raise VocabError(f"{why} (inexact=True, or --inexact, writes the file all the same)")
    for reason in differs.reasons:
        warnings.warn(reason, VocabWarning, stacklevel=3)
    write_whole(name, data)


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
