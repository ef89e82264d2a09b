"""Inspects the beginning of a GGUF file."""

from __future__ import annotations

from ggtok.native.failures import error
from ggtok.native.library import UNKNOWN_SIZE, VOCAB_TYPES, ffi, lib, string


def metadata_size(prefix: bytearray, file_size: int | None, name: str) -> int:
    """ggtok_metadata_size. No other thread may write to `prefix`."""
    size, err = ffi.new("uint64_t *"), ffi.new("ggtok_error *")
    n = UNKNOWN_SIZE if file_size is None else file_size
    with ffi.from_buffer("char[]", prefix) as view:
        if lib.ggtok_metadata_size(view, len(view), n, size, err):
            raise error(err, filename=name, data=view, file_size=file_size)
    needed: int = size[0]
    return needed


def peek(prefix: bytearray, file_size: int, name: str) -> tuple[str, str, str | None, int] | int:
    """ggtok_peek: type, model, pre (None outside BPE) and number of tokens; or, if `prefix` is
    too short for that, the number of bytes that must be read."""
    out, err = ffi.new("ggtok_summary *"), ffi.new("ggtok_error *")
    with ffi.from_buffer("char[]", prefix) as view:
        if lib.ggtok_peek(view, len(view), file_size, out, err):
            raise error(err, filename=name, data=view, file_size=file_size)
    if not out.known:
        size: int = out.size
        return size
    pre = string(ffi.string(out.pre)) or None
    return VOCAB_TYPES[out.type], string(ffi.string(out.model)), pre, out.n_tokens
