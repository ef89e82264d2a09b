"""The code of the child process, which runs llama.cpp through one of its Python packages.

A backend loads vocabularies and tokenizes. `serve` answers the parent's requests by calling the
backend's methods. For xllamacpp, ctypes calls the shared object, because the package itself, which
isn't imported, has no function that tokenizes.
"""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from ggtok.base.concurrency import read_frame, write_frame
from ggtok.inspect.parity.process import LlamaCppLoadError, Override


def contains(file: Path, text: bytes) -> bool:
    """Whether a file contains the bytes."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(text) >= 0


# ---- the package llama-cpp-python ----


_LIBRARY_SUFFIXES = (".so", ".dylib", ".dll")


class LlamaCppPythonBackend:
    """The child's backend that uses ``llama_cpp.Llama``."""

    def __init__(self) -> None:
        self._package: Any = import_module("llama_cpp")
        self._models: dict[str, Any] = {}

    def check(self) -> None:
        """Does nothing, since the constructor has already imported the package."""

    def knows_key(self, key: str) -> bool:
        """Whether one of the package's libraries contains the key's name."""
        folder = Path(self._package.__file__).parent
        libraries = [path for path in folder.rglob("*llama*") if path.suffix in _LIBRARY_SUFFIXES]
        return any(contains(path, key.encode()) for path in libraries)

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
            # `add_bos` is passed to llama_tokenize as add_special.
            yield list(model.tokenize(text, add_bos=add_special, special=parse_special))


# ---- the package xllamacpp, whose shared object exports the C API ----


class ModelParams(ctypes.Structure):
    """struct llama_model_params from b11549, which is passed and returned by value."""

    _fields_ = [
        ("devices", ctypes.c_void_p),
        ("tensor_buft_overrides", ctypes.c_void_p),
        ("n_gpu_layers", ctypes.c_int32),
        ("split_mode", ctypes.c_int),
        ("load_mode", ctypes.c_int),
        ("lazy_mode", ctypes.c_int),
        ("main_gpu", ctypes.c_int32),
        ("tensor_split", ctypes.c_void_p),
        ("progress_callback", ctypes.c_void_p),
        ("progress_callback_user_data", ctypes.c_void_p),
        ("kv_overrides", ctypes.c_void_p),
        ("vocab_only", ctypes.c_bool),
        ("check_tensors", ctypes.c_bool),
        ("use_extra_bufts", ctypes.c_bool),
        ("no_host", ctypes.c_bool),
        ("no_alloc", ctypes.c_bool),
        ("load_mtp", ctypes.c_bool),
        ("more", ctypes.c_uint8 * 64),  # room for larger structures in other builds
    ]


# Default values in b11549, by which the structure's layout is recognized.
_DEFAULTS = {
    "n_gpu_layers": -1,
    "split_mode": 1,
    "load_mode": -1,
    "lazy_mode": 1,
    "main_gpu": 0,
    "kv_overrides": None,
    "vocab_only": False,
    "check_tensors": False,
    "use_extra_bufts": True,
    "no_host": False,
    "no_alloc": False,
}


class _OverrideValue(ctypes.Union):
    _fields_ = [
        ("int", ctypes.c_int64),
        ("float", ctypes.c_double),
        ("bool", ctypes.c_bool),
        ("str", ctypes.c_char * 128),
    ]


class _Override(ctypes.Structure):
    """struct llama_model_kv_override, in an array that ends with an empty key."""

    _fields_ = [
        ("tag", ctypes.c_int),
        ("key", ctypes.c_char * 128),
        ("value", _OverrideValue),
    ]


_OVERRIDE_TAGS = {int: 0, float: 1, bool: 2, str: 3}


def _override_array(overrides: Mapping[str, Override]) -> Any:
    array = (_Override * (len(overrides) + 1))()
    for item, (key, value) in zip(array, overrides.items(), strict=False):
        item.tag, item.key = _OVERRIDE_TAGS[type(value)], key.encode()
        field = value.encode() if isinstance(value, str) else value
        setattr(item.value, type(value).__name__, field)
    return array


LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_LOG_LEVEL_WARN = 3
_LOG_LEVEL_ERROR = 4

VOID_P, CHAR_P, I32, BOOL = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_bool
I32_P = ctypes.POINTER(ctypes.c_int32)
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "llama_log_set": (None, [LOG_CALLBACK, VOID_P]),
    "llama_model_default_params": (ModelParams, []),
    "llama_model_load_from_file": (VOID_P, [CHAR_P, ModelParams]),
    "llama_model_free": (None, [VOID_P]),
    "llama_model_get_vocab": (VOID_P, [VOID_P]),
    "llama_tokenize": (I32, [VOID_P, CHAR_P, I32, I32_P, I32, BOOL, BOOL]),
}


