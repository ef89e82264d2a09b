"""What `pytest --full` runs besides: single cases, and packages that the extra `test` lacks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest


class Lazy:
    """A package that is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def full(*values: object, id: str | None = None) -> Any:
    """A case of a parametrized test that only --full runs."""
    return pytest.param(*values, marks=pytest.mark.full, id=id)
