"""The vocabulary as bytes: all pieces, tokens by prefix, token healing."""

from __future__ import annotations

from bisect import bisect_left

from ggtok import _types as types
from ggtok._attributes import Attributes
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import byte_view, token_ids


class Pieces(Attributes):
    """The part of :class:`ggtok.Tokenizer` that gives the vocabulary as bytes."""

    def vocab_bytes(self, special: types.Special = "blank") -> list[bytes]:
        """Every token's bytes, by id: its :meth:`token_to_piece`.

        Args:
            special: ``"blank"``: the tokens of :attr:`special_ids` have none, as libraries for
                constrained decoding want it, so that no text allows them. ``"keep"``: they have
                their text.

        Raises:
            InvalidValueError: ``special`` is something else.
        """
        if special not in ("blank", "keep"):
            raise InvalidValueError(f"special must be 'blank' or 'keep', not {special!r}")
        pieces = self._native.pieces()
        for id in self.special_ids if special == "blank" else ():
            pieces[id] = b""
        return pieces

    def tokens_with_prefix(self, prefix: types.Buffer) -> list[int]:
        """The ids of the tokens whose bytes begin with `prefix`, ascending.

        The bytes are those of :meth:`vocab_bytes`, so that none of :attr:`special_ids` is among
        them, nor another token without bytes. ``b""`` gives all that have some. The first call
        sorts the vocabulary, and the tokenizer keeps that.

        Raises:
            InvalidTypeError: ``prefix`` isn't bytes-like.
        """
        return sorted(self._beginning_with(_prefix_bytes(prefix)))

    def heal(self, ids: types.Ids) -> tuple[list[int], bytes]:
        """Ids without the last one, where a prompt that ends there would cut a token in two.

        The model has seldom seen the last token where its text goes on: after ``"http:"`` it
        expects anything but ``"//"``, since ``"://"`` is a token. Take it off, and let the model
        begin with a token whose bytes begin with the prefix (:meth:`tokens_with_prefix`) or are
        a beginning of it.

        Returns:
            The ids without the last one, and its bytes, if it isn't one of
            :attr:`special_ids` and a longer token begins with its bytes. Else ``(ids, b"")``.

        Raises:
            TokenIdError: an id is outside the vocabulary.
        """
        kept = token_ids(ids, self._n_tokens)
        if not kept or kept[-1] in self.special_ids:
            return kept, b""
        piece = self.token_to_piece(kept[-1])
        if not piece or not self._is_longer(piece):
            return kept, b""
        return kept[:-1], piece

    def _sorted(self) -> tuple[list[bytes], list[int]]:
        """The pieces that aren't empty in order, and the ids of each. Two threads may make them
        at the same time: they are equal."""
        if self._by_bytes is None:
            pieces = self.vocab_bytes()
            ids = sorted(filter(pieces.__getitem__, range(len(pieces))), key=pieces.__getitem__)
            self._by_bytes = [pieces[id] for id in ids], ids
        return self._by_bytes

    def _beginning_with(self, prefix: bytes) -> list[int]:
        pieces, ids = self._sorted()
        # What comes after all bytes that begin so: the last byte that isn't FF, one more.
        stem = prefix.rstrip(b"\xff")
        end = bisect_left(pieces, stem[:-1] + bytes([stem[-1] + 1])) if stem else len(ids)
        return ids[bisect_left(pieces, prefix) : end]

    def _is_longer(self, piece: bytes) -> bool:
        pieces, ids = self._sorted()
        # Those that are equal come first; the shortest longer one ends in a NUL.
        at = bisect_left(pieces, piece + b"\0")
        return at < len(ids) and pieces[at].startswith(piece)


def _prefix_bytes(prefix: object) -> bytes:
    if isinstance(prefix, str):
        raise InvalidTypeError("prefix must be bytes, not str: give prefix.encode()")
    return byte_view(prefix, "prefix must be bytes").tobytes()
