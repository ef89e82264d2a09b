"""Counts the lists, objects and members in JSON text."""

from __future__ import annotations

from ggtok.native.library import ffi, lib


def json_size(data: bytes) -> int:
    """Returns the number of lists and objects in JSON text plus that of the objects' members. The
    GIL is released."""
    return int(lib.ggtok_json_size(ffi.from_buffer(data), len(data)))
