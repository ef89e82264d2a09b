"""Builds the C programs in tests/c, each once."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

from tests.c.build import COMPILER, build


class Build(Protocol):
    """A function that builds a program with compiler flags, and caches the result."""

    def __call__(self, program: str, *flags: str) -> Path: ...


def builder(factory: pytest.TempPathFactory) -> Build:
    if sys.platform == "win32" or not COMPILER:
        pytest.skip("needs a C compiler named cc or in $CC")
    base = factory.getbasetemp()
    # Share the objects among pytest-xdist's workers, whose folders have a common parent.
    objects = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "objects"

    @cache
    def built(program: str, *flags: str) -> Path:
        out = factory.mktemp(program) / program
        build(out, flags, program=program, objects=objects)
        return out

    return built
