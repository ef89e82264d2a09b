"""Parser for the subset of ECMAScript that the pre-tokenizer patterns use.

Characters are classified as in llama.cpp, which matches a transformed text: white space beyond
ASCII becomes U+000B, so \\s matches it, and a range matches it only if the range contains U+000B;
\\s and \\d contain only ASCII; if a pattern contains \\p, every other character beyond ASCII
becomes one byte for its category. A pattern with \\p must not name a character beyond ASCII
(llama.cpp refuses it, too), so a set has the same meaning in both kinds of patterns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class Props(NamedTuple):
    """The properties of a code point that a set can test, in addition to its number."""

    category: str  # first letter of the general category; "" if unassigned
    white_space: bool
    han: bool


@dataclass(frozen=True)
class CharSet:
    negated: bool
    ranges: tuple[tuple[int, int], ...]
    escapes: tuple[str, ...]  # keys of _ESCAPES

    def __contains__(self, item: tuple[int, Props]) -> bool:
        cpt, props = item
        c = 0x0B if cpt > 0x7F and props.white_space else cpt
        found = any(lo <= c <= hi for lo, hi in self.ranges) or any(
            _ESCAPES[e](c, props) for e in self.escapes
        )
        return found != self.negated


def _space(c: int, _: Props) -> bool:
    return 9 <= c <= 13 or c == 32


def _category(letter: str) -> Callable[[int, Props], bool]:
    return lambda _, props: props.category == letter


_ESCAPES: dict[str, Callable[[int, Props], bool]] = {
    "\\s": _space,
    "\\S": lambda c, props: not _space(c, props),
    "\\d": lambda c, _: 0x30 <= c <= 0x39,
    "Han": lambda _, props: props.han,
    # llama.cpp doesn't distinguish the kinds of letters.
    **{name: _category("L") for name in ("L", "Lu", "Ll", "Lt", "Lm", "Lo")},
    **{name: _category(name) for name in "NPMS"},
}


class Chars(NamedTuple):
    chars: CharSet


class Seq(NamedTuple):
    parts: list[Node]


class Alt(NamedTuple):
    options: list[Node]  # the first option that leads to a match wins


class Repeat(NamedTuple):  # greedy repetition
    body: Node
    low: int
    high: int | None


class Look(NamedTuple):
    """A condition on the next character; the end of the text satisfies a negated condition."""

    chars: CharSet
    negated: bool


class End(NamedTuple):
    pass


Node = Chars | Seq | Alt | Repeat | Look | End

_CONTROLS = {"r": 13, "n": 10, "t": 9}


class Parser:
    def __init__(self, regex: str, mixed: bool = False) -> None:
        self.regex = regex
        self.pos = 0
        self.sets: list[CharSet] = []
        self.tree = self._alternatives()
        if self.pos != len(regex):
            raise self._error("unbalanced )")
        ranges = [r for s in self.sets for r in s.ranges]
        if not mixed and "\\p{" in regex and any(hi > 0x7F for _, hi in ranges):
            raise self._error("categories and characters beyond ASCII in one pattern")

    def _error(self, message: str) -> ValueError:
        return ValueError(f"{message} at {self.pos} in {self.regex!r}")

    def _eat(self, text: str) -> bool:
        if self.regex.startswith(text, self.pos):
            self.pos += len(text)
            return True
        return False

    def _next(self) -> str:
        if self.pos == len(self.regex):
            raise self._error("unexpected end")
        self.pos += 1
        return self.regex[self.pos - 1]

    def _alternatives(self) -> Node:
        options = [self._sequence()]
        while self._eat("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Alt(options)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.pos < len(self.regex) and self.regex[self.pos] not in "|)":
            parts.append(self._quantified())
        return Seq(parts)

    def _quantified(self) -> Node:
        node = self._atom()
        if self._eat("*"):
            return Repeat(node, 0, None)
        if self._eat("+"):
            return Repeat(node, 1, None)
        if self._eat("?"):
            return Repeat(node, 0, 1)
        if self._eat("{"):
            start = self.pos
            while self._next() != "}":
                pass
            low, comma, high = self.regex[start : self.pos - 1].partition(",")
            return Repeat(node, int(low), int(high) if high else None if comma else int(low))
        return node

    def _atom(self) -> Node:
        for opening, negated in (("(?=", False), ("(?!", True)):
            if self._eat(opening):
                look = Look(self._charset(), negated)
                if not self._eat(")"):
                    raise self._error("a lookahead holds one set")
                return look
        if self._eat("(?:") or self._eat("("):
            node = self._alternatives()
            if not self._eat(")"):
                raise self._error("missing )")
            return node
        if self._eat("$"):
            return End()
        return Chars(self._charset())

    def _charset(self) -> CharSet:
        ranges: list[tuple[int, int]] = []
        escapes: list[str] = []
        negated = False
        if self._eat("["):
            negated = self._eat("^")
            while not self._eat("]"):
                low = self._item(escapes)
                if low is None:
                    continue
                high = low
                if self.regex[self.pos] == "-" and self.regex[self.pos + 1] != "]":
                    self.pos += 1
                    last = self._item(escapes)
                    if last is None or last < low:
                        raise self._error("bad range")
                    high = last
                ranges.append((low, high))
        else:
            if self.regex[self.pos] in "*+?{}.^":
                raise self._error("not supported")
            c = self._item(escapes)
            if c is not None:
                ranges.append((c, c))
        chars = CharSet(negated, tuple(ranges), tuple(escapes))
        self.sets.append(chars)
        return chars

    def _item(self, escapes: list[str]) -> int | None:
        """Parses an item of a set. Returns the code point of a single character; for an escape that
        matches several, adds it to `escapes` and returns None."""
        c = self._next()
        if c != "\\":
            return ord(c)
        c = self._next()
        if c in "uU":
            digits = 4 if c == "u" else 8
            self.pos += digits
            return int(self.regex[self.pos - digits : self.pos], 16)
        if c in "sSdp":
            name = "\\" + c
            if c == "p":
                start = self.pos + 1
                while self._next() != "}":
                    pass
                name = self.regex[start : self.pos - 1]
            if name not in _ESCAPES:
                raise self._error(f"unknown property {name!r}")
            escapes.append(name)
            return None
        if c.isalnum():
            if c not in _CONTROLS:
                raise self._error(f"unknown escape \\{c}")
            return _CONTROLS[c]
        return ord(c)
