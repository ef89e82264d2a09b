"""The expressions of each chain, in tokenizers, cut text where the pre-tokenizer does."""

from __future__ import annotations

import json
import random
import unicodedata

import pytest
from tokenizers import Tokenizer, models

import ggtok
from ggtok.making.patterns import CHAINS, Chain
from ggtok.making.pre_tokenizer_json import pre_tokenizer_of
from tests.support.patch import GGUF
from tests.support.samples import times
from tests.support.vocabularies import fixture

# Python's tables are older than both sides': what they know, both know.
KNOWN = [
    chr(c) for c in range(0x80, 0x30000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
]
SPACES = [c for c in map(chr, range(0x3001)) if c.isspace() and not "\x1c" <= c <= "\x1f"]
OTHERS = [
    *"aAzZesrt0129.,!?/'\"$+<^_`|~()[]{}-:;#%&*@\\\u00e9\u00bd\u00b2\u00ab\u00aa\u0301\u0e33\u0e01",
    *"\u2019\u2014\u2026\u3001\u3002\u3005\u3007\uff0c\uff11\uff41\u4e2d\u306e\u30ab\u30fc\ud55c",
    *"\u3131\u0627\u06d4\u0661\u0964\u2160\u01c5\u02b0\u01bb\u017f\u212a\u0130\u180e\u200b\u200d",
    *("'s", "'LL", "'\u017f", "'re", "\r\n", "123456", "\U0001f600"),
]


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_expressions_cut_as_the_pre_tokenizer_does(chain: Chain) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("tokenizer.ggml.pre", chain.pres[0].name)
    tok = ggtok.load(gguf.dump())
    document = json.loads(Tokenizer(models.BPE()).to_str())
    document["pre_tokenizer"] = pre_tokenizer_of(chain)
    cut = Tokenizer.from_str(json.dumps(document)).pre_tokenizer.pre_tokenize_str
    rng = random.Random(chain.name)
    for _ in range(times(400, of=4000)):
        pools = rng.choices((SPACES, OTHERS, KNOWN), (4, 4, 2), k=rng.randrange(1, 8))
        text = "".join(map(rng.choice, pools))
        words = [word for f in tok.explain(text, add_special=False).fragments for word in f.words]
        ends = [len(text.encode()[: word.end].decode()) for word in words]
        assert ends == [end for _, (_, end) in cut(text)], ascii(text)
