"""Templates as this package uses them: the engine's, with prompts for what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from ggtok.chat.prompt import Prompt
from ggtok.errors import TemplateError
from ggtok.native import jinja

# What C gives for a conversation instead of ids, and the error that this means.
Failed, error_of = jinja.FailedError, jinja.error_of
Dialect = Literal["llama.cpp", "transformers"]
Path = tuple[str | int, ...]  # to a value inside the variables


class Use(Protocol):
    """What a rendering did with a value that was given to it."""

    @property
    def used(self) -> bool: ...

    @property
    def operations(self) -> frozenset[str]:
        """Of array_access, object_access, test_is_string and selectattr."""
        ...


class Template:
    """A compiled template; any number of threads may use it."""

    __slots__ = ("_template",)

    def __init__(self, source: str, dialect: Dialect) -> None:
        self._template = jinja.compile(source, dialect)

    @property
    def variables(self) -> frozenset[str]:
        """Names that it reads."""
        return self._template.variables

    @property
    def compiled(self) -> object:
        """What C takes."""
        return self._template.compiled

    def render(self, variables: Mapping[str, Any], now: datetime | None = None) -> Prompt:
        text, ranges, generated = self._template.render(variables, now)
        if isinstance(text, bytes):
            raise TemplateError("the template cuts a character in two")
        return Prompt(text, ranges, generated)

    def probe(
        self, variables: Mapping[str, Any], paths: Sequence[Path]
    ) -> tuple[str | None, Sequence[Use]]:
        """The text, or None if it failed, and what was done with the values at `paths`."""
        return self._template.probe(variables, paths)


def compile_llama(source: str) -> Template:
    """A template in llama.cpp's dialect."""
    return Template(source, "llama.cpp")


def compile_transformers(source: str) -> Template:
    """A template in jinja2's dialect, as transformers sets it up."""
    return Template(source, "transformers")
