"""Hypothesis strategies for texts and flags, and the vocabularies to test."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import ALPHABETS, BROKEN, CODE, EMOJI, PROSE, texts
from tests.support.samples import times
from tests.support.vocabularies import fixture_names

settings.register_profile("properties", settings.default, max_examples=times(50, of=150))
settings.load_profile("properties")

NAMES = [name for name in fixture_names() if name != "none"]
# Vocabularies that allow cuts only before special tokens (ggtok.h, ggtok_safe_cut).
HELD_WHOLE = ["test", "bpe-hybriddna", "ugm", "ugm-plain"]

text_parts = st.one_of(
    st.text(max_size=20),
    st.sampled_from([*PROSE, *CODE, *EMOJI]),
    st.sampled_from(ALPHABETS).flatmap(lambda alphabet: st.text(alphabet, max_size=30)),
    st.sampled_from(["<|im_end|>", "<custom>", "<mask>", " ", "  ", "\n\n", "'s", "the kettle"]),
)
some_text = st.lists(text_parts, max_size=6).map("".join)
some_bytes = st.lists(
    st.one_of(st.binary(max_size=12), st.sampled_from(BROKEN), text_parts.map(str.encode)),
    max_size=6,
).map(b"".join)
flags = st.fixed_dictionaries({"add_special": st.booleans(), "parse_special": st.booleans()})


def hostile_texts(tok: ggtok.Tokenizer, seed: int, n: int) -> Iterator[bytes]:
    """Yields texts that combine the vocabulary's words and special tokens with difficult
    strings."""
    rng = random.Random(seed)
    special = ggtok.TokenAttr.CONTROL | ggtok.TokenAttr.USER_DEFINED | ggtok.TokenAttr.UNKNOWN
    ids = range(tok.n_tokens)
    specials = [tok.token_text(id) for id in ids if tok.token_attr(id) & special][:400] or [b"<s>"]
    words = [tok.token_to_piece(id) for id in rng.sample(ids, min(300, len(ids)))]
    yield from texts(seed, n, words, specials)
    odd = [b" ", b"  ", b"\n", b"\t", b"\xe2\x96\x81", b"\xff", b"\xc3", b"\xe2 ", b"\xef\xbb\xbf"]
    for _ in range(n):
        yield b"".join(rng.choice([*words, *specials, *odd, *odd]) for _ in range(40))
