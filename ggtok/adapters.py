"""Vocabularies for other libraries: constrained decoding, and llama-cpp-python.

llguidance, xgrammar and Outlines compute which tokens a grammar allows next. They need each
token's piece (its bytes), and the ids that never stand for text, which include the ids that end
generation (:attr:`ggtok.Tokenizer.special_ids`). A grammar never allows these as text, for
example inside a JSON string. Each function imports its library when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ggtok.errors import (
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
    TokenIdError,
    VocabError,
)
from ggtok.native import NOT_FIRST_BLOCK, NOT_LAST_BLOCK, PLAIN_USER_DEFINED
from ggtok.native.arguments import index, iterated, truth
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # as in native/library.py
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, SupportsIndex

__all__ = [
    "LlamaCppTokenizer",
    "llguidance_tokenizer",
    "outlines_vocabulary",
    "xgrammar_tokenizer_info",
]

# A vocabulary that doesn't encode these exactly can't encode text that a grammar forces.
_PROBES = b"a", b" a", b"a  b", b'{"key": [1, -2.5e3, true, null]}', b"\n\t\n"


def llguidance_tokenizer(tok: Tokenizer, *, also_special: Iterable[SupportsIndex] = ()) -> Any:
    """An ``llguidance.LLTokenizer`` of this vocabulary; needs ``ggtok[llguidance]``.

    llguidance encodes text that a grammar forces. Such text is encoded as in the middle of a
    longer text: without BOS, without a space prefix, and without special tokens.

    Args:
        tok: the tokenizer. The result keeps a reference to it.
        also_special: more ids that never stand for text, such as the user-defined ``<think>``.
            A grammar refers to a special token by its text.

    Raises:
        MissingExtraError: llguidance isn't installed.
        VocabError: the vocabulary has no token that ends generation, or can't encode all text
            exactly (WPM; UGM that changes white space).
        TokenIdError: an id of ``also_special`` is outside the vocabulary.
    """
    special = _special(tok, also_special)
    ends = _ends(tok)
    for_it = _ForLLGuidance(tok, ends[0], special)
    for text in _PROBES:
        try:
            for_it(text)
        except InvalidValueError as e:
            raise VocabError(
                f"llguidance can't use this {tok.vocab_type} vocabulary: {e}; xgrammar and "
                "Outlines, which encode no text, can"
            ) from None
    llguidance = _imported("llguidance", "llguidance")
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(for_it), eos_token=ends)


class _ForLLGuidance:
    """The interface that llguidance.TokenizerWrapper needs."""

    def __init__(self, tok: Tokenizer, end: int, special: frozenset[int]) -> None:
        self.eos_token_id = end
        self.bos_token_id = tok.bos_id
        # With the texts of special tokens: grammars refer to them by text.
        self.tokens = tok.vocab_bytes("keep")
        self.special_token_ids = sorted(special)
        self._tok = tok

    def __call__(self, text: bytes) -> list[int]:
        """The ids of a text inside a longer text, without special tokens.

        User-defined tokens are parsed, unless SPM would insert a space after one, which the
        grammar didn't force.
        """
        decoded = b""
        for flags in (
            NOT_FIRST_BLOCK | NOT_LAST_BLOCK,
            NOT_FIRST_BLOCK | NOT_LAST_BLOCK | PLAIN_USER_DEFINED,
        ):
            ids = self._tok._native.encode_ranges(text, flags, ())
            decoded = b"".join([self.tokens[id] for id in ids])
            if decoded == text:
                return ids
        raise InvalidValueError(
            f"text that a grammar forces must be encoded exactly, but {text!r} encodes to tokens "
            f"of {decoded!r}"
        )


def xgrammar_tokenizer_info(tok: Tokenizer, *, also_special: Iterable[SupportsIndex] = ()) -> Any:
    """An ``xgrammar.TokenizerInfo`` of this vocabulary; needs ``ggtok[xgrammar]``.

    Special tokens get empty pieces, so xgrammar never allows them as text. Tokens that end
    generation become its stop tokens. xgrammar imports torch and transformers.

    Args:
        tok: the tokenizer.
        also_special: more ids that never stand for text, such as the user-defined ``<think>``.

    Raises:
        MissingExtraError: xgrammar, or a package that it needs, isn't installed.
        VocabError: the vocabulary has no token that ends generation.
        TokenIdError: an id of ``also_special`` is outside the vocabulary.
    """
    pieces, ends = _blanked(tok, also_special), _ends(tok)
    xgrammar = _imported("xgrammar", "xgrammar")
    return xgrammar.TokenizerInfo(
        pieces, xgrammar.VocabType.RAW, vocab_size=len(pieces), stop_token_ids=ends
    )


def outlines_vocabulary(
    tok: Tokenizer,
    eos_id: SupportsIndex | None = None,
    *,
    also_special: Iterable[SupportsIndex] = (),
) -> Any:
    """An ``outlines_core.Vocabulary`` of this vocabulary; needs ``ggtok[outlines]``.

    Args:
        tok: the tokenizer.
        eos_id: the token that ends generation; Outlines supports only one. The default is
            :attr:`ggtok.Tokenizer.eos_id`. Most chat models end their turn with
            :attr:`ggtok.Tokenizer.eot_id`. Other tokens that end generation are never allowed.
        also_special: more ids that never stand for text, such as the user-defined ``<think>``.

    Raises:
        MissingExtraError: outlines_core isn't installed.
        VocabError: the vocabulary has no token that ends generation.
        InvalidValueError: ``eos_id`` isn't one of :attr:`ggtok.Tokenizer.eog_ids`.
        TokenIdError: an id of ``also_special`` is outside the vocabulary.
    """
    pieces, ends = _blanked(tok, also_special), _ends(tok)
    end = ends[0] if eos_id is None else index(eos_id, "eos_id")
    if end not in ends:
        raise InvalidValueError(
            f"eos_id must be one of the ids that end generation, {sorted(ends)}, but is {end}"
        )
    ids: dict[bytes, list[int]] = {}
    for id, piece in enumerate(pieces):
        if piece:
            ids.setdefault(piece, []).append(id)
    return _imported("outlines_core", "outlines").Vocabulary(end, ids)


class LlamaCppTokenizer:
    """A tokenizer for llama-cpp-python: ``llama_cpp.Llama(..., tokenizer=LlamaCppTokenizer(tok))``.

    Implements the interface ``BaseLlamaTokenizer`` like llama-cpp-python's ``LlamaTokenizer``.
    Needs no package. If llama_cpp is already imported, the class is registered as a subclass of
    that interface. Any number of threads may use an instance.
    """

    def __init__(self, tok: Tokenizer) -> None:
        self._tok = _checked(tok)
        self._pieces: dict[tuple[int, bool], bytes] = {}
        module = sys.modules.get("llama_cpp.llama_tokenizer")
        if module is not None:
            module.BaseLlamaTokenizer.register(type(self))

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        """The ids of a text.

        Args:
            text: UTF-8, possibly malformed.
            add_bos: add the tokens that the vocabulary's flags ask for, EOS as well as BOS.
            special: parse the texts of control tokens as those tokens.
        """
        flags = {
            "add_special": truth(add_bos, "add_bos"),
            "parse_special": truth(special, "special"),
        }
        return self._tok.encode(text, **flags)

    def detokenize(
        self,
        tokens: Iterable[SupportsIndex],
        prev_tokens: Iterable[SupportsIndex] | None = None,
        special: bool = False,
    ) -> bytes:
        """The joined pieces of some tokens, without one leading space if the first is BOS.

        Differs from :meth:`ggtok.Tokenizer.decode_bytes`, which is llama_detokenize.

        Args:
            tokens: ids.
            prev_tokens: ignored, as in llama-cpp-python's own tokenizer.
            special: write control tokens as their text. If false, they produce no text.

        Raises:
            TokenIdError: an id is outside the vocabulary.
        """
        special = truth(special, "special")
        ids = [index(id, "a token") for id in iterated(tokens, "tokens must be a list of ids")]
        text = b"".join([self._piece(id, special) for id in ids])
        if ids and ids[0] == self._tok.bos_id and text[:1] == b" ":
            return text[1:]
        return text

    def encode(self, text: str, add_bos: bool = True, special: bool = True) -> list[int]:
        """:meth:`tokenize` a ``str``. Lone surrogates are dropped."""
        if not isinstance(text, str):
            raise InvalidTypeError(f"text must be str, not {type(text).__name__}")
        return self.tokenize(text.encode("utf-8", "ignore"), add_bos, special)

    def decode(self, tokens: Iterable[SupportsIndex]) -> str:
        """:meth:`detokenize` to a ``str``. Bytes that aren't UTF-8 are dropped."""
        return self.detokenize(tokens).decode("utf-8", "ignore")

    def _piece(self, id: int, special: bool) -> bytes:
        # Cached, because llama-cpp-python detokenizes the whole answer after each token.
        piece = self._pieces.get((id, special))
        if piece is None:
            piece = self._tok.token_to_piece(id, special=special)
            self._pieces[id, special] = piece
        return piece


