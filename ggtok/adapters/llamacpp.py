"""A tokenizer for llama-cpp-python."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ggtok.adapters.common import check_tokenizer
from ggtok.errors import InvalidTypeError
from ggtok.native.arguments import index, iterate, truth
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import SupportsIndex


class LlamaCppTokenizer:
    """A tokenizer for llama-cpp-python: ``llama_cpp.Llama(..., tokenizer=LlamaCppTokenizer(tok))``.

    It implements the interface ``BaseLlamaTokenizer`` like llama-cpp-python's ``LlamaTokenizer``,
    and needs no package. If llama_cpp is already imported, the class is registered as a subclass
    of that interface. Any number of threads may use an instance.
    """

    def __init__(self, tok: Tokenizer) -> None:
        self._tok = check_tokenizer(tok)
        self._pieces: dict[tuple[int, bool], bytes] = {}
        module = sys.modules.get("llama_cpp.llama_tokenizer")
        if module is not None:
            module.BaseLlamaTokenizer.register(type(self))

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        """Returns the ids of a text.

        Args:
            text: UTF-8, possibly malformed.
            add_bos: add the tokens that the vocabulary's flags ask for (EOS, too, not only BOS).
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
        """Returns the joined pieces of some tokens, without one leading space if the first is BOS.

        The result can differ from :meth:`ggtok.Tokenizer.decode_bytes`, which is llama_detokenize.

        Args:
            tokens: ids.
            prev_tokens: ignored, as in llama-cpp-python's own tokenizer.
            special: write control tokens as their text. If false, they produce no text.

        Raises:
            TokenIdError: an id is outside the vocabulary.
        """
        special = truth(special, "special")
        ids = [index(id, "a token") for id in iterate(tokens, "tokens must be a list of ids")]
        text = b"".join([self._piece(id, special) for id in ids])
        if ids and ids[0] == self._tok.bos_id and text[:1] == b" ":
            return text[1:]
        return text

    def encode(self, text: str, add_bos: bool = True, special: bool = True) -> list[int]:
        """Returns the ids of a ``str`` from :meth:`tokenize`, ignoring lone surrogates."""
        if not isinstance(text, str):
            raise InvalidTypeError(f"text must be str, not {type(text).__name__}")
        return self.tokenize(text.encode("utf-8", "ignore"), add_bos, special)

    def decode(self, tokens: Iterable[SupportsIndex]) -> str:
        """Returns the text from :meth:`detokenize`, ignoring bytes that aren't UTF-8."""
        return self.detokenize(tokens).decode("utf-8", "ignore")

    def _piece(self, id: int, special: bool) -> bytes:
        # Cached, because llama-cpp-python detokenizes the whole answer after each token.
        piece = self._pieces.get((id, special))
        if piece is None:
            piece = self._tok.token_to_piece(id, special=special)
            self._pieces[id, special] = piece
        return piece
