"""WPM: splits each word into the longest matching tokens, from left to right. A word that can't be
split completely is one unknown token."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ggtok.explain.steps import Token, Word, text_of
from ggtok.native.library import category, first_of_nfd, is_white_space, lower
from tests.plain.characters import MARK, Byte, characters, converted, span, utf8, value, whole
from tests.plain.vocabulary import LongestMatch, Vocabulary

_CHINESE = (  # llama.cpp's ranges; one starts at 2B920, not at 2B820 as in BERT's code
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)
_CHINESE_FIRST = [first for first, _ in _CHINESE]


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Splits text into words, each preceded by U+2581.

    White space, bad bytes and control characters are dropped. Depending on the vocabulary's flags,
    accents are dropped, too, and letters are lower-cased. Characters dropped at the end of a word
    belong to the source of its last byte.
    """
    word: list[Byte] = []
    end_of_word = 0
    strip = v.flags["strip_accents"]
    begins = True  # whether the next character starts a word
    for begin, end, c in characters(text):
        code = 0 if c is None else first_of_nfd(c) if strip else c  # 0 is dropped below
        if is_white_space(code):
            begins = True
            continue
        if is_dropped(code, strip):
            end_of_word = end_of_word if begins else end
            continue
        alone = stands_alone(code)
        if begins or alone:
            yield from _up_to(word, end_of_word)
            word = [b._replace(word=i == 0) for i, b in enumerate(whole(MARK, begin, begin))]
        if v.flags["lowercase"]:
            code = lower(code)
        word += converted(text, begin, end, utf8(code))
        begins, end_of_word = alone, end
    yield from _up_to(word, end_of_word)


def _up_to(word: list[Byte], end: int) -> list[Byte]:
    return [*word[:-1], word[-1]._replace(end=end)] if word else []


def is_dropped(c: int, strip_accents: bool) -> bool:
    """Whether a character that isn't white space is dropped from its word."""
    letter = category(c)
    return c in (0, 0xFFFD) or letter == "C" or (strip_accents and letter == "M")


def stands_alone(c: int) -> bool:
    """Whether the character is a word on its own."""
    letter = category(c)
    if letter == "P" or (c < 0x7F and letter == "S"):
        return True
    block = bisect_right(_CHINESE_FIRST, c) - 1
    return block >= 0 and c <= _CHINESE[block][1]


def words(v: Vocabulary, norm: list[Byte]) -> Iterator[Word]:
    begins = [i for i, b in enumerate(norm) if b.word]
    for begin, end in zip(begins, [*begins[1:], len(norm)], strict=True):
        part = norm[begin:end]
        yield Word(text_of(value(part)), *span(part), _tokens(v, value(part)))


def _tokens(v: Vocabulary, word: bytes) -> list[Token]:
    tokens, at = [], 0
    while at < len(word):
        id = v.keep(LongestMatch, lambda: LongestMatch(v.texts)).find(word, at)
        if id is None:
            why = f"no token matches at byte {at} of the word, so all of it is unknown"
            return [v.token(v.unknown, "unknown", why=why)]
        tokens.append(v.token(id, "longest match"))
        at += len(v.text(id))
    return tokens
