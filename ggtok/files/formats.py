"""The formats of ids."""

from __future__ import annotations

import contextlib
import os

from ggtok.errors import InvalidValueError
from ggtok.files.arrow import Arrow
from ggtok.files.layouts import Megatron, Npy, Raw

# One row for each.
FORMATS: dict[str, type[Raw]] = {"raw": Raw, "npy": Npy, "megatron": Megatron, "arrow": Arrow}


def find(name: str, dtype: str, n_tokens: int) -> tuple[type[Raw], str]:
    """The class of a format, and the type of its ids."""
    if name not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        raise InvalidValueError(f"format must be one of {known}, not {name!r}")
    known = ", ".join(map(repr, ("auto", *Raw.dtypes)))
    if dtype not in ("auto", *Raw.dtypes):
        raise InvalidValueError(f"dtype must be one of {known}, not {dtype!r}")
    format = FORMATS[name]
    dtype = format.auto(n_tokens) if dtype == "auto" else dtype
    if dtype not in format.dtypes:
        raise InvalidValueError(
            f"Megatron's datasets have no {dtype}: use dtype='int32', or 'auto', which takes "
            "uint16 for vocabularies of fewer than 65,500 tokens"
        )
    if dtype == "uint16" and n_tokens > 1 << 16:
        raise InvalidValueError(
            f"dtype='uint16' holds ids below 65,536, and this vocabulary has {n_tokens} tokens"
        )
    return format, dtype


def companions(out: str) -> frozenset[str]:
    """Absolute paths of all files that a run for `out` may write."""
    names = {out, out + ".manifest.json", out + ".journal", out + ".sources"}
    for format in FORMATS.values():
        names.update(format.names(out))
    names.add(Megatron.names(out)[1] + ".offsets")
    return frozenset(os.path.abspath(name) for each in names for name in (each, each + ".partial"))


def clean(out: str) -> None:
    """Removes what an earlier run for `out` didn't finish, of whatever format."""
    for path in companions(out):
        if path.endswith(".partial"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
