"""Ids with the places in the text that they come from."""

from __future__ import annotations

import itertools
import os

from ggtok import _types as types
from ggtok.chat.methods import Chatting
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native import results
from ggtok.native.arguments import iterated, on_main_thread, thread_count, truth

_MAX_THREADS = 256  # more are not started
_UNITS = ("byte", "char", "utf16")  # in the order of cext/python/state.h


class Offsets(Chatting):
    """The part of :class:`ggtok.Tokenizer` that tells which text each token is."""

    def encode_with_offsets(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        unit: types.Unit = "byte",
    ) -> tuple[list[int], types.Int64Array]:
        """:meth:`encode`, and where in the text each token comes from.

        A token's span goes from the beginning of the source of its first byte, after
        normalizing, to the end of that of its last. Tokens made of one source character share
        its span. A run of white space that becomes one space belongs whole to that space's
        token; a space that the vocabulary puts before a word has an empty source there; white
        space that a special token strips belongs to that token; tokens that ``add_special`` adds
        have empty spans at their end of the text. Where nothing is normalized, the spans tile
        the text and their bytes are the tokens' pieces.

        Args:
            text, add_special, parse_special, continuation: as for :meth:`encode`.
            unit: what spans count: ``"byte"``, bytes of the text as UTF-8; ``"char"``, code
                points of a ``str``; ``"utf16"``, UTF-16 code units of a ``str``, as JavaScript
                and most editors count. A token that holds part of a character has all of it,
                unless bytes are counted.

        Returns:
            ``(ids, spans)``: a list, and an int64 array of shape ``(n_tokens, 2)``; the i-th
            token comes from ``text[spans[i, 0]:spans[i, 1]]`` (of a ``str``'s UTF-8, if the
            unit is bytes).

        Raises:
            InvalidValueError: a unit other than ``"byte"`` for a bytes-like text; another unit;
                and as for :meth:`encode`, whose other errors this raises, too.
        """
        if unit != "byte" and _unit(unit) and not isinstance(text, str):
            raise _only_of_str(unit, "text", text)
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._native.parsed(parse)
        encode, counted = self._native.encode_spans, 0 if unit == "byte" else _unit(unit)
        try:
            return encode(text, add_special, parse, continuation, counted)
        except Exception as e:
            flags = add_special, parse, continuation, counted
            return self._native.retry(encode, e, text, *flags)

    def encode_batch_with_offsets(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        unit: types.Unit = "byte",
        threads: int = 0,
    ) -> list[tuple[list[int], types.Int64Array]]:
        """:meth:`encode_with_offsets` for each text, on several threads.

        Args and errors are those of :meth:`encode_with_offsets` and :meth:`encode_batch`. The
        arrays are parts of one.
        """
        counted = _unit(unit)
        if counted:
            texts = _text_tuple(texts) if not is_column(texts) else texts
            for i, text in enumerate(texts if isinstance(texts, tuple) else [texts]):
                if not isinstance(text, str):
                    raise _only_of_str(unit, f"texts[{i}]", text)
        flags = self._flags_of(add_special, parse_special, continuation)
        lists, result = self._batch(texts, flags, threads, True, counted)
        rows, offsets = results.span_arrays(result)
        parts = itertools.pairwise(offsets.tolist())
        return [(ids, rows[a:b]) for ids, (a, b) in zip(lists, parts, strict=True)]

    # ---- what all ways of encoding share ----

    def _flags_of(
        self, add_special: bool, parse_special: types.ParseSpecial, continuation: bool
    ) -> tuple[object, object, object]:
        """What C takes for them."""
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._native.parsed(parse)
        return add_special, parse, continuation

    def _batch(
        self,
        texts: types.Texts,
        flags: tuple[object, object, object],
        threads: int,
        lists: bool | None,
        unit: int | None,
    ) -> types.Any:
        flags = truth(flags[0], "add_special"), flags[1], truth(flags[2], "continuation")
        args = *flags, self._threads(threads), lists, on_main_thread(), unit
        if is_column(texts):
            from ggtok.arrow import exported

            column = exported(texts)
            if column is not None:
                data = column.texts if lists is None else column.without_nulls()
                return self._native.encode_arrow(data, *args)
        batch = _text_tuple(texts)
        try:
            return self._native.encode_batch(batch, *args)
        except Exception as e:
            return self._native.retry_batch(e, batch, *args)

    def _threads(self, threads: int) -> int:
        threads = thread_count(threads)
        # Python cuts words one at a time, whatever the number of threads.
        return 1 if self._native.splits_in_python else min(threads or _cores(), _MAX_THREADS)


def _unit(unit: str) -> int:
    """The unit's number in C."""
    if unit not in _UNITS:
        raise InvalidValueError(f"unit must be 'byte', 'char' or 'utf16', not {unit!r}")
    return _UNITS.index(unit)


def _only_of_str(unit: str, name: str, text: object) -> InvalidValueError:
    return InvalidValueError(
        f"unit {unit!r} is for texts of type str, but {name} is {type(text).__name__}: "
        "use unit='byte'"
    )


def is_column(texts: object) -> bool:
    """Whether they export Arrow data."""
    return hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")


def _text_tuple(texts: types.Texts) -> tuple[types.Text, ...]:
    what = "texts must be an iterable of texts"
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"{what}, not {type(texts).__name__}")
    return tuple(iterated(texts, what))  # type: ignore[arg-type]  # an error if it's none


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
