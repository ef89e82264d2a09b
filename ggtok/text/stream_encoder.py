"""Encodes a text that grows: :meth:`ggtok.Tokenizer.stream_encoder`."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok import _types as types
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import text_bytes, truth

TEXTS = (str, bytes, bytearray, memoryview)

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

    from ggtok.loading.loaded import Loaded


class StreamEncoder:
    """An encoder for a text that grows, created by :meth:`ggtok.Tokenizer.stream_encoder`.

    The results of :meth:`feed` and :meth:`finish`, joined, are ``tok.encode`` of the texts joined.
    All calls to :meth:`feed` together take time proportional to the text, and ``pending`` and
    ``count`` take time proportional to the text whose ids may still change.
    Encoders can be copied and pickled (with the tokenizer). They aren't thread-safe.
    """

    def __init__(
        self,
        loaded: Loaded | None = None,
        flags: tuple[object, object, object] | None = None,
    ) -> None:
        # Users call Tokenizer.stream_encoder instead.
        if loaded is None or flags is None:
            raise InvalidTypeError(
                "StreamEncoder can't be created directly: call tok.stream_encoder()"
            )
        add_special, parse_special, continuation = flags
        self._loaded = loaded
        self._flags = truth(add_special, "add_special"), truth(continuation, "continuation")
        if isinstance(parse_special, Iterable) and not isinstance(parse_special, TEXTS):
            parse_special = tuple(parse_special)  # read again after unpickling
        self._parse_special = parse_special
        self._parsed = loaded.parsed(parse_special)
        self._n_final = 0  # number of ids that were returned
        self._is_continued = False  # whether text before `_parts` has been encoded
        self._parts: list[bytes] = []  # the rest: text whose ids aren't final
        self._size = 0  # bytes of the rest
        self._enough = 0  # the size from which the rest is searched for a cut
        self._pending: list[int] | None = None  # ids of the rest, if they are known
        self._finished = False
        self._encode(b"", True)  # raises errors that any text would

    def feed(self, text: types.Text) -> list[int]:
        """Append text, and return the ids that no further text can change, possibly none.

        Args:
            text: ``str``, or bytes-like UTF-8, which may end inside a character.

        Raises:
            TextEncodeError, VocabError, InvalidTypeError: as for ``encode``. Then nothing is
                appended.
            InvalidValueError: :meth:`finish` has been called.
        """
        if self._finished:
            raise InvalidValueError("the text is finished: call tok.stream_encoder() for another")
        data = text_bytes(text)
        if self._size + len(data) < self._enough:
            self._parts.append(data)
            self._size += len(data)
            self._pending = None
            return []
        whole = b"".join([*self._parts, data])
        ids, used = self._encode(whole, False)
        rest = whole[used:]
        # One call, so that a signal handler's exception can't leave half of the changes.
        vars(self).update(
            _parts=[rest],
            _size=len(rest),
            _enough=0 if used else 2 * len(rest),
            _is_continued=self._is_continued or used > 0,
            _n_final=self._n_final + len(ids),
            _pending=None,
        )
        final: list[int] = ids
        return final

    @property
    def pending(self) -> list[int]:
        """The ids of the rest of the text, as if it ended here (with EOS, if the vocabulary adds
        it). The ids that :meth:`feed` returned and these are ``tok.encode`` of the text so far.
        """
        if self._pending is None:
            self._parts = [b"".join(self._parts)]
            self._pending = self._encode(self._parts[0], True)
        return self._pending[:]

    @property
    def count(self) -> int:
        """The number of ids of the text so far, final and pending: ``tok.count`` of the text."""
        return self._n_final + len(self.pending)

    def finish(self) -> list[int]:
        """End the text, and return the ids of its rest; an empty list if called again."""
        ids = [] if self._finished else self.pending
        if not self._finished:
            self._n_final += len(ids)
            self._parts, self._size, self._pending = [], 0, []
            self._finished = True
        return ids

    def copy(self) -> StreamEncoder:
        """Returns an independent copy that continues from here."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._parts = self._parts[:]
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> StreamEncoder:
        return self.copy()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_parsed"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._parsed = self._loaded.parsed(self._parse_special)

    def _encode(self, data: bytes, last: bool) -> Any:
        add_special, continuation = self._flags
        arguments = data, add_special, self._parsed, continuation, self._is_continued, last
        try:
            return self._loaded.encode_block(*arguments)
        except Exception as e:
            self._loaded.reraise(e)
