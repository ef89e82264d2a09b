"""The child's side: llama.cpp by one of the packages that hold it.

A backend loads vocabularies and tokenizes; `serve` answers the parent's requests with its methods.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from ggtok.base.frames import read_frame, write_frame
from ggtok.inspect.parity.process import LlamaCppLoadError

# The packages by their names on PyPI: what they are imported as, and the modules that use them.
PACKAGES = {
    "xllamacpp": ("xllamacpp", "ggtok.inspect.parity.xllamacpp_backend"),
    "llama-cpp-python": ("llama_cpp", "ggtok.inspect.parity.llama_cpp_backend"),
}


def main(arguments: Sequence[str]) -> None:
    """Serves a package's llama.cpp."""
    serve(import_module(PACKAGES[arguments[0]][1]).Backend)


def serve(backend: Any) -> None:
    """Answers requests until there are no more."""
    # The frames get descriptors of their own: nothing that llama.cpp prints may mix with them.
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
            # Several answers go out one by one: should an item kill this process, the others'
            # answers are through, and their number says which one it was.
            for item in answer if isinstance(answer, Iterator) else [answer]:
                write_frame(answers, (True, item))
        except LlamaCppLoadError as error:
            write_frame(answers, (False, str(error)))


def _made(backend: Any) -> Any:
    try:
        return backend()
    except (ImportError, OSError, RuntimeError, AttributeError) as e:  # a library that won't load
        raise LlamaCppLoadError(str(e)) from None
