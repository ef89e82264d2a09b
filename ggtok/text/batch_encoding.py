"""Encodes batches of texts, optionally with offsets, and single texts that arrive in blocks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator

from ggtok import _types as types
from ggtok.base.escape import quoted
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native import (
    ADD_SPECIAL,
    NOT_FIRST_BLOCK,
    NOT_LAST_BLOCK,
    PARSE_SPECIAL,
    Native,
    arrays,
    text_bytes,
)
from ggtok.native.arguments import is_one_of, iterate, on_main_thread, thread_count, truth
from ggtok.native.contexts import Blocks

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from ggtok._types import Text

    Flags = tuple[bool, types.ParseSpecial, bool]  # add_special, parse_special, continuation
    # The fields of ggtok_sampling: the rule, its value, nbest, seed and index.
    SamplingRule = tuple[int, float, int, int, int]


# ---- batches, and offsets ----

MAX_THREADS = 256
_UNITS = ("byte", "char", "utf16")  # in the order of ggtok.h's enum ggtok_unit


def encode(native: Native, texts: types.Texts, flags: Flags, threads: int) -> list[list[int]]:
    lists: list[list[int]] = _batch(native, texts, flags, threads, True)
    return lists


def encode_arrays(
    native: Native,
    texts: types.Texts,
    flags: Flags,
    threads: int,
    sampling: SamplingRule | None = None,
) -> tuple[types.Int32Array, types.Int64Array]:
    return arrays.id_arrays(_batch(native, texts, flags, threads, False, sampling=sampling))


def encode_arrow(native: Native, texts: types.Texts, flags: Flags, threads: int) -> Any:
    """Encodes a batch, and returns the argument for :class:`ggtok.arrow.ArrowIds`."""
    return _batch(native, texts, flags, threads, None)


def count(native: Native, texts: types.Texts, flags: Flags, threads: int) -> list[int]:
    offsets = arrays.offsets_of(_batch(native, texts, flags, threads, False))
    return [end - begin for begin, end in itertools.pairwise(offsets)]


def encode_array_on_threads(
    native: Native, text: types.Text, flags: Flags, threads: int
) -> types.Int32Array:
    """Encodes one text on several threads (ggtok_encode_parallel in ggtok.h)."""
    return arrays.id_arrays(_parallel(native, text, flags, threads))[0]


def count_on_threads(native: Native, text: types.Text, flags: Flags, threads: int) -> int:
    _, _, n_ids, _, _, _ = _parallel(native, text, flags, threads)
    return n_ids


def _parallel(native: Native, text: types.Text, flags: Flags, threads: int) -> arrays.Result:
    add_special, parse_special, continuation = flags
    args = (
        add_special,
        native.parsed(parse_special),
        continuation,
        n_threads(native, threads),
        on_main_thread(),
    )
    try:
        result: arrays.Result = native.encode_parallel(text, *args)
    except Exception as e:
        result = native.retry(native.encode_parallel, e, text, *args)
    return result


def unit_of(text: types.Text, unit: str) -> int:
    """Returns the unit's number in C; raises an error if this text's spans can't have the unit."""
    number = _unit(unit)
    if number and not isinstance(text, str):
        raise _only_of_str(unit, "text", text)
    return number


def encode_with_offsets(
    native: Native, texts: types.Texts, flags: Flags, unit: str, threads: int
) -> list[tuple[list[int], types.Int64Array]]:
    texts, c_unit = _with_unit(texts, unit)
    lists, result = _batch(native, texts, flags, threads, True, c_unit)
    rows, offsets = arrays.span_arrays(result)
    parts = itertools.pairwise(offsets.tolist())
    return [(ids, rows[a:b]) for ids, (a, b) in zip(lists, parts, strict=True)]


def encode_arrays_with_offsets(
    native: Native, texts: types.Texts, flags: Flags, unit: str, threads: int
) -> tuple[types.Int32Array, types.Int64Array, types.Int64Array]:
    texts, c_unit = _with_unit(texts, unit)
    result = _batch(native, texts, flags, threads, False, c_unit)
    ids, offsets = arrays.id_arrays(result)
    spans, _ = arrays.span_arrays(result)
    return ids, spans, offsets