def _checked(tok: Tokenizer) -> Tokenizer:
    if isinstance(tok, Tokenizer):
        return tok
    raise InvalidTypeError(f"tok must be a ggtok.Tokenizer, not {type(tok).__name__}")


def _special(tok: Tokenizer, also: Iterable[SupportsIndex]) -> frozenset[int]:
    _checked(tok)
    what = "also_special must be a collection of ids"
    more = [index(id, "an id of also_special") for id in iterated(also, what)]
    for id in more:
        if not 0 <= id < tok.n_tokens:
            raise TokenIdError(f"also_special has {id}, but ids are 0 to {tok.n_tokens - 1}")
    return tok.special_ids.union(more)


def _blanked(tok: Tokenizer, also: Iterable[SupportsIndex]) -> list[bytes]:
    """The pieces of all tokens; those of special tokens are empty."""
    more = _special(tok, also)
    pieces = tok.vocab_bytes()
    for id in more:
        pieces[id] = b""
    return pieces


def _ends(tok: Tokenizer) -> list[int]:
    """The ids that end generation, EOS first."""
    if not tok.eog_ids:
        raise VocabError(
            f"this vocabulary ({tok.vocab_type}, {tok.n_tokens} tokens) has no token that ends "
            "generation, so nothing can be generated with it"
        )
    eos = tok.eog_ids & {tok.eos_id}
    return [*eos, *sorted(tok.eog_ids - eos)]


def _imported(name: str, extra: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as e:
        raise MissingExtraError(
            f"{name} can't be imported ({e}): pip install 'ggtok[{extra}]'"
        ) from e
