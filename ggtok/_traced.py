"""Text that knows where each of its characters came from.

:class:`Traced` is a ``str`` with labels. It is equal to the plain ``str`` of the
same characters and does all that ``str`` does; what is cut or put together from
it keeps the labels. The rule that makes it safe: **a label is kept or lost, never
gained**. Whatever isn't written out here (and any C function that doesn't know the
class) gives a plain ``str``, which has no labels. So a result is computed by
``str`` itself, and its labels are put together beside it, from slices of the
operands; if the two ways disagree about the text, the labels are dropped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsIndex

from ggtok.errors import TemplateError

# Labels are sums of these.
TEMPLATE = 1  # written in the template: may hold control tokens
GENERATED = 2  # inside {% generation %}

# Consecutive (end, label), ends ascending, neighbours different, the last end the length.
Runs = tuple[tuple[int, int], ...]

# So many that their memory stays near that of the text.
_MAX_RUNS = 1_000_000

# A conversion of the % operator.
PERCENT = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?(?P<how>[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?)[hlL]?(?P<type>.)",
    re.DOTALL,
)


def runs_of(text: str) -> Runs:
    runs: Runs | None = getattr(text, "runs", None)
    if runs is None:
        return ((len(text), 0),) if text else ()
    return runs


def _label(text: object) -> int | None:
    """The one label of a whole text, or None: it has several. Numbers take any label."""
    runs = runs_of(text) if isinstance(text, str) else ()
    return runs[0][1] if len(runs) == 1 else None


def _put_together(text: str, parts: Iterable[str]) -> str:
    """`text`, with the labels of the parts that it should consist of."""
    runs: list[tuple[int, int]] = []
    at = 0
    for part in parts:
        for end, label in runs_of(part):
            if runs and runs[-1][1] == label:
                runs[-1] = at + end, label
            else:
                runs.append((at + end, label))
        at += len(part)
    _check(len(runs))
    return with_runs(text, tuple(runs)) if at == len(text) else _plain(text)


def _check(n_runs: int) -> None:
    if n_runs > _MAX_RUNS:
        raise TemplateError(f"more than {_MAX_RUNS} stretches of the template's and other text")


def with_runs(text: str, runs: Runs) -> str:
    if not any(label for _, label in runs):
        return _plain(text)
    new = str.__new__(Traced, text)
    new.runs = runs
    return new


def _plain(text: str) -> str:
    return str.__str__(text)


def labelled(text: str, label: int) -> str:
    """The text with this label throughout."""
    return with_runs(_plain(text), ((len(text), label),)) if text else ""


def add_label(text: str, label: int) -> str:
    """The text with this label besides those that it has."""
    return _put_together(
        _plain(text), [labelled(_cut(text, a, b), old | label) for a, b, old in spans(text)]
    )


def spans(text: str) -> Iterator[tuple[int, int, int]]:
    """(begin, end, label) of each run."""
    begin = 0
    for end, label in runs_of(text):
        yield begin, end, label
        begin = end


def joined(parts: Iterable[str], separator: str = "") -> str:
    """``separator.join(parts)`` with labels."""
    parts = list(parts)
    text = str.join(separator, parts)
    if not isinstance(separator, Traced) and not any(type(part) is Traced for part in parts):
        return text
    if not separator:
        return _put_together(text, parts)
    return _put_together(
        text, [piece for part in parts for piece in (separator, part)][1:] if parts else []
    )


def _cut(text: str, begin: int, end: int) -> str:
    """``text[begin:end]`` with labels, for 0 <= begin <= end <= len(text)."""
    cut = str.__getitem__(text, slice(begin, end))
    if not isinstance(text, Traced) or not cut:
        return cut
    runs = text.runs
    if len(runs) == 1:
        return with_runs(cut, ((len(cut), runs[0][1]),))
    i = bisect_right(runs, begin, key=lambda run: run[0])
    kept = []
    while True:
        kept.append((min(runs[i][0], end) - begin, runs[i][1]))
        if runs[i][0] >= end:
            return with_runs(cut, tuple(kept))
        i += 1


def _pieces(text: str, pieces: list[str], separator: str | None) -> list[str]:
    """The pieces of a split, from left to right, with labels."""
    found, at = [], 0
    for piece in pieces:
        if separator is None:
            at = str.index(text, piece, at)
        found.append(_cut(text, at, at + len(piece)))
        at += len(piece) + len(separator or "")
    return found


def _same(name: str) -> Any:
    """A method whose result, if all that goes in has one label, has it as well.

    What is made of nothing but the template's own text is the template's.
    """
    plain = getattr(str, name)

    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        result = plain(self, *args, **kwargs)
        label = _label(self)
        for arg in (*args, *kwargs.values()):
            if isinstance(arg, str) and arg and _label(arg) != label:
                label = None
        if not label or not isinstance(result, str):
            return result
        return labelled(result, label)

    method.__name__ = name
    return method


def _cased(name: str) -> Any:
    """A method that changes characters one for one, at least if the length stays."""
    plain = getattr(str, name)

    def method(self: Traced) -> str:
        text: str = plain(self)
        if len(text) == len(self):
            return with_runs(text, self.runs)
        label = _label(self)
        return labelled(text, label) if label else text

    method.__name__ = name
    return method


class Traced(str):
    """A ``str`` whose characters carry labels; see the module."""

    __slots__ = ("runs",)
    runs: Runs

    def __str__(self) -> str:
        return self

    # ---- putting together ----

    def __add__(self, other: str) -> str:
        if type(other) is not str and type(other) is not Traced:
            return NotImplemented  # Markup, Undefined: their own rules
        return joined((self, other))

    def __radd__(self, other: str) -> str:
        if type(other) is not str:
            return NotImplemented
        return joined((other, self))

    def __mul__(self, n: SupportsIndex) -> str:
        text = str.__mul__(self, n)
        label, times = _label(self), n.__index__()
        if label is not None:
            return labelled(text, label)
        _check(len(self.runs) * times)
        return _put_together(text, [self] * times)

    __rmul__ = __mul__

    def join(self, parts: Iterable[str]) -> str:
        return joined(parts, self)

    def __mod__(self, args: Any) -> str:
        text = str.__mod__(self, args)
        values = iter(args if isinstance(args, tuple) else (args,))
        parts, at = [], 0
        for match in PERCENT.finditer(self):
            parts.append(_cut(self, at, match.start()))
            at = match.end()
            if "*" in match["how"]:
                return text
            if match["type"] == "%":
                parts.append(_cut(self, match.start(), match.start() + 1))
                continue
            if match["key"] is None:
                value = next(values, "")
            else:
                value = args[match["key"]] if isinstance(args, Mapping) else ""
            if match["type"] == "s" and not match["how"] and isinstance(value, str):
                parts.append(value)
                continue
            # A number's digits are the template's doing; a character by its number isn't.
            shown = str.__mod__(f"%{match['how']}{match['type']}", (value,))
            digits = match["type"] != "c" and isinstance(value, (int, float))
            parts.append(labelled(shown, runs_at(self, match.start()) if digits else 0))
        parts.append(_cut(self, at, len(self)))
        return _put_together(text, parts) if str.join("", parts) == text else text

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:
        text = str.replace(self, old, new, count)
        label, left = _label(self), count.__index__()
        if label is not None and (not new or _label(new) == label):
            return labelled(text, label)
        if not old:
            return text
        parts, at = [], 0
        while left and (found := str.find(self, old, at)) >= 0:
            parts += [_cut(self, at, found), new]
            at = found + len(old)
            left -= 1
        parts.append(_cut(self, at, len(self)))
        return _put_together(text, parts)

    # ---- cutting ----

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        if not isinstance(key, slice):
            char = str.__getitem__(self, key)
            at = key.__index__() % len(self)
            return labelled(char, runs_at(self, at))
        begin, end, step = key.indices(len(self))
        if step == 1:
            return _cut(self, begin, max(begin, end))
        label = _label(self)
        return labelled(str.__getitem__(self, key), label or 0)

    def __iter__(self) -> Iterator[str]:
        for begin, end, label in spans(self):
            for char in str.__getitem__(self, slice(begin, end)):
                yield labelled(char, label)

    def strip(self, chars: str | None = None, /) -> str:
        return Traced.rstrip(Traced.lstrip(self, chars), chars)  # type: ignore[arg-type]

    def lstrip(self, chars: str | None = None, /) -> str:
        return _cut(self, len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> str:
        return _cut(self, 0, len(str.rstrip(self, chars)))

    def removeprefix(self, prefix: str, /) -> str:
        return _cut(self, len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> str:
        return _cut(self, 0, len(str.removesuffix(self, suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return _pieces(self, str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return _pieces(self, str.rsplit(self, sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        whole = _pieces(self, str.splitlines(self, True), "")
        if keepends:
            return whole
        return [_cut(a, 0, len(b)) for a, b in zip(whole, str.splitlines(self), strict=True)]

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        a, b, c = _pieces(self, list(str.partition(self, sep)), "")
        return a, b, c

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        a, b, c = _pieces(self, list(str.rpartition(self, sep)), "")
        return a, b, c

    # ---- the rest that gives text ----

    upper = _cased("upper")
    lower = _cased("lower")
    casefold = _cased("casefold")
    capitalize = _cased("capitalize")
    title = _cased("title")
    swapcase = _cased("swapcase")

    center = _same("center")
    ljust = _same("ljust")
    rjust = _same("rjust")
    zfill = _same("zfill")


def runs_at(text: str, at: int) -> int:
    """The label of one character."""
    runs = runs_of(text)
    return runs[bisect_right(runs, at, key=lambda run: run[0])][1]
