"""Wraps compiled templates: renders to `Prompt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from ggtok.chat.prompt import Prompt
from ggtok.errors import TemplateError
from ggtok.native import jinja

# C's result for a conversation that fails, and its conversion to a public error.
Failed, error_of = jinja.FailedError, jinja.error_of
Dialect = Literal["llama.cpp", "transformers"]
Path = tuple[str | int, ...]  # to a value inside the variables


class Use(Protocol):
    """How a rendering used a value."""

    @property
    def used(self) -> bool: ...

    @property
    def operations(self) -> frozenset[str]:
        """Some of array_access, object_access, test_is_string and selectattr."""
        ...


class Template:
    """A compiled template; any number of threads may use it."""

    __slots__ = ("_template",)

    def __init__(self, source: str, dialect: Dialect) -> None:
        self._template = jinja.compile(source, dialect)

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the template reads."""
        return self._template.variables

    @property
    def compiled(self) -> object:
        """The object for C."""
        return self._template.compiled

    def render(self, variables: Mapping[str, Any], now: datetime | None = None) -> Prompt:
        text, ranges, generated = self._template.render(variables, now)
        if isinstance(text, bytes):
            raise TemplateError("the template splits a character")
        return Prompt(text, ranges, generated)

    def probe(
        self, variables: Mapping[str, Any], paths: Sequence[Path]
    ) -> tuple[str | None, Sequence[Use]]:
        """The text, or None if rendering failed, and how the values at `paths` were used."""
        return self._template.probe(variables, paths)


def compile_llama(source: str) -> Template:
    """A template in llama.cpp's dialect."""
    return Template(source, "llama.cpp")


def compile_transformers(source: str) -> Template:
    """A template in jinja2's dialect, as transformers configures it."""
    return Template(source, "transformers")
