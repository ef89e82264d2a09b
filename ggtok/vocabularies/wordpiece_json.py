"""llama.cpp's WPM as tokenizer.json writes it: the same words, with the same U+2581 before each.

tokenizers' own BertNormalizer strips accents and lower-cases by other rules. Here a charsmap has
what each character becomes, expressions have which ones are dropped, are white space or stand
alone, and the vocabulary's texts are those of the GGUF file, without a prefix inside words.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable
from functools import cache
from typing import Any

from ggtok.explain.wpm import is_dropped, stands_alone
from ggtok.native.characters import first_of_nfd, is_white_space, lower
from ggtok.vocabularies.charsmap import charsmap

Json = dict[str, Any]
UNLIMITED = 1 << 30  # characters of a word
_MARK = "\u2581"
_APART = "\x01"  # a character that is dropped
_ASCII = r"[\x{0}-\x{7F}]"
_OTHER = r"[^\x{0}-\x{7F}]"
# But surrogates, and planes 4 to 13, which have no characters.
_CODE_POINTS = (range(0xD800), range(0xE000, 0x40000), range(0xE0000, 0x110000))


@cache
def wordpiece_steps(strip_accents: bool, lowercase: bool) -> Json:
    """The normalizer, the pre-tokenizer and the decoder of a vocabulary with these flags."""
    dropped, spaces, alone = [], [], []
    becomes = {}
    for c in itertools.chain(*_CODE_POINTS):
        if is_white_space(c):
            spaces.append(c)
        elif is_dropped(c, strip_accents):
            dropped.append(c)
        elif stands_alone(c):
            alone.append(c)
        made = first_of_nfd(c) if strip_accents else c
        if lowercase:
            made = lower(made)
        if made != c:
            becomes[chr(c)] = chr(made)
    # tokenizers 0.23 loses count where something is inserted at a text's beginning.
    steps: list[Json] = [{"type": "Prepend", "prepend": " "}]
    if becomes:
        # It asks a charsmap for a letter and its accents at once, and takes what it has for the
        # letter alone as the end of all: so that none gets lost, each stands apart.
        steps += [
            _replace_regex(f"(?<={_OTHER})(?={_ASCII})|(?={_OTHER})", _APART),
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
    """A step of a normalizer or a decoder."""
    return {"type": "Replace", "pattern": pattern, "content": content}


def _replace_regex(expression: str, content: str) -> Json:
    return replace({"Regex": expression}, content)


# U+2581 is a space, and spaces before punctuation go.
_DECODERS = [
    replace({"String": _MARK}, " "),
    {"type": "Fuse"},
    _replace_regex(" (?=[?!.,])", ""),
    _replace_regex(" ' ", "'"),
    _replace_regex(" (?='(?:s|m|re|ve))", ""),
]


def _ranges(code_points: Iterable[int]) -> str:
    """What stands between the brackets of a set."""
    runs = itertools.groupby(enumerate(code_points), lambda pair: pair[1] - pair[0])
    ends = ([pair[1] for pair in run] for _, run in runs)
    return "".join(rf"\x{{{run[0]:X}}}-\x{{{run[-1]:X}}}" for run in ends)
