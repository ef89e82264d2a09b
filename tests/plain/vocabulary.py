"""The vocabulary as the plain implementation uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ggtok.base.concurrency import cached_property
from ggtok.base.escape import printable
from ggtok.errors import GGTokError, InvalidTypeError, VocabError
from ggtok.explain.steps import Token, text_of
from ggtok.loading.loaded import Loaded, TokenAttr
from ggtok.native.gguf import FileHeader
from ggtok.vocabularies.pre_rows import PRE_ROWS, SCANNERS
from ggtok.vocabularies.read import metadata_of
from tests.plain.native import sorted_descending

T = TypeVar("T")
_RESERVED = TokenAttr.CONTROL | TokenAttr.UNKNOWN
_ATTR_OF_TYPE = (  # indexed by llama_token_type
    *(TokenAttr.UNDEFINED, TokenAttr.NORMAL, TokenAttr.UNKNOWN, TokenAttr.CONTROL),
    *(TokenAttr.USER_DEFINED, TokenAttr.UNUSED, TokenAttr.BYTE),
)
_GGML = "tokenizer.ggml."


class Special(NamedTuple):
    id: int
    text: bytes
    attr: int


class Vocabulary:
    """A tokenizer's vocabulary.

    Reads merges and the charsmap from the file again, because the library keeps only the tables
    that it builds from them.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.type = loaded.vocab_type
        self.model = loaded.model
        self.pre = loaded.pre
        self.patterns = loaded.patterns
        self.n_tokens = loaded.n_tokens
        self.flags = loaded.flags
        unknown = loaded.special("unk")
        self.unknown = -1 if unknown is None else unknown
        self._kept: dict[type, Any] = {}
        chain, self.pre_flags = PRE_ROWS.get(loaded.pre or "", ("", frozenset()))
        self.chain = SCANNERS.get(chain, ())

    def keep(self, kind: type[T], make: Callable[[], T]) -> T:
        """Returns a table derived from the vocabulary. `make` creates it on the first call; the
        table is cached by its class `kind`."""
        if kind not in self._kept:
            self._kept[kind] = make()
        table: T = self._kept[kind]
        return table

    # ---- tokens ----

    def find(self, text: bytes) -> int | None:
        """Returns the id of the token with this text in the lookup table, or None."""
        return self._loaded.find(text)

    def byte_token(self, byte: int) -> int | None:
        """Returns the id of the token ``<0xXX>``, or None."""
        return self.find(b"<0x%02X>" % byte)

    def text(self, id: int) -> bytes:
        return self._loaded.text(id)

    def score(self, id: int) -> float:
        return self._loaded.score(id)

    def token(self, id: int, how: str, **more: Any) -> Token:
        """Creates a Token for this id."""
        piece = self._loaded.piece(id, 0, True) if id >= 0 else b""
        return Token(id, text_of(piece), how, **more)

    @cached_property
    def texts(self) -> list[bytes]:
        return [self._loaded.text(id) for id in range(self.n_tokens)]

    @cached_property
    def attrs(self) -> list[int]:
        return [self._loaded.attr(id) for id in range(self.n_tokens)]

    @cached_property
    def pieces(self) -> list[bytes]:
        """Returns the pieces of all tokens."""
        return self._loaded.pieces()

    # ---- special tokens ----

    @cached_property
    def _specials(self) -> list[Special]:
        wanted = _RESERVED | TokenAttr.USER_DEFINED
        ids = [id for id, attr in enumerate(self.attrs) if attr & wanted]
        lengths = [0] * self.n_tokens
        for id in ids:
            lengths[id] = len(self.text(id))
        return [
            Special(id, self.text(id), self.attrs[id]) for id in sorted_descending(ids, lengths)
        ]

    def specials(self, parsed: bool | frozenset[int]) -> list[Special]:
        """Returns the special tokens to parse, in llama.cpp's order: the longest first."""
        if parsed is True:
            return self._specials
        chosen = parsed or frozenset()
        return [s for s in self._specials if s.id in chosen or not s.attr & _RESERVED]

    # ---- the file ----

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        source = self._loaded.pickled
        if source is None:
            raise InvalidTypeError(
                "this tokenizer was loaded from memory other than bytes, which may have changed: "
                "to explain its ids, load it from a path or from bytes"
            )
        try:
            data = source if isinstance(source, bytes) else metadata_of(source)[1]
            return FileHeader(data).values()
        except (GGTokError, OSError) as e:
            raise VocabError(
                f"{printable(self._loaded.path or 'the file')} was changed since it was loaded "
                f"({printable(str(e))}): load it again"
            ) from None

    @cached_property
    def merges(self) -> list[bytes]:
        """Returns the file's merges, each cut at its first NUL, as llama.cpp reads them."""
        return [merge.split(b"\0")[0] for merge in self._metadata.get(_GGML + "merges", [])]

    @cached_property
    def ranks(self) -> dict[tuple[bytes, bytes], int]:
        """Returns the rank of each pair.

        A merge is split at its first space after the first character. Merges without two parts
        are ignored, and a repeated pair keeps its first rank.
        """
        ranks: dict[tuple[bytes, bytes], int] = {}
        for rank, merge in enumerate(self.merges):
            space = merge.find(b" ", 1)
            if space > 0 and space + 1 < len(merge):
                ranks.setdefault((merge[:space], merge[space + 1 :]), rank)
        return ranks

    @cached_property
    def first_attrs(self) -> list[int]:
        """Returns the tokens' attributes according to the file, before llama.cpp's corrections.

        UGM's tables are built from these attributes.
        """
        types = self._metadata.get(_GGML + "token_type")
        if types is None:
            return [TokenAttr.NORMAL] * self.n_tokens
        return [
            _ATTR_OF_TYPE[type] if 0 <= type < len(_ATTR_OF_TYPE) else 0
            for type in types[: self.n_tokens]
        ]

    @property
    def charsmap(self) -> bytes | None:
        data = self._metadata.get(_GGML + "precompiled_charsmap")
        return None if data is None else bytes(data)


class LongestMatch:
    """Finds the texts of tokens at a position, longest first. If two have the same text, the last
    id counts."""

    def __init__(self, texts: Sequence[bytes], ids: Sequence[int] | None = None) -> None:
        chosen = range(len(texts)) if ids is None else ids
        self._ids = {texts[id]: id for id in chosen if texts[id]}
        # Lengths by first byte, so that one long token doesn't slow down all lookups
        self._lengths: dict[int, list[int]] = {}
        for text in self._ids:
            self._lengths.setdefault(text[0], []).append(len(text))
        for first, lengths in self._lengths.items():
            self._lengths[first] = sorted(set(lengths), reverse=True)

    def all(self, text: bytes, at: int) -> Iterator[int]:
        """Yields the ids of all texts that text[at:] starts with, longest first."""
        for n in self._lengths.get(text[at], ()):
            id = self._ids.get(text[at : at + n]) if at + n <= len(text) else None
            if id is not None:
                yield id

    def find(self, text: bytes, at: int) -> int | None:
        """Returns the id of the longest text that text[at:] starts with, or None."""
        return next(self.all(text, at), None)
