"""Decodes a stream of ids: :meth:`ggtok.Tokenizer.stream_decoder`."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterable

from ggtok import _types as types
from ggtok.errors import InvalidTypeError, InvalidValueError, TextDecodeError
from ggtok.native.arguments import int_list, iterate, token_ids
from ggtok.text.decoding import check_flags

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded


class StreamDecoder:
    """A decoder for ids as they arrive, created by :meth:`ggtok.Tokenizer.stream_decoder`.

    The results of :meth:`feed` and :meth:`finish`, joined, are the text of
    ``tok.decode(prompt_ids + ids)``, with the same options, after its longest common prefix with
    ``tok.decode(prompt_ids)``, up to the first stop string or stop id. A call takes time
    proportional to the number of its ids, however many came before. Decoders can be copied and
    pickled (with the tokenizer). They aren't thread-safe.
    """

    def __init__(
        self,
        loaded: Loaded | None = None,
        prompt_ids: types.Ids = (),
        flags: tuple[bool, bool, bool | None] | None = None,
        errors: str = "replace",
        stop: Iterable[str] = (),
        stop_ids: types.Ids = (),
        eog_ids: Iterable[int] = (),
    ) -> None:
        # Users call Tokenizer.stream_decoder instead.
        if loaded is None or flags is None:
            raise InvalidTypeError(
                "StreamDecoder can't be created directly: call tok.stream_decoder(prompt_ids)"
            )
        self.stopped: str | int | None = None
        """The stop string or id that ended the text, or None if none has yet."""
        self._finished = False
        self._is_plain = False  # whether _State.is_plain and no other text is held back
        self._ids = _Ids(loaded, *check_flags(flags))
        self._texts = self._ids.texts
        stops = _stop_strings(stop)
        self._stops = _Stops(stops)
        # For each id that ends the text, the value of `stopped`.
        self._ends: dict[int, str | int] = dict(self._ids.silent(stops))
        ends = [*eog_ids, *self._ids.checked(stop_ids, "stop_ids")]
        self._ends.update((id, id) for id in ends if id not in self._ends)
        try:
            codecs.lookup_error(errors)
        except (LookupError, TypeError, ValueError) as e:
            raise InvalidValueError(f"errors: {e}") from None
        start = _State(self._ids, errors)
        self._decoded(start, self._ids.checked(prompt_ids, "prompt_ids"))
        # `start` holds back the end of decode(prompt_ids), because further ids may change that end.
        # The text that they leave unchanged belongs to the prompt, and isn't returned.
        rest = start.copy()
        try:
            self._rest = self._decoded(rest, (), True)
        except TextDecodeError:  # the prompt ends inside a character
            self._rest = ""
        self._start = start
        self.reset()

    def feed(self, ids: types.SupportsIndex | types.Ids) -> str:
        """Add ids, and return the text that is now certain, possibly ``""``.

        Args:
            ids: the next id, or several.

        Raises:
            TokenIdError: an id is outside the vocabulary. Then none of the ids is added.
            TextDecodeError: the bytes aren't UTF-8, with ``errors="strict"``.
            InvalidValueError: :meth:`finish` has been called.
        """
        if self._is_plain and type(ids) is int and ids not in self._ends:
            # Fast path for most ids: only an incomplete character can be held back.
            if not self._state.utf8:
                text = self._texts.get(ids)
                if text is not None:
                    return text
            piece = self._ids.plain.get(ids)
            if piece is not None:
                return self._decode(self._state, piece)
        if self._finished:
            raise InvalidValueError("the stream is finished: call reset() to begin another")
        checked = self._ids.checked(ids, "ids")
        if self.stopped is not None:
            return ""
        n = next((i for i, id in enumerate(checked) if id in self._ends), None)
        text = self._next(checked[:n], n is not None)
        if n is not None and self.stopped is None:
            self.stopped = self._ends[checked[n]]
        self._is_plain = (
            self.stopped is None and self._state.is_plain and not (self._stops.any or self._skip)
        )
        return text

    def finish(self) -> str:
        """End the stream, and return the text that was held back; ``""`` if called again.

        Raises:
            TextDecodeError: the last character is incomplete, with ``errors="strict"``.
        """
        if self._finished or self.stopped is not None:
            self._finished = True
            return ""
        self._finished, self._is_plain = True, False
        return self._next((), True)

    def reset(self) -> None:
        """Start again after the same prompt."""
        self._state = self._start.copy()
        self._skip = self._rest
        self._finished = self._is_plain = False
        self._at, self._held = 0, ""
        self.stopped = None

    def copy(self) -> StreamDecoder:
        """Returns an independent copy that continues from here, for example for beam search."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._state = self._state.copy()  # nothing else changes in place
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> StreamDecoder:
        return self.copy()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_texts"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._texts = self._ids.texts

    def _next(self, ids: Iterable[int], last: bool) -> str:
        return self._stop_at(self._beyond(self._decoded(self._state, ids, last)), last)

    def _decode(self, state: _State, piece: bytes) -> str:
        try:
            return state.decode_utf8(piece, False)
        except UnicodeDecodeError as e:
            raise TextDecodeError(*e.args) from None

    def _decoded(self, state: _State, ids: Iterable[int], last: bool = False) -> str:
        try:
            return state.feed(ids, last)
        except UnicodeDecodeError as e:
            raise TextDecodeError(*e.args) from None

    def _beyond(self, text: str) -> str:
        """Returns the text without the prefix that it shares with the end of decode(prompt_ids)."""
        if not self._skip:
            return text
        n = min(len(text), len(self._skip))
        same = next((i for i in range(n) if text[i] != self._skip[i]), n)
        self._skip = self._skip[n:] if same == n else ""
        return text[same:]

    def _stop_at(self, text: str, last: bool = False) -> str:
        """Returns the text up to a stop string, or up to what may be the beginning of one."""
        if not self._stops.any:
            return text
        text = self._held + text
        end, self._at, found = self._stops.find(text, len(self._held), self._at)
        if found is not None:
            self.stopped = found
            self._held = ""
            return text[: end - len(found)]
        certain = len(text) if last else len(text) - self._stops.depth[self._at]
        self._held = text[certain:]
        return text[:certain]


