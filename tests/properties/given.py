"""Hypothesis strategies for texts and flags, and the vocabularies to test."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from ggtok.inspect.parity.texts import ALPHABETS, BROKEN, CODE, EMOJI, PROSE
from tests.support.samples import times
from tests.support.vocabularies import fixture_names

settings.register_profile("properties", settings.default, max_examples=times(50, of=150))
settings.load_profile("properties")

NAMES = [name for name in fixture_names() if name != "none"]

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
