"""A file as the checks see it: what it says, and what llama.cpp makes of that."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from typing import Any

from ggtok import _types as types
from ggtok.base.cached import cached_property
from ggtok.base.escape import shown
from ggtok.errors import UnknownPreTokenizerError, VocabWarning
from ggtok.loading.gguf_reader import Reader
from ggtok.native.arguments import byte_view
from ggtok.tokenizer import Tokenizer, load
from ggtok.vocabularies.extract import metadata_of
from ggtok.vocabularies.read import pair as parts_of
from ggtok.vocabularies.spelling import CONTROL, NORMAL

GGML = "tokenizer.ggml."
TAG = re.compile(rb"\s*(<[^\n]+>|\[[^\n]+\])\s*")  # what a token looks like that isn't text
_SHOWN = 5  # examples in a finding's text


class File:
    """A file's key/values, and its tokenizer.

    Attributes:
        path: the file, if it is on this machine.
        data: its metadata, and what follows it in what was given or fetched.
        values: all of its key/values.
        end: where the metadata ends.
        tok: its tokenizer, with "default" in place of a pre-tokenizer that is unknown.
        unknown_pre: the error that says so, or None.
    """

    def __init__(self, source: str | os.PathLike[str] | types.Buffer) -> None:
        self.path: str | None = None
        if isinstance(source, (str, os.PathLike)):
            self.path, self.data = metadata_of(os.fsdecode(os.fspath(source)))
        else:
            what = "source must be a path, a model's name or a bytes-like object"
            self.data = byte_view(source, what).tobytes()
        self.unknown_pre: UnknownPreTokenizerError | None = None
        try:
            self.tok = self.load()
        except UnknownPreTokenizerError as e:
            self.unknown_pre = e
            self.tok = self.load(pre="default")
        reader = Reader(self.data)
        self.values: dict[str, Any] = reader.metadata()
        self.end = reader.at

    def load(self, pre: str | None = None) -> Tokenizer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VocabWarning)
            return load(self.data, pre=pre)

    @cached_property
    def texts(self) -> list[bytes]:
        """The tokens' texts as llama.cpp has them."""
        return [self.tok.token_text(id) for id in range(self.tok.n_tokens)]

    @cached_property
    def pieces(self) -> list[bytes]:
        return self.tok.vocab_bytes("keep")

    @cached_property
    def attrs(self) -> list[int]:
        return [self.tok._native.attr(id) for id in range(self.tok.n_tokens)]

    @cached_property
    def types(self) -> list[int]:
        """The tokens' types in the file."""
        given = self.values.get(GGML + "token_type")
        n = self.tok.n_tokens
        return [NORMAL] * n if given is None else list(given[:n])

    @cached_property
    def ranks(self) -> dict[tuple[str, str], int]:
        """The merges by their parts, each a str of characters or of bytes that are none."""
        ranks: dict[tuple[str, str], int] = {}
        for rank, merge in enumerate(self.values.get(GGML + "merges") or ()):
            pair = parts_of(merge)
            if pair is not None:
                ranks.setdefault((characters(pair[0]), characters(pair[1])), rank)
        return ranks

    def is_control(self, id: int) -> bool:
        """Is it a control token, in the file or to llama.cpp?"""
        return self.types[id] == CONTROL or self.tok.is_control(id)

    def examples(self, ids: Iterable[int]) -> str:
        """The first few tokens, for people."""
        ids = list(ids)
        first = ", ".join(f"{id} '{shown(self.pieces[id], 60)}'" for id in ids[:_SHOWN])
        return first + (", ..." if len(ids) > _SHOWN else "")


def characters(text: bytes) -> str:
    """A stored text; bytes that aren't UTF-8 as characters of their own."""
    return text.decode("utf-8", "surrogateescape")


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
