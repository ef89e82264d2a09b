"""Texts cut to a number of tokens."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok import _types as types
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import byte_view, index, iterated, text_bytes, truth
from ggtok.text.batches import Offsets
from ggtok.text.chunk import Chunk

TYPE_CHECKING = False  # as in _native/library.py
if TYPE_CHECKING:
    from typing import overload


class Fitting(Offsets):
    """The part of :class:`ggtok.Tokenizer` that cuts texts to a number of tokens."""

    if TYPE_CHECKING:

        @overload
        def truncate(
            self,
            text: str,
            n: types.SupportsIndex,
            *,
            side: types.Side = "right",
            add_special: bool = True,
        ) -> str: ...

        @overload
        def truncate(
            self,
            text: types.Buffer,
            n: types.SupportsIndex,
            *,
            side: types.Side = "right",
            add_special: bool = True,
        ) -> bytes: ...

    def truncate(
        self,
        text: types.Text,
        n: types.SupportsIndex,
        *,
        side: types.Side = "right",
        add_special: bool = True,
    ) -> str | bytes:
        """The beginning, or the end, of a text that has at most `n` tokens.

        That is the text up to the end of the greatest number of its first tokens, at most `n`
        with those that are added, that cuts no code point and whose text, encoded, has at most
        `n` tokens. (Text that is cut may have other tokens at its end than inside a longer one;
        this makes sure.) The whole text, if it fits. Control tokens' texts are plain text.

        Costs as much as what is returned, not as the whole text, where the text has places that
        no token can cross every now and then, as nearly all texts have.

        Args:
            text: the text.
            n: how many tokens it may have.
            side: where to cut: ``"right"`` keeps the beginning, ``"left"`` the end (from the
                start of its last tokens).
            add_special: count the tokens that :meth:`encode` adds.

        Returns:
            A ``str`` for a ``str``, else ``bytes``.

        Raises:
            InvalidValueError: ``n`` is less than the number of tokens that are added; ``side``
                is something else.
        """
        from ggtok.text.truncate import truncate

        n = index(n, "n")
        if side not in ("left", "right"):
            raise InvalidValueError(f"side must be 'right' or 'left', not {side!r}")
        if not isinstance(text, (str, bytes)):
            text = byte_view(text, "text must be str or bytes-like (UTF-8)")
        cut: str | bytes = truncate(self._native, text, n, side, truth(add_special, "add_special"))
        return cut

    def chunks(
        self,
        text: types.Text,
        n: types.SupportsIndex,
        *,
        overlap: types.SupportsIndex = 0,
        prefix: types.Text = "",
        add_special: bool = True,
        at: Iterable[types.Text] | None = None,
    ) -> list[Chunk]:
        """A text cut into chunks of at most `n` tokens each, for an embedder, say.

        Each is a ``Chunk(start, end, n_tokens)``, with
        ``n_tokens == len(tok.encode(prefix + text[start:end])) <= n``. No chunk but the last
        could take one more token of the text (unless `at` ends it). Together they are the whole
        text. They end where one of the text's tokens does, if a token fits, and never inside a
        code point. Takes time in proportion to the sum of the chunks.

        Args:
            text: the text. ``""`` gives ``[]``.
            n: how many tokens a chunk may have, with those that are added.
            overlap: how many tokens a chunk shares with the one before: its last `overlap`
                tokens (added ones aside) lie in the next chunk, too.
            prefix: what is put before each chunk when it is encoded, such as ``"passage: "``.
            add_special: count the tokens that :meth:`encode` adds.
            at: where a chunk may rather end, such as ``("\\n\\n", "\\n", ". ")``: behind the
                last occurrence of the first of these texts that ends in the chunk's last
                quarter. If none does, where `n` ends it.

        Returns:
            The chunks in order. ``start`` and ``end`` are in code points for a ``str``, in
            bytes for others.

        Raises:
            InvalidValueError: one character doesn't fit beside the prefix and the added tokens,
                or the chunks don't get on because of the overlap; the message says which `n`
                would do.
            InvalidTypeError: ``at`` is a single ``str``.
        """
        from ggtok.text.chunks import Options, chunks

        n, overlap = index(n, "n"), index(overlap, "overlap")
        if n < 1:
            raise InvalidValueError(f"n must be at least 1, but is {n}")
        if overlap < 0:
            raise InvalidValueError(f"overlap must not be negative, but is {overlap}")
        options = Options(
            n,
            overlap,
            text_bytes(prefix, "prefix"),
            truth(add_special, "add_special"),
            _separators(at),
        )
        return chunks(self._native, text_bytes(text), isinstance(text, str), options)

    def is_canonical(self, ids: types.Ids) -> bool:
        """Whether some text encodes to exactly these ids.

        Ids that a model generates may spell a text in another way than :meth:`encode` does;
        encoded again, they become others. Special tokens (CONTROL and UNKNOWN) stand for
        themselves; the text between them is encoded with ``parse_special`` off, as it is at
        that place. Ids that `add_special` adds may be there or not.

        False for ids outside the vocabulary.

        Raises:
            InvalidTypeError: ``ids`` aren't integers.
        """
        from ggtok.text.canonical import is_canonical

        return is_canonical(self._native, ids)


def _separators(at: Iterable[types.Text] | None) -> list[bytes]:
    if at is None:
        return []
    what = "at must be a collection of texts"
    if isinstance(at, (str, bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"{what}, not {type(at).__name__}")
    found = [text_bytes(text, f"at[{i}]") for i, text in enumerate(iterated(at, what))]
    if b"" in found:
        raise InvalidValueError(f"at[{found.index(b'')}] is empty")
    return found
