"""Compiles and renders chat templates with the C engine in ``cext/jinja``.

There are two dialects: ``"llama.cpp"``, as in build b11549, and ``"transformers"``, jinja2 as
transformers configures it. Values are plain data: str, int, float, bool, None, and lists, tuples
and dicts of these. A subclass of str may have an attribute ``ranges``, a tuple of (begin, end)
pairs of UTF-8 byte offsets: text in these ranges counts as the template's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ggtok.errors import OutOfMemoryError, TemplateError
from ggtok.native.chat_calls import FailedError, error_of
from ggtok.native.library import lib

Dialect = Literal["llama.cpp", "transformers"]
Ranges = tuple[tuple[int, int], ...]
Path = tuple[str | int, ...]
_DIALECTS: dict[str, int] = {
    "llama.cpp": lib.JINJA_LLAMA_CPP,
    "transformers": lib.JINJA_TRANSFORMERS,
}
_OPERATIONS: dict[int, str] = {
    lib.JINJA_NOTE_ARRAY_ACCESS: "array_access",
    lib.JINJA_NOTE_OBJECT_ACCESS: "object_access",
    lib.JINJA_NOTE_IS_STRING: "test_is_string",
    lib.JINJA_NOTE_SELECTATTR: "selectattr",
}


_functions: list[Any] = []
if not lib.ggtok_jinja_bind(id(_functions), id(FailedError)):
    raise OutOfMemoryError("out of memory")  # pragma: no cover
_compile, _variables, _render, _probe = _functions


class RenderedText(NamedTuple):
    """A rendered text. Ranges are half-open, ascending, and in bytes of UTF-8.

    Attributes:
        text: the text; ``bytes`` if llama.cpp's dialect has split a character.
        ranges: the template's own text.
        generated: the text inside ``{% generation %}`` blocks.
    """

    text: str | bytes
    ranges: Ranges
    generated: Ranges


@dataclass(frozen=True)
class Use:
    """How a template used a value when it was rendered.

    Attributes:
        used: whether the value was read.
        operations: the operations that the template applied to the value, by llama.cpp's names:
            any of ``array_access``, ``object_access``, ``test_is_string`` and ``selectattr``.
    """

    used: bool
    operations: frozenset[str]


class Template:
    """A compiled template; any number of threads may use it."""

    __slots__ = ("compiled", "dialect", "variables")

    def __init__(self, source: str, dialect: Dialect) -> None:
        self.dialect = dialect
        try:  # a template from a file may contain any bytes
            data = source.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as e:
            raise TemplateError(f"character {e.start} is a lone surrogate") from None
        self.compiled: object = _call_function(_compile, data, _DIALECTS[dialect])
        #: The variables that the template reads, except those that the dialect defines.
        self.variables: frozenset[str] = frozenset(_variables(self.compiled))

    def render(self, variables: Mapping[str, Any], now: datetime | None = None) -> RenderedText:
        """Renders the template with these variables. `now` is the time for strftime_now, by default
        the local time.

        Raises:
            TemplateError: the template fails, or exceeds its limits.
            TypeError, ValueError: a value isn't plain data.
        """
        values = variables if type(variables) is dict else dict(variables)
        return RenderedText(*_call_function(_render, self.compiled, values, fields_of(now)))

    def probe(
        self, variables: Mapping[str, Any], paths: Iterable[Path], now: datetime | None = None
    ) -> tuple[str | None, list[Use]]:
        """Returns the text (None if the template fails), and how it used the value at each path.

        A path is a variable's name, followed by keys and indices into its value. If the path is
        only a name and the template reassigns the variable, the last value counts.
        """
        text, notes = _call_function(
            _probe, self.compiled, dict(variables), fields_of(now), list(paths)
        )
        return text, [
            Use(bool(note), frozenset(name for bit, name in _OPERATIONS.items() if note & bit))
            for note in notes
        ]


def compile(source: str, dialect: Dialect) -> Template:
    """Compiles a template. Raises TemplateError for errors and for features the dialect lacks."""
    return Template(source, dialect)


def _call_function(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except FailedError as e:
        failed = e
    raise error_of(failed)


def fields_of(now: datetime | None) -> tuple[Any, ...]:
    """Converts a time (None: the current time) to the tuple that C expects."""
    if now is None:
        now = datetime.now().astimezone()
    offset = now.utcoffset()
    seconds = None if offset is None else int(offset.total_seconds())
    zone = now.tzname() or ""
    return (*now.timetuple()[:6], now.microsecond, seconds, zone, int(bool(now.dst())))
