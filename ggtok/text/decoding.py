"""Ids to text."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok import _types as types
from ggtok.errors import ArgumentError, InvalidValueError, TextDecodeError
from ggtok.native.arguments import int32_array, iterated, truth, truth_or_none
from ggtok.text.pieces import Pieces
from ggtok.text.stream_decoder import StreamDecoder


class Decoding(Pieces):
    """The part of :class:`ggtok.Tokenizer` that turns ids into text."""

    def decode(
        self,
        ids: types.Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = None,
        errors: str = "replace",
    ) -> str:
        """The text of some ids: ``llama_detokenize``, decoded from UTF-8.

        Args:
            ids: an iterable of integers, or an integer array (int32 is fastest).
            remove_special: drop a BOS at the start and an EOS at the end, if the
                vocabulary adds them.
            unparse_special: give control and unknown tokens as their text; if false,
                they give nothing.
            clean_spaces: None: as ``llama_detokenize``, which removes spaces before punctuation
                (``"ok !"`` becomes ``"ok!"``) if the vocabulary asks for it, as WPM and many
                BPE vocabularies do, and one space at the start if the vocabulary puts one
                there. False: keep all spaces; the text is the tokens' pieces, joined, as
                llama-server's ``/detokenize`` gives it. True: as None, but remove spaces before
                punctuation whatever the vocabulary asks for.
            errors: what to do about bytes that aren't UTF-8 (a token may end inside
                a character), as in ``bytes.decode``.

        Raises:
            TokenIdError: an id is outside the vocabulary.
            TextDecodeError: the bytes aren't UTF-8, with ``errors="strict"``.
        """
        data = self.decode_bytes(
            ids,
            remove_special=remove_special,
            unparse_special=unparse_special,
            clean_spaces=clean_spaces,
        )
        return _decoded(data, errors)

    def decode_bytes(
        self,
        ids: types.Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = None,
    ) -> bytes:
        """The bytes of some ids: ``llama_detokenize``. Arguments as for :meth:`decode`."""
        native = self._native
        flags = remove_special, unparse_special, clean_spaces
        if not isinstance(ids, (list, tuple)):
            return native.decode_array(int32_array(ids), *flags)
        try:
            return native.decode(ids, *flags)
        except Exception as e:
            return native.retry_decode(e, ids, *flags)

    def decode_batch(
        self,
        lists: Iterable[types.Ids],
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = None,
        errors: str = "replace",
    ) -> list[str]:
        """:meth:`decode` for each of many lists of ids.

        Args:
            lists: an iterable of what :meth:`decode` takes.
            remove_special, unparse_special, clean_spaces, errors: as for :meth:`decode`.

        Raises:
            TokenIdError, TextDecodeError: as for :meth:`decode`; the message, or a note (from
                Python 3.11 on), says which list (``lists[3]``).
        """
        remove, unparse, clean = (
            truth(remove_special, "remove_special"),
            truth(unparse_special, "unparse_special"),
            truth_or_none(clean_spaces, "clean_spaces"),
        )
        texts = []
        for i, ids in enumerate(iterated(lists, "lists must be an iterable of lists of ids")):
            try:
                data = self.decode_bytes(
                    ids, remove_special=remove, unparse_special=unparse, clean_spaces=clean
                )
            except ArgumentError as e:
                raise type(e)(f"lists[{i}]: {e}") from None
            try:
                texts.append(_decoded(data, errors))
            except TextDecodeError as e:
                if hasattr(e, "add_note"):  # Python 3.11
                    e.add_note(f"in lists[{i}]")
                raise
        return texts

    def stream_decoder(
        self,
        prompt_ids: types.Ids = (),
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = False,
        errors: str = "replace",
        stop: Iterable[str] = (),
        stop_ids: types.Ids = (),
        stop_at_eog: bool = False,
    ) -> StreamDecoder:
        """A decoder for ids that come one by one, such as those that a model generates.

        ``feed(id or ids)`` and at last ``finish()`` return text. Joined, it is what
        ``decode(prompt_ids + ids)`` with the same options has after its longest common prefix
        with ``decode(prompt_ids)``. By default that is the text which llama-server streams: the
        tokens' pieces, joined. (The server leaves out control tokens, unless it is told to show
        them: ``unparse_special=False``, and stops at a token that ends generation:
        ``stop_at_eog=True``.)

        Text is returned as soon as no further id can change it. The decoder holds back a
        character that isn't complete, what may become a stop string, an EOS that may be the last
        id (``remove_special``), and white space that may still be removed (``clean_spaces``).

        Args:
            prompt_ids: the ids before, whose text isn't returned.
            remove_special, unparse_special, clean_spaces, errors: as for :meth:`decode`, but
                spaces are kept by default.
            stop: strings at which the text ends. The first to be complete counts, and of several
                that end at the same place the longest. It isn't returned; ``stopped`` names it,
                and later feeds return ``""``. The prompt's text is no part of it. With
                ``unparse_special=False`` a control token prints nothing, so a string that is the
                text of one stands for that token.
            stop_ids: ids at which the text ends, like ``stop``: their text isn't returned, and
                ``stopped`` is the id.
            stop_at_eog: stop at each id of :attr:`eog_ids`, too.

        Raises:
            TokenIdError: an id of the prompt, or of ``stop_ids``, is outside the vocabulary.
            TextDecodeError: the prompt isn't UTF-8, with ``errors="strict"``. (It may end
                inside a character.)
            InvalidTypeError, InvalidValueError: ``stop`` is a single str, or holds an empty one.
        """
        flags = (
            truth(remove_special, "remove_special"),
            truth(unparse_special, "unparse_special"),
            truth_or_none(clean_spaces, "clean_spaces"),
        )
        eog_ids = self._eog_ids if truth(stop_at_eog, "stop_at_eog") else ()
        return StreamDecoder(self, prompt_ids, flags, errors, stop, stop_ids, eog_ids)


def _decoded(data: bytes, errors: str) -> str:
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as e:
        raise TextDecodeError(*e.args) from None
    except (LookupError, TypeError, ValueError) as e:
        raise InvalidValueError(f"errors: {e}") from None
