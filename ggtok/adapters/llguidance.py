"""A vocabulary for llguidance."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok.adapters.common import ends_of, import_library, special_ids
from ggtok.errors import InvalidValueError, VocabError
from ggtok.native import NOT_FIRST_BLOCK, NOT_LAST_BLOCK, PLAIN_USER_DEFINED
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any, SupportsIndex

# A vocabulary that doesn't encode these texts exactly can't encode text that a grammar forces.
_PROBES = b"a", b" a", b"a  b", b'{"key": [1, -2.5e3, true, null]}', b"\n\t\n"


def llguidance_tokenizer(tok: Tokenizer, *, also_special: Iterable[SupportsIndex] = ()) -> Any:
    """Returns an ``llguidance.LLTokenizer`` for this vocabulary; needs ``ggtok[llguidance]``.

    llguidance encodes text that a grammar forces as if it were inside a longer text: without BOS,
    without a space prefix, and without special tokens.

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
    special = special_ids(tok, also_special)
    ends = ends_of(tok)
    for_it = _ForLLGuidance(tok, ends[0], special)
    for text in _PROBES:
        try:
            for_it(text)
        except InvalidValueError as e:
            raise VocabError(
                f"llguidance can't use this {tok.vocab_type} vocabulary: {e}; xgrammar and "
                "Outlines, which encode no text, can"
            ) from None
    llguidance = import_library("llguidance", "llguidance")
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(for_it), eos_token=ends)


class _ForLLGuidance:
    """The interface that llguidance.TokenizerWrapper needs."""

    def __init__(self, tok: Tokenizer, end: int, special: frozenset[int]) -> None:
        self.eos_token_id = end
        self.bos_token_id = tok.bos_id
        # "keep" includes the texts of special tokens, by which grammars refer to them.
        self.tokens = tok.vocab_bytes("keep")
        self.special_token_ids = sorted(special)
        self._tok = tok

    def __call__(self, text: bytes) -> list[int]:
        """Encodes a text as if inside a longer text, without special tokens.

        User-defined tokens are parsed. If SPM would then insert a space that the grammar didn't
        force, they are encoded as plain text instead.
        """
        decoded = b""
        for flags in (
            NOT_FIRST_BLOCK | NOT_LAST_BLOCK,
            NOT_FIRST_BLOCK | NOT_LAST_BLOCK | PLAIN_USER_DEFINED,
        ):
            ids = self._tok._loaded.encode_ranges(text, flags, ())
            decoded = b"".join([self.tokens[id] for id in ids])
            if decoded == text:
                return ids
        raise InvalidValueError(
            f"text that a grammar forces must be encoded exactly, but {text!r} encodes to tokens "
            f"of {decoded!r}"
        )
