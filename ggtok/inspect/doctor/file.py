"""The file to check: its metadata, and its tokenizer as in llama.cpp."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterable
from copy import copy
from typing import Any

from ggtok import _types as types
from ggtok.base.concurrency import cached_property
from ggtok.base.escape import printable
from ggtok.base.files import read_regular
from ggtok.errors import GGUFError, UnknownPreTokenizerError, VocabWarning
from ggtok.native.arguments import byte_view
from ggtok.native.gguf import FileHeader
from ggtok.tokenizer import Tokenizer, load
from ggtok.vocabularies.read import metadata_of, pairs
from ggtok.vocabularies.spelling import CONTROL, NORMAL

GGML = "tokenizer.ggml."
TAG = re.compile(rb"\s*(<[^\n]+>|\[[^\n]+\])\s*")  # matches the usual form of special tokens
_EMBEDDING = b"token_embd.weight"
_MORE = 4 << 20  # the most bytes to read of the tensor descriptions
_SHOWN = 5  # the most examples in a finding's text


class File:
    """A file's key/value pairs, and its tokenizer.

    Attributes:
        path: the file, if it is local.
        data: the metadata, and any bytes that were read after it.
        values: all key/value pairs.
        end: the end of the metadata in `data`.
        tok: the tokenizer, with the pre-tokenizer "default" if the file's own is unknown.
        memo: results of checks that other checks need.
        unknown_pre: the error for an unknown pre-tokenizer, or None.

    Args:
        rows: the number of rows in the embedding, if `source` is metadata without tensors.
    """

    def __init__(
        self, source: str | os.PathLike[str] | types.Buffer, rows: int | None = None
    ) -> None:
        self.path: str | None = None
        if isinstance(source, (str, os.PathLike)):
            self.path, self.data = metadata_of(os.fsdecode(os.fspath(source)))
        else:
            what = "source must be a path, a model's name or a bytes-like object"
            self.data = byte_view(source, what).tobytes()
        self.memo: dict[str, Any] = {}
        self.unknown_pre: UnknownPreTokenizerError | None = None
        try:
            self.tok = self.load()
        except UnknownPreTokenizerError as e:
            self.unknown_pre = e
            self.tok = self.load(pre="default")
        header = FileHeader(self.data)
        self.values: dict[str, Any] = header.values()
        self.end = header.size
        self._rows = rows

    def load(self, pre: str | None = None) -> Tokenizer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VocabWarning)
            return load(self.data, pre=pre)

    def with_pre(self, name: str) -> File:
        """Returns the file as it would be with this value of ``tokenizer.ggml.pre``."""
        file = copy(self)
        file.__dict__.pop("attrs", None)  # they can depend on the pre-tokenizer
        file.tok, file.unknown_pre, file.memo = self.load(pre=name), None, {}
        file.values = {**self.values, GGML + "pre": name.encode()}
        return file

    @cached_property
    def embedding_rows(self) -> int | None:
        """The number of rows in the embedding, or None if unknown, for example because too little
        was downloaded."""
        if self._rows is not None:
            return self._rows
        data = self.data
        if self.path is not None:
            data = read_regular(self.path, self.end + _MORE)
        with contextlib.suppress(GGUFError):
            for tensor in FileHeader(data).tensors()[0]:
                if tensor.name == _EMBEDDING:
                    return tensor.dims[1] if len(tensor.dims) > 1 else None
        return None

    @cached_property
    def texts(self) -> list[bytes]:
        """The tokens' texts, as llama.cpp stores them."""
        return self.tok._loaded.texts()

    @cached_property
    def pieces(self) -> list[bytes]:
        return self.tok.vocab_bytes("keep")

    @cached_property
    def attrs(self) -> list[int]:
        return self.tok._loaded.attrs()

    @cached_property
    def types(self) -> list[int]:
        """The tokens' types, as in the file."""
        given = self.values.get(GGML + "token_type")
        n = self.tok.n_tokens
        return [NORMAL] * n if given is None else list(given[:n])

    @cached_property
    def broken(self) -> frozenset[int]:
        """The tokens whose stored texts are empty or broken (GGT405, GGT406)."""
        stored, texts = self.values.get(GGML + "tokens") or [], self.texts
        # All texts are UTF-8 if and only if they are when line feeds separate them.
        if stored == texts and is_utf8(b"\n".join(texts)):
            return frozenset()
        both = enumerate(zip(stored, texts, strict=False))
        return frozenset(id for id, (a, b) in both if a != b or not is_utf8(a))

    @cached_property
    def merges(self) -> list[tuple[str, str] | None]:
        """The two parts of each merge, as decoded by :func:`characters`, or None."""
        return pairs([characters(merge) for merge in self.values.get(GGML + "merges") or ()])

    @cached_property
    def ranks(self) -> dict[tuple[str, str], int]:
        """The rank of each merge by its two parts."""
        ranks: dict[tuple[str, str], int] = {}
        for rank, parts in enumerate(self.merges):
            if parts is not None:
                ranks.setdefault(parts, rank)
        return ranks

    def types_to(self, type: int, ids: Iterable[int]) -> dict[str, object]:
        """Returns the changes that set the type of tokens; none if the file has no types."""
        key = GGML + "token_type"
        if key not in self.values:
            return {}
        return {f"{key}[{id}]": type for id in ids}

    def is_control(self, id: int) -> bool:
        """Whether the file or llama.cpp treats this token as a control token."""
        return self.types[id] == CONTROL or self.tok.is_control(id)

    def examples(self, ids: Iterable[int]) -> str:
        """Lists the first few tokens for a message."""
        ids = list(ids)
        first = ", ".join(f"{id} '{printable(self.pieces[id], 60)}'" for id in ids[:_SHOWN])
        return first + (", ..." if len(ids) > _SHOWN else "")


def characters(text: bytes) -> str:
    """Decodes a stored text to str, in which each byte that isn't UTF-8 is one character."""
    return text.decode("utf-8", "surrogateescape")


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
