"""Pre-tokenizes with ``re``, by matching expressions against a text of stand-in characters.

Like llama.cpp, this replaces white space beyond ASCII by U+000B. If an expression uses categories,
every other character beyond ASCII is replaced by the stand-in for its category, and ``\\p{L}``, for
example, is translated to a set that contains the letters' stand-in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from ggtok.explain.steps import Rule
from ggtok.native.library import category, is_white_space
from ggtok.vocabularies.pre_rows import EXPRESSIONS
from tests.plain.native import is_han
from tests.plain.vocabulary import Vocabulary

# Stand-ins for characters beyond ASCII, by category. Characters in llama.cpp's blocks of Chinese
# characters have separate stand-ins: one for letters, and one for unassigned code points.
_STAND_INS = {"L": "\u03bb", "N": "\u0663", "M": "\u0301", "P": "\u00bf", "S": "\u20ac"}
_OTHER, _HAN, _HAN_UNASSIGNED = "\ue000", "\u6f22", "\ue001"
_ASCII = {
    "L": "A-Za-z",
    "N": "0-9",
    "M": "",
    "P": r"!-#%-*,-/:;?@\[-\]_{}",
    "S": r"$+<=>\^`|~",
}
_SPACE = r"\t-\r "
# The counting scanners as expressions. _GROUPS_LEFT has empty matches, at which a piece is split.
_GROUPS_RIGHT = (
    r"\P{N}*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"  # text before a number belongs to its first group
)
_GROUPS_LEFT = r"(?=(?:[0-9]{3})+(?![0-9]))"
_COUNTING = {"groups_right": _GROUPS_RIGHT, "groups_left": _GROUPS_LEFT}


class Cut(NamedTuple):
    """A word, and the rule of each scanner that found it."""

    text: str
    rules: tuple[Rule, ...]


class Scanner(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    alternatives: tuple[str, ...]  # the alternatives in llama.cpp's syntax
    categories: bool  # whether the expression uses categories
    kept: frozenset[str]  # characters beyond ASCII in the expression, which match as such


def words(v: Vocabulary, text: str) -> list[Cut]:
    """Splits a normalized text into words."""
    if v.patterns is not None:
        return [Cut(word, ()) for word in _by_patterns(v.patterns)(text)]
    cuts = [Cut(text, ())]
    for name in v.chain:
        cuts = [
            Cut(word, (*cut.rules, rule)) for cut in cuts for word, rule in _scan(name, cut.text)
        ]
    return cuts


def _by_patterns(patterns: tuple[str, ...]) -> Callable[[str], list[str]]:
    from ggtok.loading.loaded import by_patterns

    split = by_patterns(patterns)

    def cut(text: str) -> list[str]:
        data = text.encode("utf-8", "surrogatepass")
        return [
            data[begin:end].decode("utf-8", "surrogatepass")
            for begin, end in pairwise([0, *split(data)])
        ]

    return cut


def _scan(name: str, text: str) -> Iterator[tuple[str, Rule]]:
    """Splits a piece with one scanner."""
    scanner = _scanner(name)
    stand_in = "".join(_stand_in(c, scanner) for c in text)
    if name == "groups_left":
        cuts = [m.start() for m in scanner.pattern.finditer(stand_in) if m.start()]
        for begin, end in pairwise([0, *cuts, len(text)]):
            yield text[begin:end], Rule(name, _GROUPS_LEFT if begin else None)
        return
    at = 0
    for match in scanner.pattern.finditer(stand_in):
        begin, end = match.span()
        if at < begin:
            yield text[at:begin], Rule(name, None)
        number = int((match.lastgroup or "_0")[1:])
        yield text[begin:end], Rule(name, scanner.alternatives[number])
        at = end
    if at < len(text):
        yield text[at:], Rule(name, None)


def _stand_in(c: str, scanner: Scanner) -> str:
    if c < "\x80" or c in scanner.kept:
        return c
    code = ord(c)
    if is_white_space(code):
        return "\x0b"
    if not scanner.categories:
        return c
    letter = category(code)
    if is_han(code):
        return _HAN if letter == "L" else _HAN_UNASSIGNED
    return _STAND_INS.get(letter, _OTHER)


# ---- translation to Python's syntax ----


@cache
def _scanner(name: str) -> Scanner:
    expression = _COUNTING.get(name) or EXPRESSIONS[name]
    alternatives = tuple(_alternatives(expression))
    categories = r"\p{" in expression
    named = re.findall(r"\\u([0-9A-F]{4})|\\U([0-9A-F]{8})", expression) if categories else []
    kept = frozenset(chr(int(four or eight, 16)) for four, eight in named)
    pattern = "|".join(
        f"(?P<_{i}>{_translated(text, kept)})" for i, text in enumerate(alternatives)
    )
    return Scanner(name, re.compile(pattern), alternatives, categories, kept)


_PART = re.compile(r"\\.|\[|\]|\(|\)|\||[^\\\[\]()|]+", re.DOTALL)


def _alternatives(expression: str) -> Iterator[str]:
    """Yields the alternatives in an expression, split at bars outside of groups and sets."""
    depth, in_set, begin = 0, False, 0
    for part in _PART.finditer(expression):
        text = part[0]
        if in_set:
            in_set = text != "]"
        elif text == "[":
            in_set = True
        elif text in "()":
            depth += 1 if text == "(" else -1
        elif text == "|" and not depth:
            yield expression[begin : part.start()]
            begin = part.end()
    yield expression[begin:]


_ESCAPE = re.compile(r"\\[pP]\{(\w+)\}|\\([sSd])|\\.|\[\^?|\]|\$|.", re.DOTALL)


def _translated(expression: str, kept: frozenset[str]) -> str:
    """Translates Unicode categories, which ``re`` doesn't support, to sets of their stand-ins."""
    translated, in_set = [], False
    for part in _ESCAPE.finditer(expression):
        text = part[0]
        if part[1] or part[2]:
            negated = text[1] in "PS"
            members = _members(part[1] or "s", kept) if part[2] != "d" else "0-9"
            assert not (in_set and negated), expression
            translated.append(members if in_set else f"[{'^' * negated}{members}]")
            continue
        if in_set:
            in_set = text != "]"
            translated.append(rf"\{text}" if text in "[|&~" else text)
            continue
        in_set = text.startswith("[")
        translated.append(r"\Z" if text == "$" else text)
    return "".join(translated)


def _members(name: str, kept: frozenset[str]) -> str:
    """Returns the members of a set for white space or a category. Subcategories count as their
    category."""
    if name == "s":
        return _SPACE
    if name == "Han":
        return _HAN + _HAN_UNASSIGNED
    letter = name[0]
    named = "".join(sorted(c for c in kept if category(ord(c)) == letter))
    return _ASCII[letter] + _STAND_INS[letter] + (_HAN if letter == "L" else "") + named