class _Ids:
    """The pieces of ids and the vocabulary's flags, for particular decoding options."""

    def __init__(
        self,
        loaded: Loaded,
        remove_special: bool,
        unparse_special: bool,
        clean_spaces: bool | None,
    ) -> None:
        self._arguments = loaded, remove_special, unparse_special, clean_spaces
        self._loaded = loaded
        flags = loaded.flags
        self._unparse = unparse_special
        self.strips = flags["add_space_prefix"] and clean_spaces is not False
        self.clean = flags["clean_spaces"] if clean_spaces is None else clean_spaces
        # Caches shared by all streams: pieces by id; the pieces that cleaning can't change; and
        # the latter as text, if they consist of whole characters.
        self._pieces, self.plain, self.texts = loaded.streamed(self._unparse, self.clean)
        self._n = loaded.n_tokens
        self._none = loaded.vocab_type == "NONE"
        self.bos = loaded.special("bos") if remove_special and flags["add_bos"] else None
        self.eos = loaded.special("eos") if remove_special and flags["add_eos"] else None

    def __reduce__(self) -> tuple[object, ...]:
        return _Ids, self._arguments

    def silent(self, texts: Iterable[str]) -> Iterable[tuple[int, str]]:
        """Yields the id and text of each token that has one of these texts but an empty piece."""
        for text in () if self._unparse else texts:
            id = self._loaded.find(text.encode("utf-8", "surrogatepass"))
            if id is not None and not self._loaded.piece(id, 0, False):
                yield id, text

    def checked(self, ids: object, name: str) -> list[int]:
        if type(ids) is int and 0 <= ids < self._n:
            return [ids]
        if hasattr(ids, "__index__") and not getattr(ids, "ndim", 0):
            ids = [ids]
        # Without a vocabulary, every id decodes to nothing, as in decode().
        return int_list(ids, name)[:0] if self._none else token_ids(ids, self._n, name)

    def piece(self, id: int) -> bytes:
        piece = self._pieces.get(id)
        if piece is None:
            piece = self._pieces[id] = self._loaded.piece(id, 0, self._unparse)
            if not self.clean or not _may_be_cleaned(piece):
                self.plain[id] = piece
                with contextlib.suppress(UnicodeDecodeError):
                    self.texts[id] = piece.decode()
        return piece


def _may_be_cleaned(piece: bytes) -> bool:
    """Whether cleaning may change this piece, or hold part of it back, if no earlier text is held
    back."""
    return piece[-1:] == b" " or any(b" " + bytes([c]) in piece for c in b"?!.,'")


