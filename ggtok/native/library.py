"""The compiled module, its constants, and conversions of its small structs."""

from __future__ import annotations

try:
    from ggtok._ffi import ffi as ffi
    from ggtok._ffi import lib as lib
except ModuleNotFoundError as e:
    if e.name != "ggtok._ffi":
        raise
    raise ImportError(
        "ggtok's compiled module is missing: this looks like the source tree, not an installed "
        "package (run 'pip install -e .' in it, or leave its folder)"
    ) from e

# Type checkers know this name. Importing typing takes longer than importing the rest of ggtok.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ADD_SPECIAL: int = lib.GGTOK_ADD_SPECIAL
PARSE_SPECIAL: int = lib.GGTOK_PARSE_SPECIAL
PLAIN_USER_DEFINED: int = lib.GGTOK_PLAIN_USER_DEFINED
NOT_FIRST_BLOCK: int = lib.GGTOK_NOT_FIRST_BLOCK
NOT_LAST_BLOCK: int = lib.GGTOK_NOT_LAST_BLOCK
CONTINUATION: int = lib.GGTOK_CONTINUATION
SPANS: int = lib.GGTOK_SPANS
TAIL: int = lib.GGTOK_TAIL
UNKNOWN_SIZE: int = 2**64 - 1  # a file size that isn't known

VOCAB_TYPES: dict[int, str] = {
    getattr(lib, f"GGTOK_VOCAB_{name}"): name
    for name in ("NONE", "SPM", "BPE", "WPM", "UGM", "RWKV", "PLAMO2", "TEST", "PLAMO3")
}
SPECIALS: dict[str, int] = {
    name.lower(): getattr(lib, f"GGTOK_{name}")
    for name in (
        *("BOS", "EOS", "EOT", "EOM", "UNK", "SEP", "NL", "PAD", "MASK"),
        *("FIM_PRE", "FIM_SUF", "FIM_MID", "FIM_PAD", "FIM_REP", "FIM_SEP"),
    )
}
FLAGS: dict[str, int] = {
    name.lower(): getattr(lib, f"GGTOK_FLAG_{name}")
    for name in (
        *("ADD_BOS", "ADD_EOS", "ADD_SEP", "ADD_SPACE_PREFIX", "IGNORE_MERGES", "CLEAN_SPACES"),
        *("REMOVE_EXTRA_WHITESPACES", "ESCAPE_WHITESPACES", "LOWERCASE", "STRIP_ACCENTS"),
    )
}
TYPE_NAMES: dict[int, str] = {
    getattr(lib, f"GGTOK_{name.upper()}"): name
    for name in (
        *("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"),
        *("f32", "f64", "bool", "string", "array"),
    )
}
SIGNED = {lib.GGTOK_I8, lib.GGTOK_I16, lib.GGTOK_I32, lib.GGTOK_I64}
FLOAT = {lib.GGTOK_F32, lib.GGTOK_F64}


def string(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def bytes_of(view: Any) -> bytes:
    """The bytes of a ggtok_bytes."""
    return ffi.buffer(view.data, view.n)[:] if view.n else b""


def ints_of(view: Any) -> tuple[int, ...]:
    """The elements of a ggtok_ids."""
    return tuple(ffi.unpack(view.data, view.n)) if view.n else ()


def pre_names() -> list[str]:
    """All known pre-tokenizer names."""
    names: list[str] = []
    while (name := lib.ggtok_pre_name(len(names))) != ffi.NULL:
        names.append(string(ffi.string(name)))
    return names
