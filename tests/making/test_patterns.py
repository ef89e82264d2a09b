"""In tokenizers, the expressions of each chain split text like llama.cpp's pre-tokenizer."""

from __future__ import annotations

import json
import random
import re

import pytest
import unicodedata2
from tokenizers import Regex, Tokenizer, models
from tokenizers.pre_tokenizers import Split

import ggtok
from ggtok.vocabularies.patterns import CHAINS, Chain
from ggtok.vocabularies.pre_tokenizer_json import (
    NEWER,
    is_limited,
    limit_to_unicode_15,
    pre_tokenizer_of,
    undo_unicode_limit,
)
from tests.support.patch import GGUF
from tests.support.samples import times
from tests.support.vocabularies import fixture

# tokenizers has a newer Unicode version than llama.cpp (15.1).
EVERY = "".join(chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000)
MEMBERS = [c for c in EVERY[:0x30000] if unicodedata2.category(c) not in ("Cn", "Co")]
SPACES = [c for c in map(chr, range(0x3001)) if c.isspace() and not "\x1c" <= c <= "\x1f"]
OTHERS = [
    *"aAzZesrt0129.,!?/'\"$+<^_`|~()[]{}-:;#%&*@\\\u00e9\u00bd\u00b2\u00ab\u00aa\u0301\u0e33\u0e01",
    *"\u2019\u2014\u2026\u3001\u3002\u3005\u3007\uff0c\uff11\uff41\u4e2d\u306e\u30ab\u30fc\ud55c",
    *"\u3131\u0627\u06d4\u0661\u0964\u2160\u01c5\u02b0\u01bb\u017f\u212a\u0130\u180e\u200b\u200d",
    *("'s", "'LL", "'\u017f", "'re", "\r\n", "123456", "\U0001f600"),
]
RANGE = re.compile(r"\\(?:u(\w{4})|x\{(\w+)\})(?:-\\(?:u(\w{4})|x\{(\w+)\}))?")


def newer_characters(category: str) -> str:
    found = [[int(x, 16) for x in match.groups() if x] for match in RANGE.finditer(NEWER[category])]
    ranges = [range(ends[0], ends[-1] + 1) for ends in found]
    return "".join(chr(c) for some in ranges for c in some if not 0xD800 <= c < 0xE000)


NEW = [c for category in NEWER for c in newer_characters(category)]


@pytest.mark.parametrize("category", NEWER)
def test_categories_are_those_of_unicode_15_1(category: str) -> None:
    """Every code point is tried in the installed version of tokenizers."""
    for kind, want in ("p", True), ("P", False):
        expression = limit_to_unicode_15(rf"\{kind}{{{category}}}")
        cut = Split(Regex(expression + "+"), "removed", invert=True).pre_tokenize_str(EVERY)
        is_one = [(unicodedata2.category(c)[0] == category) is want for c in EVERY]
        edges = [i for i in range(1, len(EVERY)) if is_one[i] != is_one[i - 1]]
        edges = ([0] if is_one[0] else []) + edges + ([len(EVERY)] if is_one[-1] else [])
        assert [end for _, span in cut for end in span] == edges
    assert not [c for c in newer_characters(category) if unicodedata2.category(c)[0] == category]


def test_limited_expressions_are_recognized() -> None:
    for step in {step for chain in CHAINS for step in chain.steps}:
        assert undo_unicode_limit(limit_to_unicode_15(step)) == step
        assert is_limited(limit_to_unicode_15(step))
        assert is_limited(step) is (limit_to_unicode_15(step) == step)
    both = r"\p{L}+|" + limit_to_unicode_15(r"\p{L}+")  # one of the two isn't limited
    assert not is_limited(both)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_expressions_split_like_the_pre_tokenizer(chain: Chain) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("tokenizer.ggml.pre", chain.pres[0].name)
    tok = ggtok.load(gguf.dump())
    document = json.loads(Tokenizer(models.BPE()).to_str())
    document["pre_tokenizer"] = pre_tokenizer_of(chain)
    cut = Tokenizer.from_str(json.dumps(document)).pre_tokenizer.pre_tokenize_str
    rng = random.Random(chain.name)
    for _ in range(times(400, of=4000)):
        pools = rng.choices((SPACES, OTHERS, MEMBERS, NEW), (4, 4, 2, 1), k=rng.randrange(1, 8))
        text = "".join(map(rng.choice, pools))
        words = [word for f in tok.explain(text, add_special=False).fragments for word in f.words]
        ends = [len(text.encode()[: word.end].decode()) for word in words]
        assert ends == [end for _, (_, end) in cut(text)], ascii(text)
