"""Encodings as in Hugging Face's tokenizers, with truncation and padding.

An encoding is a list of runs. A run is a range of a source's tokens, a list of added tokens, or
padding. Runs contain ids; the offsets, texts and words of tokens are computed lazily, since few
callers read them.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import NamedTuple

from ggtok.adapters.huggingface import Core
from ggtok.base.concurrency import cached_property
from ggtok.errors import InvalidValueError

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from ggtok._types import Int64Array

Span = tuple[int, int]


class Truncation(NamedTuple):
    max_length: int
    stride: int
    strategy: str  # longest_first, only_first or only_second
    direction: str


class Padding(NamedTuple):
    length: int | None  # None: the length of the longest encoding
    direction: str
    pad_id: int
    pad_type_id: int
    pad_token: str
    multiple_of: int | None

    def target(self, rows: Sequence[Sized]) -> int:
        """Returns the length to which encodings, or rows of ids, are padded."""
        length = self.length
        if length is None:
            length = max(map(len, rows), default=0)
        if self.multiple_of and length % self.multiple_of:
            length += self.multiple_of - length % self.multiple_of
        return length


class EncodedText:
    """A text, or a list of words, with its ids. Offsets are in code points.

    In a list of words, offsets are relative to the start of each word.
    """

    def __init__(
        self,
        core: Core,
        text: str | Sequence[str],
        parse_special: bool,
        ids: list[int] | None = None,
        spans: Int64Array | None = None,
    ) -> None:
        self._core = core
        self._parts = (text,) if isinstance(text, str) else tuple(text)
        self._split = not isinstance(text, str)
        self._parse = parse_special
        self._precomputed = ids, spans

    @cached_property
    def ids(self) -> list[int]:
        if self._precomputed[0] is not None:
            return self._precomputed[0]
        return [id for ids, _ in self._encoded for id in ids]

    @cached_property
    def offsets(self) -> list[Span]:
        parts = [spans for _, spans in self._encoded]
        if self._precomputed[1] is not None:
            parts = [self._precomputed[1]]
        # Faster than converting one row at a time.
        return [
            span
            for spans in parts
            for span in zip(spans[:, 0].tolist(), spans[:, 1].tolist(), strict=True)
        ]

    @cached_property
    def words(self) -> list[int]:
        """For each token, the index of its word."""
        if self._split:
            return [i for i, (ids, _) in enumerate(self._encoded) for _ in ids]
        return self._core.words(self._parts[0], self._parse)

    @cached_property
    def _encoded(self) -> list[tuple[list[int], Int64Array]]:
        if self._precomputed[1] is not None:
            return []
        encode = self._core.tok.encode_with_offsets
        parse = self._parse
        return [
            encode(part, add_special=False, parse_special=parse, unit="char")
            for part in self._parts
        ]


class TokenRun(NamedTuple):
    """Tokens `begin` to `end` of a source, or added tokens (in `added`), or padding."""

    source: EncodedText | None
    begin: int
    end: int
    sequence: int | None
    type_id: int
    added: tuple[int, ...] = ()
    padding: str | None = None  # for padding, the text of each of its tokens

    def ids(self) -> Sequence[int]:
        return self.added if self.source is None else self.source.ids[self.begin : self.end]

    def __len__(self) -> int:
        return self.end - self.begin


def _added_run(ids: Sequence[int], type_id: int) -> list[TokenRun]:
    return [TokenRun(None, 0, len(ids), None, type_id, tuple(ids))] if ids else []


class Encoding:
    """The tokens of a text or a pair of texts, with the interface of ``tokenizers.Encoding``.

    Attributes:
        overflowing: the encodings of the parts that truncation cut off.
    """

    def __init__(self, core: Core, runs: list[TokenRun]) -> None:
        self._core = core
        self._runs = runs
        self.overflowing: list[Encoding] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def __repr__(self) -> str:
        return f"Encoding(num_tokens={len(self)})"

    # ---- a value for each token ----

    @cached_property
    def ids(self) -> list[int]:
        return [id for run in self._runs for id in run.ids()]

    @property
    def type_ids(self) -> list[int]:
        return [run.type_id for run in self._runs for _ in range(len(run))]

    @property
    def attention_mask(self) -> list[int]:
        return [int(run.padding is None) for run in self._runs for _ in range(len(run))]

    @property
    def special_tokens_mask(self) -> list[int]:
        """For each token, 1 if it is an added token or padding, else 0."""
        return [int(run.source is None) for run in self._runs for _ in range(len(run))]

    @cached_property
    def sequence_ids(self) -> list[int | None]:
        return [run.sequence for run in self._runs for _ in range(len(run))]

    @cached_property
    def tokens(self) -> list[str]:
        texts: list[str] = []
        for run in self._runs:
            if run.padding is not None:
                texts += [run.padding] * len(run)
            else:
                texts += map(self._core.known_text, run.ids())
        return texts

    @cached_property
    def offsets(self) -> list[Span]:
        """The span of each token in its text, in code points; (0, 0) for tokens that encoding adds,
        such as BOS."""
        spans: list[Span] = []
        for run in self._runs:
            spans += run.source.offsets[run.begin : run.end] if run.source else [(0, 0)] * len(run)
        return spans

    @cached_property
    def word_ids(self) -> list[int | None]:
        """For each token, the index of its word among the pre-tokenizer's or the caller's words.

        Raises:
            InvalidValueError: the text is longer than :meth:`ggtok.Tokenizer.explain` allows.
        """
        words: list[int | None] = []
        for run in self._runs:
            words += run.source.words[run.begin : run.end] if run.source else [None] * len(run)
        return words

    # ---- from tokens to texts and back ----

    @property
    def n_sequences(self) -> int:
        return len({run.sequence for run in self._runs} - {None}) or 1

    def token_to_sequence(self, token: int) -> int | None:
        return self.sequence_ids[token] if 0 <= token < len(self) else None

    def token_to_chars(self, token: int) -> Span | None:
        return self.offsets[token] if self.token_to_sequence(token) is not None else None

    def token_to_word(self, token: int) -> int | None:
        return self.word_ids[token] if self.token_to_sequence(token) is not None else None

    def char_to_token(self, char: int, sequence_index: int = 0) -> int | None:
        """Returns the index of the first token whose span contains the character."""
        for token, sequence in enumerate(self.sequence_ids):
            if (
                sequence == sequence_index
                and self.offsets[token][0] <= char < self.offsets[token][1]
            ):
                return token
        return None

    def word_to_tokens(self, word: int, sequence_index: int = 0) -> Span | None:
        """Returns the half-open range of a word's tokens."""
        of = enumerate(zip(self.sequence_ids, self.word_ids, strict=True))
        found = [token for token, place in of if place == (sequence_index, word)]
        return (found[0], found[-1] + 1) if found else None

    def word_to_chars(self, word: int, sequence_index: int = 0) -> Span | None:
        found = self.word_to_tokens(word, sequence_index)
        return (self.offsets[found[0]][0], self.offsets[found[1] - 1][1]) if found else None

    def char_to_word(self, char: int, sequence_index: int = 0) -> int | None:
        token = self.char_to_token(char, sequence_index)
        return None if token is None else self.word_ids[token]

    # ---- padding ----

    def padded(self, length: int, padding: Padding) -> Encoding:
        """Returns this encoding, and its overflowing encodings, padded to `length` tokens."""
        result = self
        if len(self) < length:
            missing = length - len(self)
            ids = (padding.pad_id,) * missing
            run = TokenRun(None, 0, missing, None, padding.pad_type_id, ids, padding.pad_token)
            left = padding.direction == "left"
            result = Encoding(self._core, [run, *self._runs] if left else [*self._runs, run])
        result.overflowing = [other.padded(length, padding) for other in self.overflowing]
        return result


