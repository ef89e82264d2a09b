"""Ids to text."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok import _types as types
from ggtok._native.arguments import int32_array
from ggtok._pieces import Pieces
from ggtok._stream_decoder import StreamDecoder
from ggtok.errors import InvalidValueError, TextDecodeError


class Decoding(Pieces):
    """The part of :class:`ggtok.Tokenizer` that turns ids into text."""

    def decode(
        self,
        ids: types.Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        errors: str = "replace",
    ) -> str:
        """The text of some ids: ``llama_detokenize``, decoded from UTF-8.

        Args:
            ids: an iterable of integers, or an integer array (int32 is fastest).
            remove_special: drop a BOS at the start and an EOS at the end, if the
                vocabulary adds them.
            unparse_special: give control and unknown tokens as their text; if false,
                they give nothing.
            errors: what to do about bytes that aren't UTF-8 (a token may end inside
                a character), as in ``bytes.decode``.

        Raises:
            TokenIdError: an id is outside the vocabulary.
            TextDecodeError: the bytes aren't UTF-8, with ``errors="strict"``.
        """
        data = self.decode_bytes(
            ids, remove_special=remove_special, unparse_special=unparse_special
        )
        try:
            return data.decode("utf-8", errors)
        except UnicodeDecodeError as e:
            raise TextDecodeError(*e.args) from None
        except (LookupError, TypeError, ValueError) as e:
            raise InvalidValueError(f"errors: {e}") from None

    def decode_bytes(
        self, ids: types.Ids, *, remove_special: bool = False, unparse_special: bool = True
    ) -> bytes:
        """The bytes of some ids: ``llama_detokenize``. Arguments as for :meth:`decode`."""
        native = self._native
        if not isinstance(ids, (list, tuple)):
            return native.decode_array(int32_array(ids), remove_special, unparse_special)
        try:
            return native.decode(ids, remove_special, unparse_special)
        except Exception as e:
            return native.retry_decode(e, ids, remove_special, unparse_special)

    def stream_decoder(
        self,
        prompt_ids: types.Ids = (),
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        errors: str = "replace",
        stop: Iterable[str] = (),
    ) -> StreamDecoder:
        """What gives the text of ids as they come, such as those that a model generates.

        ``feed(id or ids)`` and at last ``finish()`` return text. Joined, it is what stands in
        ``decode(prompt_ids + ids)`` behind its longest common prefix with
        ``decode(prompt_ids)``. It comes out as soon as no further id can change it: a few bytes
        are held back where a character isn't complete, where white space may still be removed
        (``clean_spaces``, which WPM has), and of an EOS that may be the last id.

        Args:
            prompt_ids: the ids before; their text isn't given out.
            remove_special, unparse_special, errors: as for :meth:`decode`.
            stop: strings at which the text ends. The one that is complete first counts, and of
                several that end at the same place the longest. It isn't given out itself;
                ``stopped`` names it, and later feeds give ``""``. It must lie in the text that
                is given out: the prompt's never counts.

        Raises:
            TokenIdError: an id of the prompt is outside the vocabulary.
            TextDecodeError: the prompt isn't UTF-8, with ``errors="strict"``. (It may end
                inside a character.)
            InvalidTypeError, InvalidValueError: ``stop`` is a single str, or holds an empty one.
        """
        return StreamDecoder(
            self._native, prompt_ids, remove_special, unparse_special, errors, stop
        )
