"""The code of the child process, which runs llama.cpp through one of its Python packages.

A backend loads vocabularies and tokenizes. `serve` answers the parent's requests by calling the
backend's methods.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from ggtok.base.concurrency import read_frame, write_frame
from ggtok.inspect.parity.process import LlamaCppLoadError

# Packages by their names on PyPI: the module to import, and the backend that uses it.
PACKAGES = {
    "xllamacpp": ("xllamacpp", "ggtok.inspect.parity.xllamacpp_backend"),
    "llama-cpp-python": ("llama_cpp", "ggtok.inspect.parity.llama_cpp_backend"),
}


def main(arguments: Sequence[str]) -> None:
    """Serves requests with the package's backend."""
    serve(import_module(PACKAGES[arguments[0]][1]).Backend)


def serve(backend: Any) -> None:
    """Answers requests until the end of input."""
    # Use separate descriptors, so that llama.cpp's output can't mix with the answers.
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    made: Any = None
    while True:
        try:
            what, *args = read_frame(requests)
        except EOFError:
            return
        try:
            made = made or _made(backend)
            answer = getattr(made, what)(*args)
            # Answers are sent one by one. If an item crashes this process, the parent has the
            # earlier answers, and their number identifies the item.
            for item in answer if isinstance(answer, Iterator) else [answer]:
                write_frame(answers, (True, item))
        except LlamaCppLoadError as error:
            write_frame(answers, (False, str(error)))


def _made(backend: Any) -> Any:
    try:
        return backend()
    except (ImportError, OSError, RuntimeError, AttributeError) as e:  # the library doesn't load
        raise LlamaCppLoadError(str(e)) from None
