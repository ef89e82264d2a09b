"""llama.cpp by the package llama-cpp-python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from ggtok.inspect.parity.process import LlamaCppLoadError, Override


class Backend:
    """What the child does with ``llama_cpp.Llama``."""

    def __init__(self) -> None:
        self._package: Any = import_module("llama_cpp")
        self._models: dict[str, Any] = {}

    def check(self) -> None:
        """That it was made is enough."""

    def load(self, path: str, overrides: Mapping[str, Override]) -> None:
        self.free(path)
        try:
            self._models[path] = self._package.Llama(
                model_path=path,
                vocab_only=True,
                kv_overrides=dict(overrides) or None,
                verbose=False,
            )
        except (ValueError, OSError, RuntimeError) as e:  # as it reports what llama.cpp refuses
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
            # It calls llama_tokenize's add_special add_bos.
            yield list(model.tokenize(text, add_bos=add_special, special=parse_special))
