"""Vocabularies for other libraries: constrained decoding, and llama-cpp-python.

llguidance, xgrammar and Outlines tell which tokens a grammar allows next. They need the bytes
that each token prints, and which ids never stand for text: :attr:`ggtok.Tokenizer.special_ids`,
the ids that end generation among them. What they allow inside a JSON string, say, is never one of
those. Each function imports its library when it is called.
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

# Texts that a vocabulary must be able to spell, or what a grammar forces can't be encoded.
_PROBES = b"a", b" a", b"a  b", b'{"key": [1, -2.5e3, true, null]}', b"\n\t\n"


def llguidance_tokenizer(tok: Tokenizer, *, also_special: Iterable[SupportsIndex] = ()) -> Any:
    """An ``llguidance.LLTokenizer`` of this vocabulary; needs ``ggtok[llguidance]``.

    llguidance encodes text that a grammar forces. It gets the ids that the text has in the
    midst of others: without BOS and without a space prefix, and none of a special token.

    Args:
        tok: the tokenizer, which the result keeps.
        also_special: more ids that never stand for text, such as user-defined ``<think>``;
            a grammar names a special token by its text.

    Raises:
        MissingExtraError: llguidance isn't installed.
        VocabError: the vocabulary has no token that ends generation, or can't spell text:
            WPM, and UGM that changes white space.
        TokenIdError: ``also_special`` has what is no id.
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
    """What llguidance.TokenizerWrapper asks of a tokenizer."""

    def __init__(self, tok: Tokenizer, end: int, special: frozenset[int]) -> None:
        self.eos_token_id = end
        self.bos_token_id = tok.bos_id
        # Special ones with their text, by which a grammar names them.
        self.tokens = tok.vocab_bytes("keep")
        self.special_token_ids = sorted(special)
        self._tok = tok

    def __call__(self, text: bytes) -> list[int]:
        """The ids that a text has in the midst of others, none of them special.

        User-defined tokens are found in it as anywhere, unless the space prefix of what comes
        after one (SPM's) would be text that nobody forced.
        """
        spelt = b""
        for flags in (
            NOT_FIRST_BLOCK | NOT_LAST_BLOCK,
            NOT_FIRST_BLOCK | NOT_LAST_BLOCK | PLAIN_USER_DEFINED,
        ):
            ids = self._tok._native.encode_ranges(text, flags, ())
            spelt = b"".join([self.tokens[id] for id in ids])
            if spelt == text:
                return ids
        raise InvalidValueError(
            f"what a grammar forces must be encoded exactly, but {text!r} becomes tokens of "
            f"{spelt!r}"
        )


def xgrammar_tokenizer_info(tok: Tokenizer, *, also_special: Iterable[SupportsIndex] = ()) -> Any:
    """An ``xgrammar.TokenizerInfo`` of this vocabulary; needs ``ggtok[xgrammar]``.

    Special tokens have no bytes there: that alone makes xgrammar never take one for text. Those
    that end generation are its stop tokens. xgrammar imports torch and transformers.

    Args:
        tok: the tokenizer.
        also_special: more ids that never stand for text, such as user-defined ``<think>``.

    Raises:
        MissingExtraError: xgrammar, or what it needs, isn't installed.
        VocabError: the vocabulary has no token that ends generation.
        TokenIdError: ``also_special`` has what is no id.
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
        eos_id: the one token that ends generation there: the library knows no more than one.
            Default: :attr:`ggtok.Tokenizer.eos_id`. A chat model mostly ends its turn by
            :attr:`ggtok.Tokenizer.eot_id`. The vocabulary's other such tokens are never
            allowed.
        also_special: more ids that never stand for text, such as user-defined ``<think>``.

    Raises:
        MissingExtraError: outlines_core isn't installed.
        VocabError: the vocabulary has no token that ends generation.
        InvalidValueError: ``eos_id`` isn't one of :attr:`ggtok.Tokenizer.eog_ids`.
        TokenIdError: ``also_special`` has what is no id.
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

    The interface of its ``BaseLlamaTokenizer``, as its ``LlamaTokenizer`` fills it. Needs no
    package; where llama_cpp is imported before, instances count as its tokenizers. Any number of
    threads may use one.
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
            add_bos: add what the vocabulary's flags ask for: BOS, and also EOS.
            special: the text of a control token becomes that token.
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
        """The pieces of these tokens, without one space at the start if BOS is the first.

        Not what :meth:`ggtok.Tokenizer.decode_bytes` gives, which is llama_detokenize.

        Args:
            tokens: ids.
            prev_tokens: ignored, as llama-cpp-python's own ignores it.
            special: give control tokens as their text; off, they give nothing.

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
        """:meth:`tokenize` of a ``str``; what is no UTF-8 in it is dropped."""
        if not isinstance(text, str):
            raise InvalidTypeError(f"text must be str, not {type(text).__name__}")
        return self.tokenize(text.encode("utf-8", "ignore"), add_bos, special)

    def decode(self, tokens: Iterable[SupportsIndex]) -> str:
        """:meth:`detokenize` as a ``str``; what is no UTF-8 is dropped."""
        return self.detokenize(tokens).decode("utf-8", "ignore")

    def _piece(self, id: int, special: bool) -> bytes:
        # llama-cpp-python asks for the whole answer again at each token.
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
            raise TokenIdError(f"also_special has {id}, but ids are from 0 to {tok.n_tokens - 1}")
    return tok.special_ids.union(more)


def _blanked(tok: Tokenizer, also: Iterable[SupportsIndex]) -> list[bytes]:
    """Every token's bytes; a special one's are none."""
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