def _with_unit(texts: types.Texts, unit: str) -> tuple[types.Texts, int]:
    """Returns the texts, which must be ``str`` for units other than bytes, and the unit for C."""
    c_unit = _unit(unit)
    if c_unit:
        texts = _text_tuple(texts) if not is_column(texts) else texts
        for i, text in enumerate(texts if isinstance(texts, tuple) else [texts]):
            if not isinstance(text, str):
                raise _only_of_str(unit, f"texts[{i}]", text)
    return texts, c_unit


def _batch(
    native: Native,
    texts: types.Texts,
    flags: Flags,
    threads: int,
    lists: bool | None,
    unit: int | None = None,
    sampling: SamplingRule | None = None,
) -> Any:
    add_special, parse_special, continuation = flags
    args = (
        truth(add_special, "add_special"),
        native.parsed(parse_special),
        truth(continuation, "continuation"),
        n_threads(native, threads),
        lists,
        on_main_thread(),
        unit,
        sampling,
    )
    if is_column(texts):
        from ggtok.arrow import texts_of_exporter

        column = texts_of_exporter(texts)
        if column is not None:
            data = column.texts if lists is None else column.without_nulls()
            return native.encode_arrow(data, *args)
    batch = _text_tuple(texts)
    try:
        return native.encode_batch(batch, *args)
    except Exception as e:
        return native.retry_batch(e, batch, *args)


def n_threads(native: Native, threads: int) -> int:
    """Returns the number of threads to start for the argument `threads`."""
    threads = thread_count(threads)
    # A Python callback that splits texts into words holds the GIL, so more threads don't help.
    return 1 if native.splits_in_python else min(threads or cores(), MAX_THREADS)


def _unit(unit: str) -> int:
    """Returns the unit's number in C."""
    if not is_one_of(unit, _UNITS):
        raise InvalidValueError(f"unit must be 'byte', 'char' or 'utf16', not {quoted(unit)}")
    return _UNITS.index(unit)


def _only_of_str(unit: str, name: str, text: object) -> InvalidValueError:
    return InvalidValueError(
        f"unit {unit!r} is for texts of type str, but {name} is {type(text).__name__}: "
        "use unit='byte'"
    )


def is_column(texts: object) -> bool:
    """Whether `texts` exports Arrow data."""
    return hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")


def _text_tuple(texts: types.Texts) -> tuple[types.Text, ...]:
    expected = "texts must be an iterable of texts"
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"{expected}, not {type(texts).__name__}")
    return tuple(iterate(texts, expected))  # type: ignore[arg-type]  # raises if not iterable


def cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


# ---- a text of any length in bounded memory ----

BLOCK = 1 << 20  # bytes of text to encode at a time


def encode_blocks(
    native: Native,
    blocks: Iterable[Text],
    *,
    add_special: bool = True,
    parse_special: bool = False,
    block_bytes: int = BLOCK,
) -> Iterator[NDArray[np.int32]]:
    """Encodes one text that arrives in blocks, and yields parts of its ids as they become final.

    The parts, joined, equal ``Tokenizer.encode_array`` of all blocks joined: a part ends where
    ``ggtok_safe_cut`` (ggtok.h) proves that no token crosses. The buffer holds about
    `block_bytes` bytes, and doubles whenever it contains no such position. Blocks may end
    anywhere; bytes-like blocks may end inside a character. At least one part is yielded, which
    may be empty.

    It raises the errors of ``encode``; parts yielded before an error are valid. Not thread-safe.
    """
    import numpy as np

    def part(n: int, flags: int) -> NDArray[np.int32]:
        ids: NDArray[np.int32] = np.frombuffer(encoder.encode(text, n, flags), np.int32)
        return ids

    encoder = Blocks(native)
    flags = add_special * ADD_SPECIAL | parse_special * PARSE_SPECIAL
    text = bytearray()
    enough = block_bytes
    for piece in _pieces(blocks):
        text += piece
        if len(text) < enough:
            continue
        n = encoder.safe_cut(text, flags)
        if not n:
            enough = 2 * len(text)
            continue
        yield part(n, flags | NOT_LAST_BLOCK)
        flags |= NOT_FIRST_BLOCK
        del text[:n]
        enough = max(block_bytes, 2 * len(text))
    yield part(len(text), flags)


def _pieces(blocks: Iterable[Text]) -> Iterator[Any]:
    """Yields the text as UTF-8, in pieces of at most BLOCK bytes."""
    for block in blocks:
        data = text_bytes(block)
        for at in range(0, len(data), BLOCK):
            yield data[at : at + BLOCK]
