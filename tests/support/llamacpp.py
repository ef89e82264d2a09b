"""The live reference: llama.cpp b11549 in a child process.

Extends the child process of :mod:`ggtok.inspect.parity` with calls that only tests need. The
`xllamacpp` wheel contains all of llama.cpp in one shared library that exports the C API.

    with LlamaCpp() as llama:
        vocab = llama.load("model.gguf")
        vocab.tokenize(b"Hello", add_special=True, parse_special=False)
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ggtok.inspect.parity import process
from ggtok.inspect.parity.process import LlamaCppDied as LlamaCppDied
from ggtok.inspect.parity.process import LlamaCppError as LlamaCppError
from ggtok.inspect.parity.process import LlamaCppLoadError as LlamaCppLoadError
from ggtok.inspect.parity.process import Override
from ggtok.inspect.parity.worker import (
    BOOL,
    CHAR_P,
    I32,
    I32_P,
    VOID_P,
    XLlamaCppBackend,
    resizing,
    serve,
)
from ggtok.inspect.parity.worker import shared_object as shared_object

SPECIAL_NAMES = (
    "bos eos eot sep nl pad mask fim_pre fim_suf fim_mid fim_pad fim_rep fim_sep"
).split()
VOCAB_TYPES = ("NONE", "SPM", "BPE", "WPM", "UGM", "RWKV", "PLAMO2", "TEST", "PLAMO3")


@dataclass(frozen=True)
class Facts:
    """All facts about a vocabulary that the C API provides."""

    n_tokens: int
    vocab_type: str
    special: dict[str, int | None]
    add_bos: bool
    add_eos: bool
    add_sep: bool
    suppress_tokens: list[int]
    chat_template: str | None
    # One entry for each token; empty for vocabularies of type NONE.
    texts: list[bytes]
    scores: list[float]
    attrs: list[int]
    eog: list[bool]
    control: list[bool]

    @property
    def eog_ids(self) -> frozenset[int]:
        return frozenset(i for i, is_eog in enumerate(self.eog) if is_eog)


class Vocab(process.Vocab):
    """A vocabulary that the child process has loaded."""

    def _call(self, method: str, *args: Any) -> Any:
        return self._owner._request(method, self.path, *args)

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

    def pieces(
        self, special: bool, lstrip: int = 0, ids: Sequence[int] | None = None
    ) -> list[bytes]:
        """Returns llama_token_to_piece for these tokens (default: all)."""
        pieces: list[bytes] = self._call("pieces", special, lstrip, ids)
        return pieces

    def facts(self) -> Facts:
        return Facts(**self._call("facts"))

    def metadata(self, key: str) -> str:
        """Returns the value of a metadata key as text (llama_model_meta_val_str)."""
        value: str = self._call("metadata", key)
        return value

    def warnings(self) -> list[str]:
        """Returns the warnings that llama.cpp logged while it loaded the vocabulary."""
        warnings: list[str] = self._call("load_warnings")
        return warnings

    def free(self) -> None:
        """Frees the vocabulary in the child process; the next request loads it again."""
        self._call("free")


class LlamaCpp(process.LlamaCpp):
    """A child process that is started when needed and restarted after a crash.

    `library` is the shared library to load (default: the installed wheel's).
    """

    def __init__(self, library: Path | None = None) -> None:
        super().__init__(*([str(library)] if library else []), module=__name__)

    def __enter__(self) -> LlamaCpp:
        return self

    def load(
        self, path: str | os.PathLike[str], overrides: Mapping[str, Override] | None = None
    ) -> Vocab:
        return Vocab(self, super().load(path, overrides).path)

    def chat(self, template: str, messages: Sequence[tuple[str, str]]) -> str | None:
        """Renders messages with llama_chat_apply_template and a generation prompt. Returns None if
        llama.cpp doesn't recognize the template."""
        pairs = [(role.encode(), content.encode()) for role, content in messages]
        text: bytes | None = self._request("chat", template.encode(), pairs)
        return None if text is None else text.decode()

    def drafts(self, target: Vocab, draft: Vocab) -> bool:
        """Whether the vocabularies are compatible for speculative decoding, according to
        llama.cpp's common_speculative_are_compatible."""
        compatible: bool = self._request("drafts", target.path, draft.path)
        return compatible


# ---- the child process ----


class _ChatMessage(ctypes.Structure):
    """struct llama_chat_message."""

    _fields_ = [("role", ctypes.c_char_p), ("content", ctypes.c_char_p)]


_NULL_TOKEN = -1


class _Worker(XLlamaCppBackend):
    signatures: ClassVar[Mapping[str, tuple[Any, list[Any]]]] = {
        "llama_model_chat_template": (CHAR_P, [VOID_P, CHAR_P]),
        "llama_model_meta_val_str": (I32, [VOID_P, CHAR_P, CHAR_P, ctypes.c_size_t]),
        "llama_vocab_type": (ctypes.c_int, [VOID_P]),
        "llama_vocab_n_tokens": (I32, [VOID_P]),
        "llama_vocab_get_text": (CHAR_P, [VOID_P, I32]),
        "llama_vocab_get_score": (ctypes.c_float, [VOID_P, I32]),
        "llama_vocab_get_attr": (ctypes.c_int, [VOID_P, I32]),
        "llama_vocab_is_eog": (BOOL, [VOID_P, I32]),
        "llama_vocab_is_control": (BOOL, [VOID_P, I32]),
        "llama_vocab_get_add_bos": (BOOL, [VOID_P]),
        "llama_vocab_get_add_eos": (BOOL, [VOID_P]),
        "llama_vocab_get_add_sep": (BOOL, [VOID_P]),
        "llama_vocab_get_suppress_tokens": (I32_P, [VOID_P, I32_P]),
        "llama_detokenize": (I32, [VOID_P, I32_P, I32, CHAR_P, I32, BOOL, BOOL]),
        "llama_chat_apply_template": (
            I32,
            [CHAR_P, ctypes.POINTER(_ChatMessage), ctypes.c_size_t, BOOL, CHAR_P, I32],
        ),
        "llama_token_to_piece": (I32, [VOID_P, I32, CHAR_P, I32, I32, BOOL]),
        **{f"llama_vocab_{name}": (I32, [VOID_P]) for name in SPECIAL_NAMES},
    }

    def metadata(self, path: str, key: str) -> str:
        buffer = ctypes.create_string_buffer(1 << 10)
        n = self.lib.llama_model_meta_val_str(self.model(path), key.encode(), buffer, len(buffer))
        return buffer.raw[:n].decode()

    def load_warnings(self, path: str) -> list[str]:
        self.model(path)
        return self.warnings[path]

    def drafts(self, target: str, draft: str) -> bool:
        compatible = self.lib["_Z33common_speculative_are_compatiblePK11llama_modelS1_"]
        compatible.restype, compatible.argtypes = ctypes.c_bool, [ctypes.c_void_p] * 2
        result: bool = compatible(self.model(target), self.model(draft))
        return result

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

            yield bytes(resizing(ctypes.c_char, 16 * len(ids) + 16, call))

    def pieces(
        self, path: str, special: bool, lstrip: int, ids: Sequence[int] | None
    ) -> list[bytes]:
        vocab = self.vocab(path)
        pieces = []
        for token in self.tokens(vocab) if ids is None else ids:

            def call(buffer: Any, n: int, token: int = token) -> int:
                used: int = self.lib.llama_token_to_piece(vocab, token, buffer, n, lstrip, special)
                return used

            pieces.append(bytes(resizing(ctypes.c_char, 64, call)))
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
        """Returns the ids that may be queried: none for type NONE, where queries abort."""
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


def main(arguments: Sequence[str]) -> None:
    """Serves requests with the library named in `arguments`, or the installed wheel's."""
    serve(partial(_Worker, *arguments))
