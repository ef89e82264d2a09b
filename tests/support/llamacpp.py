"""The live reference: llama.cpp b11549, driven in a worker process.

The `xllamacpp` wheel carries all of llama.cpp in one shared object that exports
the C API; ctypes calls it. Some inputs abort or overflow the stack there, so it
lives in a child process: a death becomes `LlamaCppDied`, and the next request
starts a new child and loads its vocabularies again.

    with LlamaCpp() as llama:
        vocab = llama.load("model.gguf")
        vocab.tokenize(b"Hello", add_special=True, parse_special=False)
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

SPECIAL_NAMES = (
    "bos eos eot sep nl pad mask fim_pre fim_suf fim_mid fim_pad fim_rep fim_sep"
).split()
VOCAB_TYPES = ("NONE", "SPM", "BPE", "WPM", "UGM", "RWKV", "PLAMO2", "TEST", "PLAMO3")

REQUEST_SECONDS = 600.0

Override = int | float | bool | str


class LlamaCppError(Exception):
    """Something the reference would not do."""


class LlamaCppLoadError(LlamaCppError):
    """The reference refused a file; the text is what it logged."""


class LlamaCppDied(LlamaCppError):
    """The reference crashed (or hung) on a request."""

    def __init__(self, request: str, status: int | None) -> None:
        super().__init__(f"llama.cpp died (status {status}) on {request}")
        self.request = request
        self.status = status


@dataclass(frozen=True)
class Facts:
    """All that the C API tells about a vocabulary."""

    n_tokens: int
    vocab_type: str
    special: dict[str, int | None]
    add_bos: bool
    add_eos: bool
    add_sep: bool
    suppress_tokens: list[int]
    chat_template: str | None
    # One entry a token; empty for vocabularies of type NONE.
    texts: list[bytes]
    scores: list[float]
    attrs: list[int]
    eog: list[bool]
    control: list[bool]

    @property
    def eog_ids(self) -> frozenset[int]:
        return frozenset(i for i, is_eog in enumerate(self.eog) if is_eog)


class Vocab:
    """A vocabulary loaded in the worker."""

    def __init__(self, owner: LlamaCpp, path: str) -> None:
        self._owner = owner
        self.path = path

    def _ask(self, what: str, *args: Any) -> Any:
        return self._owner._request(what, self.path, *args)

    def tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        return self.tokenize_many([text], add_special, parse_special)[0]

    def tokenize_many(
        self, texts: Sequence[bytes], add_special: bool, parse_special: bool
    ) -> list[list[int]]:
        ids: list[list[int]] = []
        self._owner._requests(ids, "tokenize", self.path, list(texts), add_special, parse_special)
        return ids

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        return self.detokenize_many([ids], remove_special, unparse_special)[0]

    def detokenize_many(
        self, ids: Sequence[Sequence[int]], remove_special: bool, unparse_special: bool
    ) -> list[bytes]:
        lists = [list(i) for i in ids]
        texts: list[bytes] = []
        self._owner._requests(
            texts, "detokenize", self.path, lists, remove_special, unparse_special
        )
        return texts

    def survivors(
        self, texts: Sequence[bytes], add_special: bool, parse_special: bool
    ) -> list[list[int] | None]:
        """tokenize_many with None for each text that kills the reference."""
        ids: list[list[int] | None] = []
        while len(ids) < len(texts):
            rest = list(texts[len(ids) :])
            try:
                self._owner._requests(ids, "tokenize", self.path, rest, add_special, parse_special)
            except LlamaCppDied:
                ids.append(None)
        return ids

    def pieces(
        self, special: bool, lstrip: int = 0, ids: Sequence[int] | None = None
    ) -> list[bytes]:
        """llama_token_to_piece of these tokens, by default of all."""
        pieces: list[bytes] = self._ask("pieces", special, lstrip, ids)
        return pieces

    def facts(self) -> Facts:
        return Facts(**self._ask("facts"))

    def warnings(self) -> list[str]:
        """What was logged as a warning when it was loaded."""
        warnings: list[str] = self._ask("load_warnings")
        return warnings

    def free(self) -> None:
        """Frees the worker's copy; the next request loads it again."""
        self._ask("free")


