"""A rendered prompt, with the ranges of its parts. Ranges are half-open, in bytes of UTF-8, and
ascending, with gaps between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]
C_SPACES = " \t\n\v\f\r"  # the white space of C's isspace
# The end of a part in bytes; for a part from a message, the message's index and the field's name;
# else None, and whether the part is the template's own (True) or unknown (None).
Origin = tuple[int, int | None, str | bool | None]


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


@dataclass(frozen=True, slots=True)
class Prompt:
    text: str
    ranges: Ranges  # the template's own text
    generated: Ranges = ()  # text between {% generation %} and {% endgeneration %}
    media: Ranges = ()  # markers of images, audio and video
    origins: tuple[Origin, ...] = ()  # not kept by the methods below

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
        own, generated, media = (
            _within(r, begin, end) for r in (self.ranges, self.generated, self.media)
        )
        return Prompt(text, own, generated, media)

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
        split = _split_all(self.ranges, spans), _split_all(self.generated, spans)
        prompts = map(Prompt, texts, *split)
        return [(begin, prompt) for (begin, _), prompt in zip(spans, prompts, strict=True)]

    def end_of_conversation(self) -> int:
        """Returns the position after the last marker or text that isn't the template's own."""
        data = self.text.encode()
        end = len(data)
        if self.ranges and self.ranges[-1][1] == end:
            end = self.ranges[-1][0]
        if self.media:
            end = max(end, self.media[-1][1])
        return len(data[:end].decode())


def n_shared(a: str, b: str) -> int:
    """Returns the length of the two strings' longest common prefix, in characters."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _within(ranges: Ranges, begin: int, end: int) -> Ranges:
    """Cuts the ranges to [begin, end), and makes them relative to begin."""
    return tuple(
        (max(b, begin) - begin, min(e, end) - begin) for b, e in ranges if b < end and e > begin
    )


def _split_all(ranges: Ranges, spans: Iterable[tuple[int, int]]) -> Iterator[Ranges]:
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
