"""Text that records which ranges are the template's own, and which come from the conversation.

Strings passed to a template are the conversation's. The exception is `Text`, which has ranges that
are the template's own: roles, special tokens, and text that the preparation adds. A `Prompt` is the
result: the text and its own ranges. Text that is inserted because of other text in the prompt is
the template's own only if that other text is, so a message can't imitate it to write a control
token. Ranges are half-open, in bytes of UTF-8, ascending, and don't touch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]

# Roles that count as the template's own, because some templates write '<|' + role + '|>'.
ROLES = frozenset(
    "assistant critic developer documents environment function human ipython model observation "
    "system tool tool_call tool_calls tool_response tools user".split()
)


class Text(str):
    """A string with ranges that are the template's own."""

    ranges: Ranges


def own(text: str) -> Text:
    """A string that is the template's own as a whole."""
    return _made(text, ((0, _size(text)),) if text else ())


def joined(pieces: Iterable[tuple[str, bool]]) -> Text:
    """One string of several pieces, each with whether it is the template's own."""
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
    return _made("".join(texts), tuple(ranges))


def _made(text: str, ranges: Ranges) -> Text:
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
    """A rendered text."""

    text: str
    ranges: Ranges  # the template's own text
    generated: Ranges = ()  # text between {% generation %} and {% endgeneration %}

    def without_ends(self, bos: str, eos: str) -> Prompt:
        """The prompt without `bos` at its start and `eos` at its end."""
        text, cut, end = self.text, 0, _size(self.text)
        if bos and text.startswith(bos):
            text, cut = text[len(bos) :], _size(bos)
        if eos and text.endswith(eos):
            text, end = text[: len(text) - len(eos)], end - _size(eos)
        if text is self.text:
            return self
        return Prompt(text, _within(self.ranges, cut, end), _within(self.generated, cut, end))

    def cut(self, at: int) -> Prompt:
        """The first `at` characters."""
        text = self.text[:at]
        end = _size(text)
        return Prompt(text, _within(self.ranges, 0, end), _within(self.generated, 0, end))

    def end_of_conversation(self) -> int:
        """The number of characters up to the last one that isn't the template's own."""
        data = self.text.encode()
        end = len(data)
        if self.ranges and self.ranges[-1][1] == end:
            end = self.ranges[-1][0]
        return len(data[:end].decode())

    def rest(self, at: int) -> Prompt:
        """The prompt without the first `at` characters."""
        begin = _size(self.text[:at])
        end = begin + _size(self.text[at:])
        ranges = _within(self.ranges, begin, end)
        return Prompt(self.text[at:], ranges, _within(self.generated, begin, end))

    def covers(self, begin: int, end: int) -> bool:
        """Whether these bytes are the template's own."""
        return begin == end or any(b <= begin and end <= e for b, e in self.ranges)

    def after(self, other: Prompt) -> list[tuple[str, bool]]:
        """The text after the common prefix with another prompt, in pieces."""
        shared = 0
        for a, b in zip(self.text, other.text, strict=False):
            if a != b:
                break
            shared += 1
        data, at = self.text.encode(), _size(self.text[:shared])
        pieces: list[tuple[str, bool]] = []
        for begin, end in self.ranges:
            if end <= at:
                continue
            if begin > at:
                pieces.append((data[at:begin].decode(), False))
                at = begin
            pieces.append((data[at:end].decode(), True))
            at = end
        return [*pieces, (data[at:].decode(), False)]

    def followed_by(self, pieces: Iterable[tuple[str, bool]]) -> Prompt:
        """The prompt with more text, in pieces."""
        more = joined(pieces)
        at = _size(self.text)
        ranges = list(self.ranges)
        for begin, end in more.ranges:
            if ranges and ranges[-1][1] == at + begin:
                ranges[-1] = ranges[-1][0], at + end
            else:
                ranges.append((at + begin, at + end))
        return Prompt(self.text + str.__str__(more), tuple(ranges), self.generated)

    def turn(self, end: str, begin: str) -> list[tuple[str, bool]]:
        """The text `begin`, in pieces, if the prompt ends with `end`; else nothing."""
        if not begin or not self.text.endswith(end):
            return []
        size = _size(self.text)
        return [(begin, self.covers(size - _size(end), size))]

    def with_last(self, old: str, new: str) -> Prompt:
        """The prompt with the last occurrence of `old` replaced by `new`."""
        at = self.text.rfind(old)
        if at < 0:
            return self
        begin = _size(self.text[:at])
        end = begin + _size(old)
        shift = _size(new) - _size(old)
        replaced = [(new, self.covers(begin, end))]
        head = Prompt(self.text[:at], _within(self.ranges, 0, begin)).followed_by(replaced)
        after = [(b + shift, e + shift) for b, e in _after(self.ranges, end)]
        ranges = list(head.ranges)
        if ranges and after and ranges[-1][1] == after[0][0]:
            after[0] = ranges.pop()[0], after[0][1]
        return Prompt(
            head.text + self.text[at + len(old) :],
            (*ranges, *after),
            tuple(
                (b if b < end else b + shift, e if e < end else e + shift)
                for b, e in self.generated
            ),
        )


def _within(ranges: Ranges, begin: int, end: int) -> Ranges:
    """The parts of the ranges in [begin, end), relative to begin."""
    return tuple(
        (max(b, begin) - begin, min(e, end) - begin) for b, e in ranges if b < end and e > begin
    )


def _after(ranges: Ranges, at: int) -> Ranges:
    return tuple((max(b, at), e) for b, e in ranges if e > at)
