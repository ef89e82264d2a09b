"""Text that records which ranges are the template's own, and which come from the conversation.

Strings passed to a template come from the conversation. The exception is `Text`, which has ranges
that are the template's own: roles, special tokens, and text that the preparation adds. A `Prompt`
is the result: the text, and the ranges that are the template's own. Text that is inserted because
of other text in the prompt is the template's own only if that other text is. Otherwise a message
could imitate that other text to write a control token. Ranges are half-open, in bytes of UTF-8, and
ascending, with gaps between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]
C_SPACES = " \t\n\v\f\r"  # the white space of C's isspace

# Roles that count as the template's own, because some templates write '<|' + role + '|>'.
ROLES = frozenset(
    "assistant critic developer documents environment function human ipython model observation "
    "system tool tool_call tool_calls tool_response tools user".split()
)


class Text(str):
    """A string with ranges that are the template's own."""

    ranges: Ranges


def own(text: str) -> Text:
    """Returns the string as Text that is entirely the template's own."""
    return _with_ranges(text, ((0, _size(text)),) if text else ())


def joined(pieces: Iterable[tuple[str, bool]]) -> Text:
    """Joins pieces: pairs of a text and whether it is the template's own."""
    texts: list[str] = []
    ranges: list[tuple[int, int]] = []
    at = 0
    for text, is_own in pieces:
        texts.append(text)
        end = at + _size(text)
        if is_own and end > at:
            if ranges and ranges[-1][1] == at:
                ranges[-1] = ranges[-1][0], end
            else:
                ranges.append((at, end))
        at = end
    return _with_ranges("".join(texts), tuple(ranges))


def _with_ranges(text: str, ranges: Ranges) -> Text:
    new = Text(text)
    new.ranges = ranges
    return new


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


_OWN_ROLES = {role: own(role) for role in ROLES}


