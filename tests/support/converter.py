"""llama.cpp's own converter, run on folders without weights.

It is the sdist's, in a process of its own, with a stand-in for torch, of which it needs only
names as long as there are no tensors.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import runpy
import subprocess
import sys
import types
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from fixtures.fetch import fetch

SECONDS = 300


class _Torch(types.ModuleType):
    """Whatever is asked for is a class of that name."""

    inference_mode = nullcontext

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {"__init__": lambda self, *a, **k: None})
        setattr(self, name, value)
        return value


@cache
def folder() -> Path:
    """The converter's folder."""
    return fetch("converter")


class ConverterRefused(Exception):
    """The converter would not do it; the text is what it said."""


def convert(source: Path, out: Path, pre: str = "") -> Path:
    """The GGUF file, without tensors, that it writes for a folder.

    pre: the pre-tokenizer's name, in place of the one that it has for a hash of ids.
    """
    command = [
        sys.executable,
        "-m",
        "tests.support.converter",
        str(folder()),
        str(source),
        str(out),
        pre,
    ]
    env = dict(os.environ, HF_HUB_OFFLINE="1", USE_TORCH="0", PYTHONWARNINGS="ignore")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise ConverterRefused(done.stderr[-20000:])
    return out


def _main(root: str, source: str, out: str, pre: str) -> None:
    torch = _Torch("torch")
    torch.__path__ = []
    torch.__version__ = "0.0.0"
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    import transformers  # before the stand-in, so that it knows there is no torch

    transformers.AutoTokenizer  # noqa: B018
    sys.modules["torch"] = torch
    sys.path.insert(0, root)
    if pre:
        base = importlib.import_module("conversion.base")
        base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    script = os.path.join(root, "convert_hf_to_gguf.py")
    sys.argv = [script, source, "--vocab-only", "--outfile", out, "--outtype", "f16"]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    _main(*sys.argv[1:])
