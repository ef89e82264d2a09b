"""llama.cpp's WPM in the form of tokenizer.json: the same words, each with U+2581 before it.

The BertNormalizer of tokenizers strips accents and lower-cases by different rules. So the file has
a charsmap that replaces characters, and expressions for characters that are dropped, are white
space, or are words on their own. The tokens have the same texts as in the GGUF file: inside words,
they have no prefix.
"""

from __future__ import annotations

import base64
import itertools
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ggtok.native.library import category, first_of_nfd, is_white_space, lower

Json = dict[str, Any]
UNLIMITED = 1 << 30  # a limit on the length of words that no word reaches
_MARK = "\u2581"
_SEPARATOR = "\x01"  # a character that is dropped later
_ASCII = r"[\x{0}-\x{7F}]"
_OTHER = r"[^\x{0}-\x{7F}]"
# All code points except surrogates and those in planes 4 to 13, which have no characters.
_CODE_POINTS = (range(0xD800), range(0xE000, 0x40000), range(0xE0000, 0x110000))

_CHINESE = (  # one range starts at 2B920 instead of 2B820, as in the original BERT
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)
_CHINESE_FIRST = [first for first, _ in _CHINESE]


def _is_dropped(c: int, strip_accents: bool) -> bool:
    """Whether a character that isn't white space is dropped from its word."""
    letter = category(c)
    return c in (0, 0xFFFD) or letter == "C" or (strip_accents and letter == "M")


def _stands_alone(c: int) -> bool:
    """Whether the character is a word on its own."""
    letter = category(c)
    if letter == "P" or (c < 0x7F and letter == "S"):
        return True
    block = bisect_right(_CHINESE_FIRST, c) - 1
    return block >= 0 and c <= _CHINESE[block][1]


@cache
def wordpiece_steps(strip_accents: bool, lowercase: bool) -> Json:
    """Returns the normalizer, pre-tokenizer and decoder for a vocabulary with these flags."""
    dropped, spaces, alone = [], [], []
    becomes = {}
    for c in itertools.chain(*_CODE_POINTS):
        if is_white_space(c):
            spaces.append(c)
        elif _is_dropped(c, strip_accents):
            dropped.append(c)
        elif _stands_alone(c):
            alone.append(c)
        made = first_of_nfd(c) if strip_accents else c
        if lowercase:
            made = lower(made)
        if made != c:
            becomes[chr(c)] = chr(made)
    # A workaround: tokenizers 0.23 miscounts if text is inserted at the beginning.
    steps: list[Json] = [{"type": "Prepend", "prepend": " "}]
    if becomes:
        # tokenizers looks up a letter together with its accents, and uses a match of the letter
        # alone for all of them, which loses the accents. So separate the characters first.
        steps += [
            _replace_regex(f"(?<={_OTHER})(?={_ASCII})|(?={_OTHER})", _SEPARATOR),
            {
                "type": "Precompiled",
                "precompiled_charsmap": base64.b64encode(charsmap(becomes)).decode(),
            },
        ]
    one = _ranges(alone)
    steps += [
        _replace_regex(f"[{_ranges(dropped)}]+", ""),
        _replace_regex(f"[{_ranges(spaces)}]+", " "),
        _replace_regex(f"(?<=[ {one}])(?=[^ ])|(?=[{one}])", " " + _MARK),
    ]
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False}
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": split,
        "decoder": {"type": "Sequence", "decoders": _DECODERS},
    }


def replace(pattern: Json, content: str) -> Json:
    """Returns a step of a normalizer or decoder that replaces a pattern."""
    return {"type": "Replace", "pattern": pattern, "content": content}


def _replace_regex(expression: str, content: str) -> Json:
    return replace({"Regex": expression}, content)


# These steps replace U+2581 by a space, and remove spaces before punctuation.
_DECODERS = [
    replace({"String": _MARK}, " "),
    {"type": "Fuse"},
    _replace_regex(" (?=[?!.,])", ""),
    _replace_regex(" ' ", "'"),
    _replace_regex(" (?='(?:s|m|re|ve))", ""),
]


def _ranges(code_points: Iterable[int]) -> str:
    """Returns the inside of a regular expression's character class for these code points."""
    runs = itertools.groupby(enumerate(code_points), lambda pair: pair[1] - pair[0])
    ends = ([pair[1] for pair in run] for _, run in runs)
    return "".join(rf"\x{{{run[0]:X}}}-\x{{{run[-1]:X}}}" for run in ends)


# ---- charsmaps ----

# SentencePiece's format for the replacements of characters: a double array over the bytes of UTF-8
# (Darts-clone's format), then the replacement texts, each with a final zero byte. Each node of the
# trie has a base: its child for byte b is at base ^ b, and the value of a character that ends at
# the node is at the base itself. A unit stores its label and its base (XORed with its position).

_IS_VALUE = 1 << 31
_HAS_VALUE = 1 << 8
_BASE = 10  # how many bits a base is shifted by
# The root's base, the first base of the other nodes, and the distance between their bases. These
# nodes have children only for the 64 continuation bytes.
_ROOT, _OTHERS, _ROW = 256, 512, 64


def charsmap(becomes: Mapping[str, str]) -> bytes:
    """Returns the bytes of a charsmap. Each key must be a character other than U+0000."""
    texts = bytearray()
    place: dict[str, int] = {}
    for text in becomes.values():
        if text not in place:
            place[text] = len(texts)
            texts += text.encode() + b"\0"
    units = _double_array({character.encode(): place[text] for character, text in becomes.items()})
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + bytes(texts)


def _double_array(values: Mapping[bytes, int]) -> list[int]:
    """Returns the units of the double array. No key may be a prefix of another."""
    inner = sorted({key[:i] for key in values for i in range(1, len(key))})
    base = {node: _OTHERS + _ROW * i for i, node in enumerate(inner)} | {b"": _ROOT}
    at = {node: base[node[:-1]] ^ node[-1] for node in (*inner, *values)}
    # Nodes must have different bases, or they would share their children.
    taken = {*at.values(), *base.values()}
    free = (place for place in itertools.count(_OTHERS) if place not in taken)
    base |= {key: next(free) for key in values}
    last = max([*at.values(), *base.values()])
    units = [0] * ((last | 0xFF) + 1)  # readers access base ^ byte for any byte
    units[0] = _ROOT << _BASE
    for node, place in at.items():
        units[place] = (place ^ base[node]) << _BASE | node[-1]
    for key, value in values.items():
        units[at[key]] |= _HAS_VALUE
        units[base[key]] = _IS_VALUE | value
    return units
