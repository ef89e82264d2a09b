"""Chat templates: jinja2 as transformers sets it up, with traced text and limits.

**Traced text.** What the template says itself (its text between tags, its string
constants) is labelled ``TEMPLATE``, and the labels live through what templates do
with text (see ``_traced``). So every character of the output tells whether the
template's author or the conversation put it there.

**Limits.** A template comes with a model file, from anywhere. jinja2's sandbox keeps
it from Python's internals, but not from time and memory. Here nothing that a template
can write runs or grows without a check:

- Every loop body, call, filter, test, comparison, slice and operator looks at the
  clock (`_Environment.tick`). What one of them can do at most is bounded by size.
- No text, and no list or mapping with all that it holds, may weigh more than
  ``limit`` (a character is 1, an item `_ITEM`). What could multiply (``*``, ``**``,
  ``replace``, ``join``, widths in formats...) is computed beforehand. Weighing
  containers when they are made also stops ``x = [x, x]``, repeated: 2**n items in n
  lists, over which printing or comparing would not end. The arguments of a call are
  weighed together, for a macro has them as ``varargs``. Lazy filters run at once (`Lazy`).
  All text together that is made in one rendering may weigh `_TOTAL` times the limit.
- Constants aren't folded, so compiling runs nothing of the template.
- Filters of HTML and of debugging, ``lipsum``, ``{% autoescape %}`` and methods that no
  prompt needs (`_METHODS` has those that remain) are errors.

What remains: one operation is not interrupted. On the greatest values it takes tens of
milliseconds, a few (``sort``, ``tojson`` of everything) a second, so that the time limit
is passed by that much; and memory can reach a few bytes for each character of the total.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from datetime import datetime
from functools import lru_cache
from types import BuiltinMethodType, CodeType, GeneratorType, MethodType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.sandbox import (
    ImmutableSandboxedEnvironment,
    SandboxedEscapeFormatter,
    SandboxedFormatter,
)
from jinja2.utils import Namespace, pass_environment
from markupsafe import Markup

from ggtok import _traced
from ggtok._traced import GENERATED, TEMPLATE, Traced
from ggtok.errors import TemplateError

MAX_SOURCE = 100_000  # characters of a template; those in use have up to 17,000
MAX_SECONDS = 10.0
MIN_LIMIT = 8_000_000  # the limit is this, or _PER_INPUT times the input's weight if that is more
_PER_INPUT = 4
_TOTAL = 64
_ITEM = 16
_MAX_HEIGHT = 100  # of nested containers
_MAX_NUMBER = 10_000  # widths, counts; bits of an integer
_MAX_JSON_INDENT = 64


class LimitError(jinja2.TemplateRuntimeError):
    """A template that takes too long or makes too much."""


# ---- values ----


class Items(list[Any]):
    """A list that knows its weight and height, as the next two do."""

    _ggtok_weight: tuple[int, int]


class Pair(tuple[Any, ...]):
    _ggtok_weight: tuple[int, int]


class Fields(dict[Any, Any]):
    _ggtok_weight: tuple[int, int]


class Lazy(Iterator[Any]):
    """What jinja2 gives as a generator: ``map``, ``select``, ``batch``... It has run, for many on
    top of each other would take the stack, and knows its weight. An error waits for its turn,
    which may never come."""

    _ggtok_weight: tuple[int, int]

    def __init__(self, items: Iterator[Any], limit: float) -> None:
        found: list[Any] = []
        self._error: Exception | None = None

        def taken() -> Iterator[Any]:
            try:
                for item in items:
                    found.append(item)
                    yield item
            except LimitError:
                raise
            except (jinja2.TemplateError, TypeError) as e:
                self._error = e

        self._ggtok_weight = _weight_of(taken(), limit)
        self._left = iter(found)

    def __next__(self) -> Any:
        for item in self._left:
            return item
        raise self._error or StopIteration


_WEIGHED = (Items, Pair, Fields, Lazy)
for _cls, _name in zip(_WEIGHED, ("list", "tuple", "dict", "generator"), strict=True):
    _cls.__name__, _cls.__module__ = _name, "builtins"  # for jinja2's messages
_ITERABLE = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


def weight(value: object, limit: float, level: int = 0) -> tuple[int, int]:
    """How much a value weighs with all that it holds, and how high it is nested."""
    if isinstance(value, str):
        return len(value) + _ITEM, 0
    if type(value) in _WEIGHED:
        return value._ggtok_weight  # type: ignore[attr-defined, no-any-return]
    if isinstance(value, Mapping):
        items: Iterable[object] = [item for pair in value.items() for item in pair]
    elif isinstance(value, _ITERABLE):
        items = value
    else:
        return _ITEM, 0
    return _weight_of(items, limit, level)


def _weight_of(items: Iterable[object], limit: float, level: int = 0) -> tuple[int, int]:
    """That of a container with these items."""
    if level > _MAX_HEIGHT:
        raise LimitError(f"lists or mappings are nested more than {_MAX_HEIGHT} deep")
    total, height = _ITEM, 0
    for item in items:
        more, above = weight(item, limit, level + 1)
        total += more
        height = max(height, above + 1)
        if total > limit:
            raise LimitError(f"a list or mapping has more than {limit:.0f} characters and items")
    if height > _MAX_HEIGHT:
        raise LimitError(f"lists or mappings are nested more than {_MAX_HEIGHT} deep")
    return total, height


def weighed(value: Any, limit: float) -> Any:
    """A list, tuple or dict as one that knows its weight."""
    cls = Items if isinstance(value, list) else Pair if isinstance(value, tuple) else Fields
    new: Any = cls(value)
    new._ggtok_weight = weight(value, limit)
    return new


# ---- compiling ----


def _checked(name: str, check: str = "checked") -> Any:
    """A visitor whose expression's value is checked."""
    visit = getattr(CodeGenerator, name)

    def visitor(self: _Generator, node: nodes.Node, frame: Frame, **kwargs: Any) -> None:
        self.write(f"environment.{check}(")
        visit(self, node, frame, **kwargs)
        self.write(")")

    return visitor


