"""UGM vocabularies with the key normalizer.nfc: texts are composed (NFC) before anything else.

`python -m tests.drift --newer` compares the same texts with a build that reads the key, and
fixtures/golden/ugm-nfc.json has some of its results.

Claim ugm.3.
"""

from __future__ import annotations

import random

import pytest
import unicodedata2

import ggtok
from ggtok.text.batch_encoding import encode_blocks
from tests.support.composing import HANGUL, composable, composing_texts, composing_vocabulary
from tests.support.patch import GGUF
from tests.support.samples import times
from tests.support.vocabularies import fixture

KEY = "tokenizer.ggml.normalizer.nfc"


@pytest.fixture(scope="module")
def spelling() -> ggtok.Tokenizer:
    """Returns a tokenizer whose ids spell the NFC of a text."""
    return ggtok.load(composing_vocabulary(composable()).dump())


def spelled(tok: ggtok.Tokenizer, text: str | bytes) -> str:
    """Returns the text that the tokens spell, without the first space."""
    ids = tok.encode(text, add_special=False)
    return b"".join(map(tok.token_text, ids)).decode("utf-8", "surrogatepass")[1:]


def squeezed(text: str) -> str:
    """Returns the text as this vocabulary spells it: each run of spaces becomes one U+2581."""
    return "\u2581".join(part for part in text.split(" ") if part)


def test_every_character_is_composed_as_unicode_says(spelling: ggtok.Tokenizer) -> None:
    characters = composable()
    assert len(characters) > 3000
    for text in composing_texts(characters, times(500, of=5000), seed=1):
        assert spelled(spelling, text) == squeezed(unicodedata2.normalize("NFC", text)), ascii(text)


def test_a_long_sequence_is_composed(spelling: ggtok.Tokenizer) -> None:
    chooser = random.Random(2)
    text = "e" + "".join(
        chooser.choices("\u0301\u0323\u0316\u0345\u0327", k=times(40_000, of=200_000))
    )
    assert spelled(spelling, text) == unicodedata2.normalize("NFC", text)


def test_malformed_bytes_become_replacement_characters(spelling: ggtok.Tokenizer) -> None:
    """An overlong form is malformed, unlike in other vocabularies."""
    for text, want in (
        (b"e\xcc", "e\ufffd"),
        (b"e\xff\xcc\x81", "e\ufffd\u0301"),
        (b"e\xcc\x81\xc1\xa9", "\u00e9\ufffd\ufffd"),
        (b"\xe0\x81\xa9e\xcc\x81", "\ufffd\ufffd\ufffd\u00e9"),
        (b"\xf5\x90\x80\x80\xf0\x80\x81\xa9", "\ufffd" * 8),
    ):
        assert spelled(spelling, text) == want


def test_composed_characters_have_the_span_of_their_whole_source(
    spelling: ggtok.Tokenizer,
) -> None:
    text = "xe\u0323\u0301y \u1112\u1161\u11ab"
    ids, spans = spelling.encode_with_offsets(text, add_special=False)
    pieces = [spelling.token_text(id).decode() for id in ids]
    assert pieces == ["\u2581", "x", "\u1eb9", "\u0301", "y", "\u2581", "\ud55c"]
    assert spans.tolist() == [[0, 0], [0, 1], [1, 6], [1, 6], [6, 7], [7, 8], [8, 17]]


def test_blocks_and_spans_of_composed_texts(spelling: ggtok.Tokenizer) -> None:
    """Wherever a text is divided into blocks, the ids are those of the whole; and spans cover the
    text in order."""
    characters = [*composable()[:400], *HANGUL, *"abcde      "]
    chooser = random.Random(3)
    for _ in range(times(40, of=400)):
        text = "".join(chooser.choices(characters, k=60)).encode()
        ids, spans = spelling.encode_with_offsets(text, add_special=False)
        assert ids == spelling.encode(text, add_special=False)
        ends = 0
        for begin, end in spans.tolist():
            assert 0 <= begin <= end <= len(text) and begin <= ends <= max(end, ends)
            ends = max(end, ends)
        size = chooser.randint(1, 20)
        blocks = encode_blocks(
            spelling._loaded,
            (text[i : i + size] for i in range(0, len(text), size)),
            add_special=False,
            block_bytes=1,
        )
        assert [id for block in blocks for id in block.tolist()] == ids


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
def test_only_ugm_vocabularies_compose() -> None:
    text = "cafe\u0301 \u212b"
    for name in ("spm", "bpe-llama3", "wpm", "rwkv", "plamo2"):
        composing = ggtok.load(fixture(name), overrides={KEY: True})
        assert composing.encode(text) == ggtok.load(fixture(name)).encode(text)
    composing = ggtok.load(fixture("ugm-plain"), overrides={KEY: True})
    plain = ggtok.load(fixture("ugm-plain"))
    assert composing.encode(text) == plain.encode("caf\u00e9 \u00c5") != plain.encode(text)


def test_the_key_must_be_a_bool() -> None:
    gguf = GGUF.read(fixture("ugm-nfc"))
    gguf.set(KEY, 1, "u32")
    with pytest.raises(ggtok.VocabError, match=rf"{KEY}' has type u32, but must be bool"):
        ggtok.load(gguf.dump())