def role(name: str) -> str:
    return _OWN_ROLES.get(name, name)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered text, with the ranges of its parts."""

    text: str
    ranges: Ranges  # the template's own text
    generated: Ranges = ()  # text between {% generation %} and {% endgeneration %}
    media: Ranges = ()  # markers of images, audio and video

    # ---- parts; positions are in characters ----

    def cut(self, at: int) -> Prompt:
        """Returns the prompt's first `at` characters."""
        text = self.text[:at]
        return self._between(text, 0, _size(text))

    def rest(self, at: int) -> Prompt:
        """Returns the prompt without the first `at` characters."""
        return self._between(self.text[at:], _size(self.text[:at]), _size(self.text))

    def _between(self, text: str, begin: int, end: int) -> Prompt:
        """Returns the part from byte `begin` to `end`, which is `text`."""
        ranges = (_within(r, begin, end) for r in (self.ranges, self.generated, self.media))
        return Prompt(text, *ranges)

    def ends_with_media(self) -> bool:
        """Whether the prompt ends with a marker."""
        return bool(self.media) and self.media[-1][1] == _size(self.text)

    def around_media(self) -> list[tuple[int, Prompt]]:
        """Returns the non-empty texts around the markers, each with its position in bytes."""
        data = self.text.encode()
        begins = 0, *(end for _, end in self.media)
        ends = *(begin for begin, _ in self.media), len(data)
        spans = [span for span in zip(begins, ends, strict=True) if span[0] < span[1]]
        texts = (data[begin:end].decode() for begin, end in spans)
        split = _split(self.ranges, spans), _split(self.generated, spans)
        prompts = map(Prompt, texts, *split)
        return [(begin, prompt) for (begin, _), prompt in zip(spans, prompts, strict=True)]

    def followed_by(self, pieces: Iterable[tuple[str, bool]]) -> Prompt:
        """Returns the prompt followed by the pieces."""
        more = joined(pieces)
        return self._with(Prompt(str.__str__(more), more.ranges))

    def _with(self, other: Prompt) -> Prompt:
        at = _size(self.text)
        return Prompt(
            self.text + other.text,
            _joined_ranges(self.ranges, other.ranges, at),
            _joined_ranges(self.generated, other.generated, at),
        )

    # ---- ends ----

    def without_ends(self, bos: str, eos: str) -> Prompt:
        """Returns the prompt without `bos` at the start and `eos` at the end, if the template wrote
        them."""
        prompt = self
        if bos and prompt.text.startswith(bos) and self.covers(0, _size(bos)):
            prompt = prompt.rest(len(bos))
        end = _size(self.text)
        if eos and prompt.text.endswith(eos) and self.covers(end - _size(eos), end):
            prompt = prompt.cut(len(prompt.text) - len(eos))
        return prompt

    def end_of_conversation(self) -> int:
        """Returns the position after the last marker or text that isn't the template's own."""
        data = self.text.encode()
        end = len(data)
        if self.ranges and self.ranges[-1][1] == end:
            end = self.ranges[-1][0]
        if self.media:
            end = max(end, self.media[-1][1])
        return len(data[:end].decode())

    def turn(self, end: str, begin: str) -> list[tuple[str, bool]]:
        """Returns the text `begin` as pieces if the prompt ends with `end`, else no pieces."""
        if not begin or not self.text.endswith(end):
            return []
        size = _size(self.text)
        return [(begin, self.covers(size - _size(end), size))]

    # ---- texts inside ----

    def covers(self, begin: int, end: int) -> bool:
        """Whether these bytes are the template's own."""
        return _covers(self.ranges, begin, end)

    def after(self, other: Prompt) -> list[tuple[str, bool]]:
        """Returns the text after the longest common prefix with another prompt, in pieces."""
        rest = self.rest(n_shared(self.text, other.text))
        data, at = rest.text.encode(), 0
        pieces: list[tuple[str, bool]] = []
        for begin, end in rest.ranges:
            pieces += [(data[at:begin].decode(), False), (data[begin:end].decode(), True)]
            at = end
        return [piece for piece in (*pieces, (data[at:].decode(), False)) if piece[0]]

    def with_last(self, old: str, new: str) -> Prompt:
        """Returns the prompt with the last occurrence of `old` replaced with `new`."""
        at = self.text.rfind(old)
        if at < 0:
            return self
        begin, size = _size(self.text[:at]), _size(new)
        own, generated = (
            ((0, size),) if _covers(ranges, begin, begin + _size(old)) else ()
            for ranges in (self.ranges, self.generated)
        )
        return self.cut(at)._with(Prompt(new, own, generated))._with(self.rest(at + len(old)))


def n_shared(a: str, b: str) -> int:
    """Returns the length of the two strings' longest common prefix, in characters."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _within(ranges: Ranges, begin: int, end: int) -> Ranges:
    """Cuts the ranges to [begin, end), and makes them relative to begin."""
    return tuple(
        (max(b, begin) - begin, min(e, end) - begin) for b, e in ranges if b < end and e > begin
    )


def _split(ranges: Ranges, spans: Iterable[tuple[int, int]]) -> Iterator[Ranges]:
    """Yields the ranges within each span, like :func:`_within`, but in one pass over all ranges."""
    first = 0
    for begin, end in spans:
        while first < len(ranges) and ranges[first][1] <= begin:
            first += 1
        last = first
        while last < len(ranges) and ranges[last][0] < end:
            last += 1
        yield _within(ranges[first:last], begin, end)
        first = max(first, last - 1)


def _covers(ranges: Ranges, begin: int, end: int) -> bool:
    return begin == end or any(b <= begin and end <= e for b, e in ranges)


def _joined_ranges(first: Ranges, second: Ranges, at: int) -> Ranges:
    """Joins the ranges of two texts, the second of which begins at `at`."""
    shifted = [(begin + at, end + at) for begin, end in second]
    if first and shifted and first[-1][1] == shifted[0][0]:
        shifted[0] = first[-1][0], shifted[0][1]
        first = first[:-1]
    return (*first, *shifted)
