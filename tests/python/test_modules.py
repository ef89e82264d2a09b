"""The package's modules: what they import, and how C functions are bound."""

from __future__ import annotations

import os
import subprocess
import sys
from inspect import isbuiltin
from pathlib import Path

import ggtok
from ggtok.native import Native


def test_c_functions_are_bound_by_name() -> None:
    loaded = ggtok.load(Path(__file__).parents[2] / "fixtures/gguf/bpe-gpt2.gguf")._loaded
    declared = {name for name in Native.__annotations__ if not name.startswith("_")}
    assert declared == {name for name, value in vars(loaded).items() if isbuiltin(value)}
    for name in declared:
        assert getattr(loaded, name).__name__ == name


def run(code: str, *arguments: object, **environment: str) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_without_the_c_module_names_pip() -> None:
    code = "import sys; sys.modules['ggtok._ffi'] = None\ntry: import ggtok\n"
    assert "pip install" in run(code + "except ImportError as error: print(error)")


def test_import_without_cffi_names_cffi() -> None:
    """The error names the missing module, and doesn't suggest that ggtok was installed wrongly."""
    code = "import sys; sys.modules['_cffi_backend'] = None\ntry: import ggtok\n"
    assert run(code + "except ImportError as error: print(error.name)") == "_cffi_backend\n"