def _made(name: str) -> Any:
    """A visitor whose expression is a new container, unless it is assigned to."""
    visit = getattr(CodeGenerator, name)

    def visitor(self: _Generator, node: nodes.Node, frame: Frame) -> None:
        loads = getattr(node, "ctx", "load") == "load"
        self.write("environment.made(" if loads else "(")
        visit(self, node, frame)
        self.write(")")

    return visitor


class _Generator(CodeGenerator):
    """Python code for a template, with labels for its text and calls to what checks it."""

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:  # noqa: N802
        if isinstance(node.value, str):
            self.write(f"environment.own({node.value!r})")
        else:
            super().visit_Const(node, frame)

    def _output_const_repr(self, group: Iterable[Any]) -> str:
        return f"environment.own({''.join(group)!r})"

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if isinstance(node, nodes.TemplateData):
            return node.data
        raise nodes.Impossible  # not when compiling

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.joined((")
        for arg in node.nodes:
            self.visit(arg, frame)
            self.write(", ")
        self.write("))")

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802
        node.body.insert(0, nodes.ExprStmt(nodes.EnvironmentAttribute("tick()")))
        super().visit_For(node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802
        checked = isinstance(node.arg, nodes.Slice)
        self.write("environment.checked(" if checked else "(")
        super().visit_Getitem(node, frame)
        self.write(")")

    def visit_EvalContextModifier(self, node: Any, frame: Frame) -> None:  # noqa: N802
        self.fail("'autoescape' has no place in a chat template", node.lineno)

    visit_ScopedEvalContextModifier = visit_EvalContextModifier  # noqa: N815
    visit_Filter = _checked("visit_Filter", "filtered")  # noqa: N815
    visit_Test = _checked("visit_Test")  # noqa: N815
    visit_Compare = _checked("visit_Compare")  # noqa: N815
    visit_List = _made("visit_List")  # noqa: N815
    visit_Tuple = _made("visit_Tuple")  # noqa: N815
    visit_Dict = _made("visit_Dict")  # noqa: N815


class _Generation(Extension):
    """``{% generation %}...{% endgeneration %}``: what the assistant says."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("mark"), [], [], body).set_lineno(line)

    def mark(self, caller: Callable[[], str]) -> str:
        return _traced.add_label(caller(), GENERATED)


# ---- what templates may call ----

# Without format and format_map, for which `wrap_str_format` gives others.
_TEXT_METHODS = frozenset(
    (
        "capitalize casefold center count endswith expandtabs find index isalnum isalpha isascii "
        "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper "
        "join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust "
        "rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
    ).split()
)
_METHODS: tuple[tuple[Any, frozenset[str]], ...] = (
    (str, _TEXT_METHODS),
    (dict, frozenset({"copy", "fromkeys", "get", "items", "keys", "values"})),
    ((list, tuple, range), frozenset({"copy", "count", "index"})),
    ((int, float), frozenset({"bit_length", "is_integer"})),
)


class _Safe(Markup):
    """What the filter ``safe`` gives, traced: adding to it escapes the rest, as with Markup."""

    __slots__ = ("runs",)
    runs: _traced.Runs

    def __str__(self) -> str:
        return _traced.with_runs(str.__str__(self), _traced.runs_of(self))


def _safe(text: str) -> Markup:
    safe = str.__new__(_Safe, text)
    safe.runs = _traced.runs_of(text)
    return safe


def _escaped(text: str) -> str:
    if isinstance(text, Markup):
        return str(text)
    plain = str.__str__(text)
    return _traced.joined(
        _traced.labelled(str(Markup.escape(plain[begin:end])), label)
        for begin, end, label in _traced.spans(text)
    )


_NO_FILTERS = {"pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"}


class _Dict:
    """The global ``dict``, without the class's attributes."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    def __init__(*args: Any, **kwargs: Any) -> None:
        # `self` may be one of the names.
        self, attributes = args[0], dict(*args[1:], **kwargs)
        for name in attributes:
            _Namespace._check(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _Namespace._check(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"

    @staticmethod
    def _check(name: object) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"a namespace can't have the attribute {name!r}")


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _number(value: object) -> Any:
    if isinstance(value, int) and abs(value) > _MAX_NUMBER:
        raise LimitError(f"a number is greater than {_MAX_NUMBER}")
    return value


def _widths(format: str) -> int:
    """The sum of the numbers in a conversion or a format spec."""
    digits = "".join(c if c.isdigit() else " " for c in format).split()
    return sum(_number(int(n) if len(n) < 10 else 10 * _MAX_NUMBER) for n in digits)


def _capped(name: str) -> Any:
    """jinja2's filter, with no great numbers as arguments."""
    filter = FILTERS[name]
    passed = getattr(filter, "jinja_pass_arg", None)

    def capped(*args: Any, **kwargs: Any) -> Any:
        for arg in (*args[2 if passed else 1 :], *kwargs.values()):
            _number(arg)
        return filter(*args, **kwargs)

    if passed:
        capped.jinja_pass_arg = passed  # type: ignore[attr-defined]
    return capped


@pass_environment
def _filter_join(
    env: _Environment, value: Iterable[Any], d: Any = "", attribute: str | int | None = None
) -> str:
    if attribute is not None:
        value = map(make_attrgetter(env, attribute), value)
    return env.join(str(d), value)


def _filter_safe(value: Any) -> Markup:
    return _safe(str(value))


@pass_environment
def _filter_list(env: _Environment, value: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for item in value:
        found.append(item)
        if len(found) * _ITEM > env.limit:
            env.too_much()
    return found


@pass_environment
def _filter_sum(
    env: _Environment, value: Iterable[Any], attribute: str | int | None = None, start: Any = 0
) -> Any:
    if attribute is not None:
        value = map(make_attrgetter(env, attribute), value)
    total = sum((), start)  # an error if it is a text
    for item in value:
        total = env.call_binop(None, "+", total, item)
    return total


@pass_environment
def _filter_groupby(
    env: _Environment, value: Iterable[Any], attribute: str | int, default: Any = None, *args: Any
) -> Any:
    items = _filter_list(env, value)
    if len(items) * weight(default, env.limit)[0] > env.limit:  # as many keys
        env.too_much()
    return FILTERS["groupby"](env, items, attribute, default, *args)


@pass_environment
def _filter_replace(env: _Environment, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    return env.replace(str(s), str(old), str(new), -1 if count is None else count)


@pass_environment
def _filter_format(env: _Environment, value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise jinja2.TemplateRuntimeError("format takes positional or keyword arguments, not both")
    return env.percent(str(value), kwargs or args)


@pass_environment
def _filter_indent(
    env: _Environment, s: Any, width: int | str = 4, first: bool = False, blank: bool = False
) -> str:
    space = width if isinstance(width, str) else " " * _number(width)
    text = str(s) + "\n"  # else the last newline would be lost
    lines = env.split(text, "splitlines")
    if (len(lines) + 1) * len(space) + len(text) > env.limit:
        env.too_much()
    indented = [lines[0]]
    for line in lines[1:]:
        indented.append(_traced.joined((space, line)) if line or blank else line)
    if first:
        indented[0] = _traced.joined((space, indented[0]))
    return _traced.joined(indented, "\n")


@pass_environment
def _filter_tojson(
    env: _Environment,
    x: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # transformers' arguments. HTML's special characters stay.
    for own in (indent, *(separators or ())):
        if (len(own) if isinstance(own, str) else own or 0) > _MAX_JSON_INDENT:
            raise LimitError(f"tojson: indent or separators beyond {_MAX_JSON_INDENT} characters")
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    weight(x, env.limit)
    if indent is None:
        return encoder.encode(x)
    found, size = [], 0
    for chunk in encoder.iterencode(x):
        found.append(chunk)
        size += len(chunk)
        if size > env.limit:
            env.too_much()
        env.tick()
    return "".join(found)


_FILTERS = {
    **{name: filter for name, filter in FILTERS.items() if name not in _NO_FILTERS},
    **{name: _capped(name) for name in ("batch", "center", "round", "slice", "truncate")},
    "format": _filter_format,
    "groupby": _filter_groupby,
    "indent": _filter_indent,
    "join": _filter_join,
    "list": _filter_list,
    "replace": _filter_replace,
    "safe": _filter_safe,
    "sum": _filter_sum,
    "tojson": _filter_tojson,
}


class _Fields(SandboxedFormatter):
    """Formats as ``str.format`` does and remembers what each field became."""

    def __init__(self, env: Any, **kwargs: Any) -> None:
        super().__init__(env, **kwargs)
        self.env = env
        self.shown: list[tuple[object, str, str]] = []
        self.size = 0

    def format_field(self, value: Any, format_spec: str) -> str:
        _widths(format_spec)
        text: str = super().format_field(value, format_spec)
        self.size += len(text)
        if self.size > self.env.limit:
            self.env.too_much()
        self.shown.append((value, format_spec, text))
        return text


class _EscapedFields(_Fields, SandboxedEscapeFormatter):
    pass


# ---- the environment ----


class _Environment(ImmutableSandboxedEnvironment):
    """Made anew for each rendering, whose budget it keeps."""

    code_generator_class = _Generator
    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self, limit: float, clock: Callable[[], datetime]) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=[_Generation, "jinja2.ext.loopcontrols"],
            cache_size=0,
        )
        self.limit = limit
        self.left = limit * _TOTAL
        self.deadline = time.monotonic() + MAX_SECONDS
        self.clock = clock
        self.owned: dict[str, str] = {}
        self.concat = self.joined  # type: ignore[method-assign]
        self.filters = dict(_FILTERS)
        del self.globals["lipsum"]
        self.globals.update(
            dict=_Dict(),
            namespace=_Namespace,
            raise_exception=_raise_exception,
            strftime_now=self._strftime_now,
        )

    def _strftime_now(self, format: str) -> str:
        _number(len(format))
        return self.clock().strftime(format)

    # Checks.

    def too_much(self) -> NoReturn:
        raise LimitError(f"the template makes more than {self.limit:.0f} characters or items")

    def tick(self) -> None:
        if time.monotonic() > self.deadline:
            raise LimitError(f"the template takes more than {MAX_SECONDS:g} seconds")

    def checked(self, value: Any) -> Any:
        """The value of an expression, if it isn't too large."""
        self.tick()
        if isinstance(value, str):
            self.left -= len(value)
            if len(value) > self.limit:
                self.too_much()
            if self.left < 0:
                raise LimitError(
                    f"the template makes more than {self.limit * _TOTAL:.0f} characters"
                )
        elif isinstance(value, (Mapping, *_ITERABLE)):
            weight(value, self.limit)
        elif isinstance(value, int) and value.bit_length() > _MAX_NUMBER:
            raise LimitError(f"an integer has more than {_MAX_NUMBER} bits")
        return value

    def filtered(self, value: Any) -> Any:
        """What a filter gives."""
        self.tick()
        return Lazy(value, self.limit) if type(value) is GeneratorType else self.checked(value)

    def made(self, container: Any) -> Any:
        self.tick()
        return weighed(container, self.limit)

    # Text.

    def own(self, text: str) -> str:
        """Text that the template holds."""
        own = self.owned.get(text)
        if own is None:
            own = self.owned[text] = _traced.labelled(text, TEMPLATE)
        return own

    def join(self, separator: str, parts: Iterable[Any]) -> str:
        texts: list[str] = []
        size = 0
        for part in parts:
            text = str(part)
            texts.append(text)
            size += len(text) + len(separator)
            if size > self.limit or len(texts) * _ITEM > 4 * self.limit:
                self.too_much()
        text = _traced.joined(texts, separator)
        self.checked(text)
        return text

    def joined(self, parts: Iterable[Any]) -> str:
        return self.join("", parts)

    def replace(self, text: str, old: str, new: str, count: int) -> str:
        grows = len(new) - len(old)
        if grows > 0:
            n = text.count(old)
            if len(text) + grows * (n if count < 0 else min(n, count)) > self.limit:
                self.too_much()
        if type(text) is str and type(new) is Traced:
            return Traced.replace(text, old, new, count)  # type: ignore[arg-type]
        return text.replace(old, new, count)

    def split(self, text: str, how: str, *args: Any, **kwargs: Any) -> list[str]:
        """``text.split(...)``, ``text.rsplit(...)`` or ``text.splitlines(...)``."""
        pieces: list[str] = getattr(str, how)(text, *args, **kwargs)
        if len(pieces) * _ITEM > self.limit:
            self.too_much()
        return getattr(text, how)(*args, **kwargs) if type(text) is not str else pieces

    def percent(self, text: str, args: Any) -> str:
        """The % operator."""
        size = len(text)
        for match in _traced.PERCENT.finditer(text):
            if "*" in match["how"]:
                raise LimitError("a format takes a width from its arguments")
            size += _widths(match["how"])
            if match["key"] is not None and isinstance(args, Mapping):
                size += weight(args.get(match["key"]), self.limit)[0]
            if size > self.limit:
                self.too_much()
        if not isinstance(args, Mapping):
            weight(args, self.limit)
        percent: Any = Markup.__mod__ if isinstance(text, Markup) else Traced.__mod__
        shown: str = percent(text, args)
        return shown

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if not isinstance(value, (MethodType, BuiltinMethodType)):
            return None
        text, name = value.__self__, value.__name__
        if not isinstance(text, str) or name not in ("format", "format_map"):
            return None

        def wrapper(*args: Any, **kwargs: Any) -> str:
            if name == "format_map":
                if kwargs or len(args) != 1:
                    raise TypeError("format_map() takes exactly one argument")
                return self._format(text, (), args[0])
            return self._format(text, args, kwargs)

        return wrapper

    def _format(self, text: str, args: Any, kwargs: Any) -> str:
        # Each field shows an argument, or something in one, at most once.
        fields = text.count("{")
        heaviest = max([weight(v, self.limit)[0] for v in (*args, *kwargs.values())], default=0)
        if fields * heaviest > self.limit:
            self.too_much()
        if isinstance(text, Markup):
            escaping = _EscapedFields(self, escape=text.escape)
            return type(text)(escaping.vformat(text, args, kwargs))
        formatter = _Fields(self)
        shown = formatter.vformat(text, args, kwargs)
        runs = _traced.runs_of(text)
        if len(runs) != 1 or any("{" in (spec or "") for _, _, spec, _ in formatter.parse(text)):
            return shown
        values = iter(formatter.shown)
        parts: list[str] = []
        for literal, field, _, conversion in formatter.parse(text):
            parts.append(_traced.labelled(literal, runs[0][1]))
            if field is None:
                continue
            value, spec, part = next(values)
            if conversion is None and isinstance(value, str) and part == value:
                parts.append(value)
            elif isinstance(value, (int, float)) and not spec.endswith("c"):
                parts.append(_traced.labelled(part, runs[0][1]))
            else:
                parts.append(part)
        traced = _traced.joined(parts)
        return traced if traced == shown else shown

    # Operators and calls.

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            if len(left) + len(right) > self.limit:
                self.too_much()
            if isinstance(left, Markup) or isinstance(right, Markup):
                return self.checked(_safe(self.joined((_escaped(left), _escaped(right)))))
        elif operator == "+" and type(left) is Traced:
            left = str.__str__(left)  # its own rules or error messages
        elif operator == "*":
            for a, n in ((left, right), (right, left)):
                if not isinstance(n, int):
                    continue
                if isinstance(a, int):
                    if a.bit_length() + n.bit_length() > _MAX_NUMBER:
                        raise LimitError(f"an integer has more than {_MAX_NUMBER} bits")
                elif (weight(a, self.limit)[0] - _ITEM) * n > self.limit:
                    self.too_much()
        elif operator == "**":
            both = isinstance(left, int) and isinstance(right, int)
            if both and left.bit_length() * max(right, 0) > _MAX_NUMBER:
                raise LimitError(f"an integer has more than {_MAX_NUMBER} bits")
        elif operator == "%" and isinstance(left, str):
            return self.checked(self.percent(left, right))
        return self.checked(super().call_binop(context, operator, left, right))

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.tick()
        weight(args, self.limit)
        weight(kwargs, self.limit)
        if isinstance(obj, (MethodType, BuiltinMethodType)):
            owner, name = obj.__self__, obj.__name__
            for cls, names in _METHODS:
                if isinstance(owner, cls) and name not in names:
                    raise jinja2.exceptions.SecurityError(
                        f"the method {name!r} of {type(owner).__name__} isn't for templates"
                    )
            if isinstance(owner, str):
                obj = self._text_method(owner, name, obj, args, kwargs)
        return self.checked(super().call(context, obj, *args, **kwargs))

    def _text_method(self, text: str, name: str, method: Any, args: Any, kwargs: Any) -> Any:
        """A method of a text, bounded, and one that keeps labels."""
        if isinstance(text, Markup):
            if name == "join":
                raise LimitError("'join' of safe text: use the filter")
        elif name == "join":
            return lambda parts: self.join(text, _texts(parts))
        elif name == "replace":
            return lambda old, new, count=-1: self.replace(text, old, new, count)
        elif name in ("split", "rsplit", "splitlines"):
            return lambda *args, **kwargs: self.split(text, name, *args, **kwargs)
        elif type(text) is str and name in vars(Traced):
            return lambda *args, **kwargs: getattr(Traced, name)(text, *args, **kwargs)
        for arg in (*args, *kwargs.values()):
            if name in ("center", "ljust", "rjust", "zfill", "expandtabs"):
                _number(arg)
        return method

    def call_filter(self, *args: Any, **kwargs: Any) -> Any:
        return self.filtered(super().call_filter(*args, **kwargs))

    def call_test(self, *args: Any, **kwargs: Any) -> Any:
        return self.checked(super().call_test(*args, **kwargs))


def _texts(parts: Iterable[Any]) -> Iterator[str]:
    """As str.join wants them."""
    for i, part in enumerate(parts):
        if not isinstance(part, str):
            raise TypeError(
                f"sequence item {i}: expected str instance, {type(part).__name__} found"
            )
        yield part


# ---- rendering ----


@lru_cache(maxsize=64)
def _compiled(source: str) -> CodeType:
    if len(source) > MAX_SOURCE:
        raise TemplateError(f"the template is longer than {MAX_SOURCE} characters")
    try:
        return _Environment(0, datetime.now).compile(source)
    except jinja2.TemplateSyntaxError as e:
        raise TemplateError(e.message or "syntax error", e.lineno) from None
    except (RecursionError, MemoryError, SyntaxError, ValueError) as e:
        raise TemplateError(f"can't be compiled: {str(e) or type(e).__name__}") from None


def render(
    source: str, variables: dict[str, Any], *, limit: float, clock: Callable[[], datetime]
) -> str:
    """The text, whose labels tell what the template wrote and what was generated.

    `variables` hold plain data, with the weights that `weighed` gives.
    """
    env = _Environment(max(limit * _PER_INPUT, MIN_LIMIT), clock)
    template = jinja2.Template.from_code(env, _compiled(source), env.globals)
    parts: list[str] = []
    size = 0
    try:
        for part in template.root_render_func(template.new_context(variables)):
            parts.append(part)
            size += len(part)
            if size > env.limit or len(parts) * _ITEM > 4 * env.limit:
                env.too_much()
        return _traced.joined(parts)
    except Exception as e:
        line, trace = None, e.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "<template>":
                line = template.get_corresponding_lineno(trace.tb_lineno)
            trace = trace.tb_next
        own = isinstance(e, (jinja2.TemplateError, TemplateError))
        kind = "" if own else f"{type(e).__name__}: "
        error = TemplateError(f"{kind}{e}", line)
    raise error