class LlamaCpp:
    """A worker process, started at need and restarted when it died.

    `library` is the shared object to drive; by default the installed wheel's.
    """

    def __init__(self, library: Path | None = None) -> None:
        self._library = library
        self._child: subprocess.Popen[bytes] | None = None
        self._overrides: dict[str, dict[str, Override]] = {}

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._reap()

    def load(
        self, path: str | os.PathLike[str], overrides: Mapping[str, Override] | None = None
    ) -> Vocab:
        """Loads a file, with values in place of its own (``kv_overrides``). A file is loaded
        once at a time: what was loaded from it before has these values now, too."""
        vocab = Vocab(self, os.fspath(Path(path).resolve()))
        self._overrides[vocab.path] = dict(overrides or {})
        self._request(*self._load_request(vocab.path))
        return vocab

    def chat(self, template: str, messages: Sequence[tuple[str, str]]) -> str | None:
        """llama_chat_apply_template, with the prompt for an answer; None: it knows no such one."""
        pairs = [(role.encode(), content.encode()) for role, content in messages]
        text: bytes | None = self._request("chat", template.encode(), pairs)
        return None if text is None else text.decode()

    def drafts(self, target: Vocab, draft: Vocab) -> bool:
        """common_speculative_are_compatible."""
        may: bool = self._request("drafts", target.path, draft.path)
        return may

    def _load_request(self, path: str) -> tuple[Any, ...]:
        return "load", path, self._overrides.get(path, {})

    def _reap(self) -> int | None:
        child, self._child = self._child, None
        if child is None:
            return None
        status = child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # what it never read
                pipe.close()
        return status

    def _start(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            # Without GGML_NO_BACKTRACE an abort starts a debugger.
            env = dict(os.environ, GGML_NO_BACKTRACE="1")
            self._child = subprocess.Popen(
                [sys.executable, __file__, *([self._library] if self._library else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=env,
            )
        return self._child

    def _request(self, *request: Any) -> Any:
        answers: list[Any] = []
        self._exchange(request, 1, answers)
        return answers[0]

    def _requests(
        self, answers: list[Any], what: str, path: str, items: list[Any], *flags: bool
    ) -> None:
        """Appends an answer for each item; after a death, those for the items before it."""
        before = len(answers)
        try:
            self._exchange((what, path, items, *flags), len(items), answers)
        except LlamaCppDied as death:
            # The load can die as well, and then no item is to blame.
            self._request(*self._load_request(path))
            killer = items[len(answers) - before]
            raise LlamaCppDied(repr((what, path, killer, *flags)), death.status) from None

    def _exchange(self, request: tuple[Any, ...], n: int, answers: list[Any]) -> None:
        child = self._start()
        assert child.stdin is not None and child.stdout is not None
        watchdog = threading.Timer(REQUEST_SECONDS, child.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            _write_frame(child.stdin, request)
            for _ in range(n):
                ok, answer = _read_frame(child.stdout)
                if not ok:
                    raise LlamaCppLoadError(answer)
                answers.append(answer)
        except LlamaCppLoadError:
            raise
        except (EOFError, BrokenPipeError):
            raise LlamaCppDied(repr(request), self._reap()) from None
        except BaseException:
            self.close()  # an answer left in the pipe would be taken for the next one's
            raise
        finally:
            watchdog.cancel()


def _write_frame(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def _read_frame(pipe: IO[bytes]) -> Any:
    size = pipe.read(8)
    if len(size) < 8:
        raise EOFError
    n = struct.unpack("<Q", size)[0]
    data = pipe.read(n)
    if len(data) < n:
        raise EOFError
    return pickle.loads(data)


# ---- the worker ----


class _ModelParams(ctypes.Structure):
    """struct llama_model_params of b11549; passed and returned by value."""

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
    ]


class _ChatMessage(ctypes.Structure):
    """struct llama_chat_message."""

    _fields_ = [("role", ctypes.c_char_p), ("content", ctypes.c_char_p)]


class _OverrideValue(ctypes.Union):
    _fields_ = [
        ("int", ctypes.c_int64),
        ("float", ctypes.c_double),
        ("bool", ctypes.c_bool),
        ("str", ctypes.c_char * 128),
    ]


class _Override(ctypes.Structure):
    """struct llama_model_kv_override; the last of an array has an empty key."""

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


_LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_LOG_LEVEL_WARN = 3
_LOG_LEVEL_ERROR = 4
_NULL_TOKEN = -1

_VOID_P, _CHAR_P, _I32, _BOOL = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_bool
_I32_P = ctypes.POINTER(ctypes.c_int32)
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "llama_log_set": (None, [_LOG_CALLBACK, _VOID_P]),
    "llama_model_default_params": (_ModelParams, []),
    "llama_model_load_from_file": (_VOID_P, [_CHAR_P, _ModelParams]),
    "llama_model_free": (None, [_VOID_P]),
    "llama_model_get_vocab": (_VOID_P, [_VOID_P]),
    "llama_model_chat_template": (_CHAR_P, [_VOID_P, _CHAR_P]),
    "llama_vocab_type": (ctypes.c_int, [_VOID_P]),
    "llama_vocab_n_tokens": (_I32, [_VOID_P]),
    "llama_vocab_get_text": (_CHAR_P, [_VOID_P, _I32]),
    "llama_vocab_get_score": (ctypes.c_float, [_VOID_P, _I32]),
    "llama_vocab_get_attr": (ctypes.c_int, [_VOID_P, _I32]),
    "llama_vocab_is_eog": (_BOOL, [_VOID_P, _I32]),
    "llama_vocab_is_control": (_BOOL, [_VOID_P, _I32]),
    "llama_vocab_get_add_bos": (_BOOL, [_VOID_P]),
    "llama_vocab_get_add_eos": (_BOOL, [_VOID_P]),
    "llama_vocab_get_add_sep": (_BOOL, [_VOID_P]),
    "llama_vocab_get_suppress_tokens": (_I32_P, [_VOID_P, _I32_P]),
    "llama_tokenize": (_I32, [_VOID_P, _CHAR_P, _I32, _I32_P, _I32, _BOOL, _BOOL]),
    "llama_detokenize": (_I32, [_VOID_P, _I32_P, _I32, _CHAR_P, _I32, _BOOL, _BOOL]),
    "llama_chat_apply_template": (
        _I32,
        [_CHAR_P, ctypes.POINTER(_ChatMessage), ctypes.c_size_t, _BOOL, _CHAR_P, _I32],
    ),
    "llama_token_to_piece": (_I32, [_VOID_P, _I32, _CHAR_P, _I32, _I32, _BOOL]),
    **{f"llama_vocab_{name}": (_I32, [_VOID_P]) for name in SPECIAL_NAMES},
}


def shared_object() -> Path:
    """The library inside the installed wheel, found without importing it."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        raise LlamaCppError("the test extra is not installed: no xllamacpp")
    for folder in spec.submodule_search_locations:
        for pattern in ("xllamacpp*.so", "xllamacpp*.pyd"):
            for path in sorted(Path(folder).glob(pattern)):
                return path
    raise LlamaCppError("the xllamacpp package holds no shared object")


class _Worker:
    def __init__(self, library: str | None = None) -> None:
        self.lib = ctypes.CDLL(library or str(shared_object()))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.errors: list[str] = []
        self.callback = _LOG_CALLBACK(self.log)
        self.lib.llama_log_set(self.callback, None)
        self.models: dict[str, int] = {}
        self.warned: list[str] = []
        self.warnings: dict[str, list[str]] = {}

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
        self.free(path)  # the file may have changed since
        self.model(path, overrides)

    def load_warnings(self, path: str) -> list[str]:
        self.model(path)
        return self.warnings[path]

    def drafts(self, target: str, draft: str) -> bool:
        compatible = self.lib["_Z33common_speculative_are_compatiblePK11llama_modelS1_"]
        compatible.restype, compatible.argtypes = ctypes.c_bool, [ctypes.c_void_p] * 2
        may: bool = compatible(self.model(target), self.model(draft))
        return may

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

            yield list(_resizing(ctypes.c_int32, len(text) + 16, call))

    def detokenize(
        self, path: str, lists: list[list[int]], remove_special: bool, unparse_special: bool
    ) -> Iterator[bytes]:
        vocab = self.vocab(path)
        for ids in lists:
            array = (ctypes.c_int32 * len(ids))(*ids)

            def call(buffer: Any, n: int, array: Any = array) -> int:
                used: int = self.lib.llama_detokenize(
                    vocab, array, len(array), buffer, n, remove_special, unparse_special
                )
                return used

            yield bytes(_resizing(ctypes.c_char, 16 * len(ids) + 16, call))

    def pieces(
        self, path: str, special: bool, lstrip: int, ids: Sequence[int] | None
    ) -> list[bytes]:
        vocab = self.vocab(path)
        pieces = []
        for token in self.tokens(vocab) if ids is None else ids:

            def call(buffer: Any, n: int, token: int = token) -> int:
                used: int = self.lib.llama_token_to_piece(vocab, token, buffer, n, lstrip, special)
                return used

            pieces.append(bytes(_resizing(ctypes.c_char, 64, call)))
        return pieces

    def chat(self, template: bytes, messages: list[tuple[bytes, bytes]]) -> bytes | None:
        array = (_ChatMessage * len(messages))(*(_ChatMessage(*pair) for pair in messages))
        buffer = ctypes.create_string_buffer(1 << 16)
        n = self.lib.llama_chat_apply_template(
            template, array, len(messages), True, buffer, len(buffer)
        )
        assert n <= len(buffer)
        return None if n < 0 else buffer.raw[:n]

    def tokens(self, vocab: int) -> range:
        """Ids whose data may be asked for: none where the type is NONE (an abort)."""
        lib = self.lib
        return range(lib.llama_vocab_n_tokens(vocab) if lib.llama_vocab_type(vocab) else 0)

    def facts(self, path: str) -> dict[str, Any]:
        lib, model, vocab = self.lib, self.model(path), self.vocab(path)
        tokens = self.tokens(vocab)
        special = {name: getattr(lib, f"llama_vocab_{name}")(vocab) for name in SPECIAL_NAMES}
        n_suppressed = ctypes.c_int32(0)
        suppressed = lib.llama_vocab_get_suppress_tokens(vocab, ctypes.byref(n_suppressed))
        template = lib.llama_model_chat_template(model, None)
        return {
            "n_tokens": lib.llama_vocab_n_tokens(vocab),
            "vocab_type": VOCAB_TYPES[lib.llama_vocab_type(vocab)],
            "special": {k: None if v == _NULL_TOKEN else v for k, v in special.items()},
            "add_bos": lib.llama_vocab_get_add_bos(vocab),
            "add_eos": lib.llama_vocab_get_add_eos(vocab),
            "add_sep": lib.llama_vocab_get_add_sep(vocab),
            "suppress_tokens": [suppressed[i] for i in range(n_suppressed.value)],
            "chat_template": None if template is None else template.decode("utf-8", "replace"),
            "texts": [lib.llama_vocab_get_text(vocab, i) for i in tokens],
            "scores": [lib.llama_vocab_get_score(vocab, i) for i in tokens],
            "attrs": [lib.llama_vocab_get_attr(vocab, i) for i in tokens],
            "eog": [lib.llama_vocab_is_eog(vocab, i) for i in tokens],
            "control": [lib.llama_vocab_is_control(vocab, i) for i in tokens],
        }


def _resizing(kind: Any, n: int, call: Callable[[Any, int], int]) -> Any:
    """Calls with a bigger buffer while the answer is -(room needed).

    llama_detokenize can need a second round: it asks for the size before its clean-up.
    """
    while True:
        buffer = (kind * n)()
        used = call(buffer, n)
        if used >= 0:
            return buffer[:used]
        n = -used


def _serve() -> None:
    # The frames get a descriptor of their own: nothing the library prints may mix with them.
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    worker = _Worker(*sys.argv[1:])
    while True:
        try:
            what, *args = _read_frame(requests)
        except EOFError:
            return
        try:
            answer = getattr(worker, what)(*args)
            # Several answers go out one by one: should an item kill this process, the others'
            # answers are through, and their number says which one it was.
            for item in answer if isinstance(answer, Iterator) else [answer]:
                _write_frame(answers, (True, item))
        except LlamaCppLoadError as error:
            _write_frame(answers, (False, str(error)))


if __name__ == "__main__":
    _serve()
