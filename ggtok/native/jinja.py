"""Chat templates: compiled once, rendered by the C engine in ``cext/jinja``.

Two dialects: llama.cpp's (``"llama.cpp"``) as its build b11549 runs it, and jinja2's as
transformers sets it up (``"transformers"``). Values are plain data: str, int, float, bool,
None, and lists, tuples and dicts of them. A subclass of str may have an attribute ``ranges``,
a tuple of (begin, end) in bytes of its UTF-8: what lies there counts as the template's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ggtok._ffi import lib
from ggtok.errors import GGTokError, OutOfMemoryError, TemplateError

Dialect = Literal["llama.cpp", "transformers"]
Ranges = tuple[tuple[int, int], ...]
Path = tuple[str | int, ...]
_DIALECTS: dict[str, int] = {"llama.cpp": 0, "transformers": 1}
_OPERATIONS = {2: "array_access", 4: "object_access", 8: "test_is_string", 16: "selectattr"}
_OUT_OF_MEMORY = 1


class FailedError(Exception):
    """What the C functions raise: (status, message, line or None, that line)."""


_functions: list[Any] = []
if not lib.ggtok_jinja_bind(id(_functions), id(FailedError)):
    raise OutOfMemoryError("out of memory")  # pragma: no cover
_compile, _variables, _render, _probe = _functions


class Rendered(NamedTuple):
    """A text and half-open ranges of it, in bytes of UTF-8, ascending.

    text: ``bytes`` where llama.cpp's dialect has cut a character in two.
    ranges: what the template itself wrote.
    generated: what stands inside ``{% generation %}`` blocks.
    """

    text: str | bytes
    ranges: Ranges
    generated: Ranges


@dataclass(frozen=True)
class Use:
    """What a rendering did with a value that it was given.

    used: whether it was looked at; operations: some of llama.cpp's names for how:
    ``array_access``, ``object_access``, ``test_is_string``, ``selectattr``.
    """

    used: bool
    operations: frozenset[str]


class Template:
    """A compiled template; any number of threads may use it."""

    __slots__ = ("compiled", "dialect", "variables")

    def __init__(self, source: str, dialect: Dialect) -> None:
        self.dialect = dialect
        self.compiled: object = _called(_compile, source, _DIALECTS[dialect])
        #: Names that it reads, but for those that the dialect itself gives a meaning.
        self.variables: frozenset[str] = frozenset(_variables(self.compiled))

    def render(self, variables: Mapping[str, Any], now: datetime | None = None) -> Rendered:
        """The text for these variables; `now` (default: local time) is what strftime_now shows.

        Raises TemplateError if the template fails or takes more than its budget; TypeError
        or ValueError for values that are no plain data.
        """
        values = variables if type(variables) is dict else dict(variables)
        return Rendered(*_called(_render, self.compiled, values, fields_of(now)))

    def probe(
        self, variables: Mapping[str, Any], paths: Iterable[Path], now: datetime | None = None
    ) -> tuple[str | None, list[Use]]:
        """The text, or None if the template fails, and what it did with values of `variables`.

        A path is a variable's name and the keys and indices that lead from its value to one
        inside. A path of a name alone is about the value that the variable has in the end.
        """
        text, notes = _called(_probe, self.compiled, dict(variables), fields_of(now), list(paths))
        return text, [
            Use(bool(note), frozenset(name for bit, name in _OPERATIONS.items() if note & bit))
            for note in notes
        ]


def compile(source: str, dialect: Dialect) -> Template:
    """The compiled template. Raises TemplateError, which names what the dialect lacks."""
    return Template(source, dialect)


def _called(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except FailedError as e:
        failed = e
    raise error_of(failed)


def error_of(failed: FailedError) -> GGTokError:
    return _error(*failed.args)


def _error(status: int, message: str, line: int | None, source: str) -> GGTokError:
    if status == _OUT_OF_MEMORY:
        return OutOfMemoryError(message)
    return TemplateError(f"{message}, in: {source}" if source else message, line)


def fields_of(now: datetime | None) -> tuple[Any, ...]:
    """What C takes for a time; None is now."""
    if now is None:
        now = datetime.now().astimezone()
    offset = now.utcoffset()
    seconds = None if offset is None else int(offset.total_seconds())
    zone = now.tzname() or ""
    return (*now.timetuple()[:6], now.microsecond, seconds, zone, int(bool(now.dst())))