class _State:
    """The state of llama_detokenize, one id at a time.

    Three things are held back: an EOS, which is dropped if it is the last id; text that the
    cleaning of spaces may still change; and the bytes of an incomplete character.
    """

    def __init__(self, ids: _Ids, errors: str) -> None:
        self._ids = ids
        self._errors = errors
        self._first = True
        self._eos = b""  # the piece of the last id if it is EOS; dropped if no other id follows
        self._cleaning = _Cleaning() if ids.clean else None
        self.utf8 = b""  # the bytes of an incomplete character

    def copy(self) -> _State:
        new = _State(self._ids, self._errors)
        new._first, new._eos = self._first, self._eos
        if self._cleaning:
            new._cleaning = self._cleaning.copy()
        new.utf8 = self.utf8
        return new

    def feed(self, ids: Iterable[int], last: bool) -> str:
        data = b"".join(self._pieces_of(ids))
        if self._cleaning:
            data = self._cleaning.feed(data, last)
        return self.decode_utf8(data, last)

    def decode_utf8(self, data: bytes, last: bool) -> str:
        data = self.utf8 + data
        text, n = codecs.utf_8_decode(data, self._errors, last)
        self.utf8 = data[n:]
        return text

    @property
    def is_plain(self) -> bool:
        """Whether the next id decodes to exactly its piece, provided that cleaning can't change
        it."""
        if self._first or self._ids.eos is not None:
            return False
        return not self._cleaning or not any(self._cleaning.held)

    def _pieces_of(self, ids: Iterable[int]) -> Iterable[bytes]:
        known = self._ids
        for id in ids:
            if self._first:
                self._first = False
                if id == known.bos:
                    continue
                piece = known.piece(id)
                if known.strips and piece[:1] == b" ":
                    piece = piece[1:]
            else:
                piece = known.piece(id)
            yield self._eos
            self._eos = piece if id == known.eos else b""
            if id != known.eos:
                yield piece


class _Cleaning:
    """Cleans up spaces as cext/decode/detok.c does, in three passes.

    Each pass holds back bytes whose treatment may depend on the bytes that follow.
    """

    def __init__(self) -> None:
        import re

        self.held = [b"", b"", b""]
        self._space = re.compile(rb" (?=[?!.,])")
        self._contraction = re.compile(rb" (?='(?:s|m|re|ve))")
        self._open = re.compile(rb" (?:'[rv]?)?\Z")

    def copy(self) -> _Cleaning:
        new = _Cleaning()
        new.held = self.held[:]
        return new

    def feed(self, data: bytes, last: bool) -> bytes:
        # " ?": remove the space.
        data = self.held[0] + data
        certain = len(data) - (not last and data.endswith(b" "))
        self.held[0] = data[certain:]
        data = self._space.sub(b"", data[:certain])
        # " ' ": remove both spaces.
        data = self.held[1] + data
        *parts, rest = data.split(b" ' ")
        certain = len(rest)
        if not last:
            certain -= 2 if rest.endswith(b" '") else rest.endswith(b" ")
        self.held[1] = rest[certain:]
        data = b"'".join([*parts, rest[:certain]])
        # " 's": remove the space.
        data = self.held[2] + data
        open_ = None if last else self._open.search(data)
        certain = open_.start() if open_ else len(data)
        self.held[2] = data[certain:]
        return self._contraction.sub(b"", data[:certain])


class _Stops:
    """An Aho-Corasick automaton that finds the stop string that ends first."""

    def __init__(self, stops: list[str]) -> None:
        self.any = bool(stops)
        # For each state, the length of the longest suffix of the text that begins a stop string.
        self.depth = [0]
        self._next: list[dict[str, int]] = [{}]
        self._found: list[str | None] = [None]
        for stop in stops:
            at = 0
            for c in stop:
                if c not in self._next[at]:
                    self._next[at][c] = len(self.depth)
                    self.depth.append(self.depth[at] + 1)
                    self._next.append({})
                    self._found.append(None)
                at = self._next[at][c]
            self._found[at] = stop
        self._begins = frozenset(self._next[0])
        self._fail = [0] * len(self.depth)
        queue = [0]
        for at in queue:  # breadth first; the loop appends to `queue`
            for c, child in self._next[at].items():
                queue.append(child)
                if at:
                    self._fail[child] = self._step(self._fail[at], c)
                if self._found[child] is None:  # otherwise, a longer stop string ends here
                    self._found[child] = self._found[self._fail[child]]

    def _step(self, at: int, c: str) -> int:
        while at and c not in self._next[at]:
            at = self._fail[at]
        return self._next[at].get(c, 0)

    def find(self, text: str, begin: int, at: int) -> tuple[int, int, str | None]:
        """Scans text[begin:] from state `at` up to the first complete stop string.

        Returns the position, the state, and the stop string or None.
        """
        if not at and self._begins.isdisjoint(text[begin:]):
            return len(text), 0, None
        for i in range(begin, len(text)):
            at = self._step(at, text[i])
            found = self._found[at]
            if found is not None:
                return i + 1, at, found
        return len(text), at, None


def _stop_strings(stop: Iterable[str]) -> list[str]:
    expected = "stop must be a collection of strings"
    if isinstance(stop, (str, bytes)):
        raise InvalidTypeError(f"{expected}, not {type(stop).__name__}")
    stops = list(iterate(stop, expected))
    for i, text in enumerate(stops):
        if not isinstance(text, str):
            raise InvalidTypeError(f"stop[{i}] must be str, not {type(text).__name__}")
        if not text:
            raise InvalidValueError(f"stop[{i}] is empty")
    return stops
