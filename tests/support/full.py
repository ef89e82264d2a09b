"""Test cases and packages for `pytest --full` only."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest


class Lazy:
    """A package, or a name in it, that is imported on first use."""

    def __init__(self, package: str, name: str | None = None) -> None:
        self._package, self._name = package, name

    def _imported(self) -> Any:
        module = import_module(self._package)
        return getattr(module, self._name) if self._name else module

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks up such names during collection
            raise AttributeError(attribute)
        return getattr(self._imported(), attribute)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._imported()(*arguments, **options)


def full(*values: object, id: str | None = None) -> Any:
    """Returns a parametrized case that runs only with --full."""
    return pytest.param(*values, marks=pytest.mark.full, id=id)