# ---- truncation ----


def _parts(n: int, length: int, stride: int, direction: str) -> list[Span]:
    """Divides n tokens into parts of at most `length`; neighbouring parts share `stride`
    tokens."""
    if length >= n:
        return [(0, n)]
    if not length:
        return [(0, 0), (0, n)]
    if stride >= length:
        raise InvalidValueError(
            f"stride is {stride}, but must be less than the {length} tokens that truncation "
            "leaves (without added tokens)"
        )
    parts = []
    for start in range(0, n, length - stride):
        parts.append((start, min(start + length, n)))
        if start + length >= n:
            break
    return parts if direction == "right" else [(n - end, n - start) for start, end in parts]


def _lengths(n: tuple[int, int | None], room: int, strategy: str) -> tuple[int, int]:
    """Returns the lengths to which a text (or pair) of `n` tokens is truncated to fit in `room`
    tokens."""
    first, second = n[0], n[1] or 0
    excess = first + second - room
    if excess <= 0:
        return first, second
    if strategy == "longest_first":
        if n[1] is None:
            return room, 0
        short, long = sorted((first, second))
        long = short if short > room else max(short, room - short)
        if short + long > room:
            short, long = room // 2, room - room // 2
        return (short, long) if first <= second else (long, short)
    at = 0 if strategy == "only_first" else 1
    if n[at] is None:
        raise InvalidValueError("truncation 'only_second' needs a pair of texts")
    left = (n[at] or 0) - excess
    if left <= 0:
        raise InvalidValueError(
            f"{excess} tokens must be cut off, but the "
            f"{'first' if at == 0 else 'second'} text has only {n[at]}"
        )
    return (left, second) if at == 0 else (first, left)


def encodings(
    core: Core,
    pairs: Sequence[tuple[EncodedText, EncodedText | None]],
    *,
    add_special: bool,
    truncation: Truncation | None,
    padding: Padding | None,
) -> list[Encoding]:
    """Returns the encodings of texts and pairs of texts."""
    unpadded = [_encoding(core, *pair, add_special, truncation) for pair in pairs]
    if padding is None:
        return unpadded
    length = padding.target(unpadded)
    return [one.padded(length, padding) for one in unpadded]


def _encoding(
    core: Core,
    first: EncodedText,
    second: EncodedText | None,
    add_special: bool,
    truncation: Truncation | None,
) -> Encoding:
    n = len(first.ids), None if second is None else len(second.ids)
    firsts, seconds = [(0, n[0])], [(0, n[1] or 0)]
    if truncation is not None:
        added = core.n_added(second is not None) if add_special else 0
        room = max(truncation.max_length - added, 0)
        to = _lengths(n, room, truncation.strategy)
        how = truncation.stride, truncation.direction
        firsts = _parts(n[0], to[0], *how)
        seconds = _parts(n[1] or 0, to[1], *how)

    def build(a: Span, b: Span) -> Encoding:
        runs = _runs(core, first, a, 0, add_special)
        if second is not None:
            runs += _runs(core, second, b, 1, add_special)
        return Encoding(core, runs)

    # The tokenizers library combines the parts of both texts in this order.
    whole = build(firsts[0], seconds[0])
    whole.overflowing = [build(a, b) for a in firsts[1:] for b in seconds]
    whole.overflowing += [build(firsts[0], b) for b in seconds[1:]]
    return whole


def _runs(
    core: Core, source: EncodedText, part: Span, sequence: int, add_special: bool
) -> list[TokenRun]:
    own = TokenRun(source, *part, sequence, sequence)
    if not add_special:
        return [own]
    before = core.before if sequence == 0 else core.before_second
    return [*_added_run(before, sequence), own, *_added_run(core.after, sequence)]
