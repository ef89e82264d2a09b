"""Explains why a file isn't a valid GGUF file, and what to do about it.

This is called only after parsing has failed: a file that parses is a GGUF file, even if it looks
like another format.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ggtok.base.files import open_regular, read_up_to

# The number of bytes at the start of a file that are examined to recognize its format.
_HEAD = 1024
# Maximum number of bytes to reread to check whether a file is truncated. Metadata is smaller than
# this.
_MOST = 64 << 20

_CONVERT = "convert it to GGUF first, with llama.cpp's convert_hf_to_gguf.py"
_AGAIN = "download it again"
_LFS = re.compile(rb"version https://git-lfs\.github\.com/spec/")
_HTML = re.compile(rb"\s*<(!doctype html|html|head|\?xml)", re.IGNORECASE)
_JSON = re.compile(rb'\s*[{\[]\s*["{\[\]}]')

# Tests of a file's first bytes, each with the format's name and advice. The first match counts.
_KINDS: tuple[tuple[Callable[[bytes], object], str, str], ...] = (
    (
        _LFS.match,
        "a Git LFS pointer, a placeholder for the file",
        "run 'git lfs pull' there, or download the file itself",
    ),
    (
        lambda head: head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 40,
        "a safetensors file",
        _CONVERT,
    ),
    (
        lambda head: head[:4] in (b"PK\3\4", b"PK\5\6"),
        "a zip archive (PyTorch's model files are zip archives, too)",
        f"unpack it, or, if it is a model, {_CONVERT}",
    ),
    (
        lambda head: head[:2] == b"\x80\2" and b"torch" in head,
        "a model file of PyTorch",
        _CONVERT,
    ),
    (
        lambda head: head[:4] in (b"lmgg", b"fmgg", b"tjgg", b"algg"),
        "a GGML file, the format before GGUF",
        "download the model as GGUF",
    ),
    (
        _HTML.match,
        "a web page",
        "download the file, not the page about it (on the Hub the address has /resolve/, not "
        "/blob/)",
    ),
    (_JSON.match, "JSON", "pass the GGUF file"),
    (
        lambda head: (
            head[:2] == b"\x1f\x8b"
            or head[:6] in (b"\xfd7zXZ\0", b"7z\xbc\xaf\x27\x1c")
            or head[:4] == b"\x28\xb5\x2f\xfd"
        ),
        "a compressed file",
        "decompress it",
    ),
    (
        lambda head: not any(head),
        "a file of zeros, as an interrupted download leaves",
        _AGAIN,
    ),
)


def explain_parse_error(
    message: str,
    data: memoryview | None,
    path: str | bytes | None,
    file_size: int | None,
    parses_further: Callable[[bytes], bool],
) -> str:
    """Returns an error message for a file that the parser rejected with `message`.

    Args:
        data: the file's first bytes; if None, they are read from `path`.
        file_size: the file's size in bytes, if `data` or the file at `path` has another size.
        parses_further: whether a longer file with these first bytes could be valid.
    """
    if data is None:
        head, size = _read(path)
    else:
        head, size = bytes(data[: _MOST if bytes(data[:4]) == b"GGUF" else _HEAD]), len(data)
    size = size if file_size is None else file_size
    if size == 0:
        return f"not a GGUF file but an empty one: {_AGAIN}"
    if head[:4] == b"GGUF":
        if (len(head) == size or file_size is not None) and parses_further(head):
            return (
                f"the file is cut off: it has {size} bytes, and its metadata takes more "
                f"({message}); its download was probably interrupted: {_AGAIN}"
            )
        return message
    for fits, kind, advice in _KINDS:
        if head and fits(head[:_HEAD]):
            return f"not a GGUF file but {kind}: {advice}"
    return message


def _read(path: str | bytes | None) -> tuple[bytes, int | None]:
    """Returns a file's first bytes and size, or (b"", None) if it can no longer be read."""
    try:
        with open_regular(path or "") as f:  # the path may be a pipe by now
            size = os.fstat(f.fileno()).st_size
            return read_up_to(f, _MOST if size <= _MOST else _HEAD), size
    except OSError:
        return b"", None
