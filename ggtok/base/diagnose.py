"""Recognizes files of other formats than the expected one, and says what to do about them.

For GGUF files, this is called only after parsing has failed: a file that parses is a GGUF file,
even if it looks like another format.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from ggtok.base.escape import printable
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

_MAKE_GGUF = "'ggtok convert' makes a GGUF file of it"
_MODEL = "name the model's folder, or the file of its tokenizer"
_TOKENIZER_JSON = re.compile(
    rb'\s*\{\s*"(version"\s*:\s*"[^"]*"\s*,\s*"truncation|added_tokens|model)"'
)
_RANKS = re.compile(rb"\s*[A-Za-z0-9+/]+=* [0-9]+\r?(?:\n|\Z)")


def is_ranks(head: bytes) -> bool:
    """Whether a file with these first bytes has tiktoken's ranks."""
    return _RANKS.match(head) is not None


def is_sentencepiece(head: bytes) -> bool:
    """Whether a file with these first bytes is a SentencePiece model.

    It begins with the message of the first piece: its tag and length, then tag, length and bytes of
    the text, and then the tag of the score.
    """
    if len(head) < 4 or head[0] != 0x0A or head[2] != 0x0A:
        return False
    size, text = head[1], head[3]
    return text + 2 <= size < 0x80 and (text + 2 == size or head[4 + text : 5 + text] == b"\x15")


class _Kind(NamedTuple):
    """A format of files.

    Attributes:
        matches: tests a file's first bytes.
        name: the format's name.
        advice: what to do if a GGUF file is expected.
        for_tokenizer: what to do if another tokenizer is expected; None if the format may be one.
    """

    matches: Callable[[bytes], object]
    name: str
    advice: str
    for_tokenizer: str | None


# The first match counts.
_KINDS: tuple[_Kind, ...] = (
    _Kind(
        _LFS.match,
        "a Git LFS pointer, a placeholder for the file",
        *("run 'git lfs pull' there, or download the file itself",) * 2,
    ),
    _Kind(
        lambda head: head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 40,
        "a safetensors file",
        _CONVERT,
        _MODEL,
    ),
    _Kind(
        lambda head: head[:4] in (b"PK\3\4", b"PK\5\6"),
        "a zip archive (PyTorch's model files are zip archives, too)",
        f"unpack it, or, if it is a model, {_CONVERT}",
        f"unpack it, or, if it is a model, {_MODEL}",
    ),
    _Kind(
        lambda head: head[:2] == b"\x80\2" and b"torch" in head,
        "a model file of PyTorch",
        _CONVERT,
        _MODEL,
    ),
    _Kind(
        lambda head: head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"),
        "a pickle of Python, which ggtok never reads",
        _CONVERT,
        _MODEL,
    ),
    _Kind(
        lambda head: head[:4] in (b"lmgg", b"fmgg", b"tjgg", b"algg"),
        "a GGML file, the format before GGUF",
        "download the model as GGUF",
        _MODEL,
    ),
    _Kind(
        _HTML.match,
        "a web page",
        *(
            "download the file, not the page about it (on the Hub the address has /resolve/, not "
            "/blob/)",
        )
        * 2,
    ),
    _Kind(_TOKENIZER_JSON.match, "a tokenizer.json of Hugging Face", _MAKE_GGUF, None),
    _Kind(is_ranks, "a file of tiktoken's ranks", _MAKE_GGUF, None),
    _Kind(is_sentencepiece, "a SentencePiece model", _MAKE_GGUF, None),
    _Kind(_JSON.match, "JSON", "pass the GGUF file", None),
    _Kind(
        lambda head: (
            head[:2] == b"\x1f\x8b"
            or head[:6] in (b"\xfd7zXZ\0", b"7z\xbc\xaf\x27\x1c")
            or head[:4] == b"\x28\xb5\x2f\xfd"
        ),
        "a compressed file",
        *("decompress it",) * 2,
    ),
    _Kind(
        lambda head: not any(head),
        "a file of zeros, as an interrupted download leaves",
        *(_AGAIN,) * 2,
    ),
)


def _kind_of(head: bytes) -> _Kind | None:
    return next((kind for kind in _KINDS if head and kind.matches(head[:_HEAD])), None)


def explain_no_tokenizer(head: bytes) -> str | None:
    """Returns what a file with these first bytes is and what to do, or None if it may be a
    tokenizer's file."""
    kind = _kind_of(head)
    if kind is None or kind.for_tokenizer is None:
        return None
    return f"not a tokenizer's file but {kind.name}: {kind.for_tokenizer}"


def explain_folder(path: str) -> str:
    """Returns an error message for a folder that was named instead of a GGUF file."""
    try:
        files = sorted(os.listdir(path))
    except OSError:
        files = []
    models = [file for file in files if file.endswith(".gguf")]
    if models:
        return f"a folder, not a GGUF file: name one of its files, such as {printable(models[0])}"
    if any("token" in file or file.startswith("vocab") or file == "config.json" for file in files):
        return "a folder, not a GGUF file: 'ggtok convert' makes a GGUF file of its tokenizer"
    return "a folder, not a GGUF file"


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
        head, size = _read_head(path)
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
    kind = _kind_of(head)
    return message if kind is None else f"not a GGUF file but {kind.name}: {kind.advice}"


def _read_head(path: str | bytes | None) -> tuple[bytes, int | None]:
    """Returns a file's first bytes and size, or (b"", None) if it can no longer be read."""
    try:
        with open_regular(path or "") as f:  # the path may be a pipe by now
            size = os.fstat(f.fileno()).st_size
            return read_up_to(f, _MOST if size <= _MOST else _HEAD), size
    except OSError:
        return b"", None