def shared_object() -> Path:
    """Finds the library in the installed package without importing it, and returns its path."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        raise LlamaCppLoadError("the package xllamacpp is not installed")
    for folder in spec.submodule_search_locations:
        for pattern in ("xllamacpp*.so", "xllamacpp*.pyd"):
            for path in sorted(Path(folder).glob(pattern)):
                return path
    raise LlamaCppLoadError("the xllamacpp package contains no shared object")


class XLlamaCppBackend:
    """The child's backend that calls the shared object, by default the installed package's."""

    # Signatures of more functions, which subclasses may add.
    signatures: ClassVar[Mapping[str, tuple[Any, list[Any]]]] = {}

    def __init__(self, library: str | None = None) -> None:
        self.path = Path(library) if library else shared_object()
        self.lib = ctypes.CDLL(str(self.path))
        for name, (result, arguments) in {**_SIGNATURES, **self.signatures}.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.errors: list[str] = []
        self.callback = LOG_CALLBACK(self.log)
        self.lib.llama_log_set(self.callback, None)
        self.models: dict[str, int] = {}
        self.warned: list[str] = []
        self.warnings: dict[str, list[str]] = {}

    def check(self) -> None:
        """Raises LlamaCppLoadError if the structures differ from those of b11549."""
        params = self.lib.llama_model_default_params()
        if any(getattr(params, name) != value for name, value in _DEFAULTS.items()):
            raise LlamaCppLoadError(
                "its llama.cpp has other structures than build b11549, so ggtok can't call it: "
                "pip install xllamacpp==2026.10.11549"
            )

    def build(self) -> str:
        """Returns what the library says about its version, or ""."""
        names = []
        for function, what in (("ggml_version", "ggml"), ("ggml_commit", "commit")):
            if call := getattr(self.lib, function, None):
                call.restype = CHAR_P
                value = (call() or b"").decode("utf-8", "replace")
                names += [f"{what} {value}"] if value not in ("", "unknown") else []
        return ", ".join(names)

    def knows_key(self, key: str) -> bool:
        """Whether the library contains the key's name."""
        return contains(self.path, key.encode())

    def log(self, level: int, text: bytes, _: object) -> None:
        if level == _LOG_LEVEL_ERROR:
            self.errors.append(text.decode("utf-8", "replace").strip())
        elif level == _LOG_LEVEL_WARN:
            self.warned.append(text.decode("utf-8", "replace").strip())

    def model(self, path: str, overrides: Mapping[str, Override] | None = None) -> int:
        if path not in self.models:
            params = self.lib.llama_model_default_params()
            params.vocab_only = True
            array = _override_array(overrides or {})
            params.kv_overrides = ctypes.addressof(array)
            self.errors.clear()
            self.warned.clear()
            model = self.lib.llama_model_load_from_file(os.fsencode(path), params)
            if not model:
                raise LlamaCppLoadError("; ".join(self.errors))
            self.models[path] = model
            self.warnings[path] = list(self.warned)
        return self.models[path]

    def vocab(self, path: str) -> int:
        vocab: int = self.lib.llama_model_get_vocab(self.model(path))
        return vocab

    def load(self, path: str, overrides: Mapping[str, Override]) -> None:
        self.free(path)  # the file may have changed
        self.model(path, overrides)

    def free(self, path: str) -> None:
        if path in self.models:
            self.lib.llama_model_free(self.models.pop(path))

    def tokenize(
        self, path: str, texts: list[bytes], add_special: bool, parse_special: bool
    ) -> Iterator[list[int]]:
        vocab = self.vocab(path)
        for text in texts:

            def call(buffer: Any, n: int, text: bytes = text) -> int:
                used: int = self.lib.llama_tokenize(
                    vocab, text, len(text), buffer, n, add_special, parse_special
                )
                return used

            yield list(resizing(ctypes.c_int32, len(text) + 16, call))


def resizing(kind: Any, n: int, call: Callable[[Any, int], int]) -> Any:
    """Repeats a call with larger buffers while the result is negative: minus the size needed.

    llama_detokenize may need several calls, because it returns the size before it cleans up spaces.
    """
    while True:
        buffer = (kind * n)()
        used = call(buffer, n)
        if used >= 0:
            return buffer[:used]
        n = -used


# ---- the child process ----

# The module to import and the backend that uses it, for each package on PyPI.
PACKAGES: dict[str, tuple[str, type]] = {
    "xllamacpp": ("xllamacpp", XLlamaCppBackend),
    "llama-cpp-python": ("llama_cpp", LlamaCppPythonBackend),
}


LIBRARY = "library"  # the argument before the path of a library that the user names


def main(arguments: Sequence[str]) -> None:
    """Serves requests with the package's backend, or with a library."""
    if arguments[0] == LIBRARY:
        serve(partial(XLlamaCppBackend, arguments[1]))
    else:
        serve(PACKAGES[arguments[0]][1])


def serve(backend: Any) -> None:
    """Answers requests until the end of input."""
    # Use separate descriptors, so that llama.cpp's output can't mix with the answers.
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    instance: Any = None
    while True:
        try:
            what, *args = read_frame(requests)
        except EOFError:
            return
        try:
            instance = instance or _create(backend)
            answer = getattr(instance, what)(*args)
            # Answers are sent one by one. If an item crashes this process, the parent has the
            # earlier answers, whose number identifies the item.
            for item in answer if isinstance(answer, Iterator) else [answer]:
                write_frame(answers, (True, item))
        except LlamaCppLoadError as error:
            write_frame(answers, (False, str(error)))


def _create(backend: Any) -> Any:
    try:
        return backend()
    except (ImportError, OSError, RuntimeError, AttributeError) as e:  # the library can't be loaded
        raise LlamaCppLoadError(str(e)) from None
