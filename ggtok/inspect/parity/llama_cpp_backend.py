"""llama.cpp through the package llama-cpp-python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from ggtok.inspect.parity.process import LlamaCppLoadError, Override


class Backend:
    """The child's backend that uses ``llama_cpp.Llama``."""

    def __init__(self) -> None:
        self._package: Any = import_module("llama_cpp")
        self._models: dict[str, Any] = {}

    def check(self) -> None:
        """Nothing to check: the constructor has imported the package."""

    def load(self, path: str, overrides: Mapping[str, Override]) -> None:
        self.free(path)
        try:
            self._models[path] = self._package.Llama(
                model_path=path,
                vocab_only=True,
                kv_overrides=dict(overrides) or None,
                verbose=False,
            )
        except (ValueError, OSError, RuntimeError) as e:  # llama.cpp refused the file
            raise LlamaCppLoadError(str(e)) from None

    def free(self, path: str) -> None:
        model = self._models.pop(path, None)
        if model is not None:
            model.close()

    def tokenize(
        self, path: str, texts: list[bytes], add_special: bool, parse_special: bool
    ) -> Iterator[list[int]]:
        model = self._models[path]
        for text in texts:
            # `add_bos` is llama_tokenize's add_special.
            yield list(model.tokenize(text, add_bos=add_special, special=parse_special))
