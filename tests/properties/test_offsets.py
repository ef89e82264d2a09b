"""Offsets: the span of the text from which each token comes.

Claim offsets.1, Claim offsets.2, Claim offsets.3, Claim offsets.4,
Claim offsets.5: compared with the oracle of tests/support/spans.py
(tests/c/paths.c compares the fast path with the path that records spans).
"""

from __future__ import annotations

import itertools
import random
import unicodedata
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import BROKEN, CODE, EMOJI, PROSE
from tests.properties.given import NAMES, flags, some_bytes, some_text
from tests.support import spans as oracle
from tests.support.patch import GGUF, add_tokens
from tests.support.samples import times
from tests.support.vocabularies import OTHERS, REAL, fixture, real

Load = Callable[[str], ggtok.Tokenizer]

# The oracle supports neither hybriddna's k-mers nor vocabularies that drop bytes without a token.
PLAIN = [name for name in NAMES if name not in ("bpe-hybriddna", "bpe-odd", "bpe-overlap")]
# Vocabularies that normalize nothing except the spelling of spaces.
TILED = ["bpe-gpt2", "bpe-qwen2", "bpe-llama3", "rwkv", "plamo2", "test"]


def quietly(name: str) -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(real(name))


def check_shape(tok: ggtok.Tokenizer, text: bytes, **flags: Any) -> tuple[list[int], list[Any]]:
    """Checks the properties that the spans of every text have."""
    ids, spans = tok.encode_with_offsets(text, **flags)
    assert ids == tok.encode(text, **flags)
    assert (spans.dtype, spans.shape) == (np.int64, (len(ids), 2))
    rows = spans.tolist()
    at = 0
    for begin, end in rows:
        assert at <= begin <= end <= len(text)
        at = begin
    return ids, rows


def check(tok: ggtok.Tokenizer, text: bytes, parse_special: bool) -> tuple[int, int]:
    """Compares spans with the oracle's. Returns the number of ranges of ids for which the oracle
    has only one solution, and the number of all ranges."""
    ids, rows = check_shape(tok, text, add_special=False, parse_special=parse_special)
    found = [tuple(row) for row in rows]
    sure = n = 0
    for a, b, ways in oracle.expected(tok, text, ids, parse_special=parse_special):
        assert found[a:b] in ways or len(ways) == oracle.ENOUGH, (text, ids, found[a:b], ways[:3])
        sure += len(ways) == 1
        n += 1
    return sure, n


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=times(20, of=60))
@given(data=some_bytes, parse_special=st.booleans())
def test_spans_of_any_text(load_fixture: Load, name: str, data: bytes, parse_special: bool) -> None:
    tok = load_fixture(name)
    check(tok, data[:150], parse_special)


PIECES = [
    "e\u0301", "\u00e9", "\u0301", "\u00bd", "\uff21\uff22", "\ufb01", "\u2581", "\u3000", "\u00a0",
    " ", "  ", "\n", "\t\n ", "\u00a8", "\u0130", "\u1e9e", "A", "the", "kettle", "1\u00bc",
    "\u043c\u0438\u0440", "\u0439", "\u0438\u0306", "\u304b\u3099", "\u304b\uff9e", "\uff0c",
    "\u2026", "\ufeff", "\U0001f600", "\U0001f1e9\U0001f1ea", "\u4e2d\u6587", "\uac00", "\x00",
    "\x07", "\x7f", "<0x41>", "\u0627\u0653", "\u0627\u0644", "\u0648\u0654", "\u0628\u0655",
]  # fmt: skip


@pytest.mark.parametrize("name", [*PLAIN, "llama-spm", *OTHERS])
def test_texts_that_normalizers_change(load_fixture: Load, name: str) -> None:
    tok = quietly(name) if name in (*REAL, *OTHERS) else load_fixture(name)
    rng = random.Random(name)
    sure = n = 0
    for _ in range(40):
        text = "".join(rng.choice(PIECES) for _ in range(8)).encode()
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice([*BROKEN, b"\xc1\x81", b"\xe2 "]) + text[at:]
        s, k = check(tok, text, parse_special=False)
        sure, n = sure + s, n + k
    assert sure > 0.6 * n > 10


# Words, and characters to insert into words: characters that WPM drops, characters whose length
# changes when they are normalized, U+2581 and the code point after it, and words of equal lengths.
OF_WORDS = [
    "\u00ad", "\u00ad\u00ad", "\x01\x02", "\u0301", "caf\u00e9", "\u00df", "\u1e9e", "\u212a",
    "\u0130", "\u046a", "\u2581", "\u2582", "ab", "abcd", "the", "kettle", "\u4f60", "\u9f98",
    "\u4f60\u00ad", "\u0439", "\u043c\u0438\u0440", ",", "\u3000", " ", " ", " ", " ", "\n",
]  # fmt: skip
# Tokens to add to the vocabulary of each case: longer than the letters in the text to which they
# correspond, or beginning inside a character.
WITH = {
    "wpm": [],
    "wpm, longer": ["\u2581\u2c65", "\u2c65"],
    "wpm, bytes": [b"\xe2\x96\x81\xd1", b"\xd1", b"\xab"],
    "bert-bge": [],
}


@pytest.mark.parametrize("name", WITH)
def test_words_that_are_dropped_or_change_their_length(name: str) -> None:
    if name in OTHERS:
        tok = quietly(name)
    else:
        gguf = GGUF.read(fixture("wpm"))
        add_tokens(gguf, WITH[name], 1)
        tok = ggtok.load(gguf.dump())
    dropped = "\u00ad\u00ad"  # dropped, but must not get the ids of the next word
    for text in (
        f"{dropped} abcd {dropped}",
        f"{dropped} abcd kotazh",
        f"{dropped} abcd kotazh {dropped}",
        "\u046a \u046a",
        f"\ua500{dropped} {dropped}\ua500",  # an unknown word with dropped characters
    ):
        check(tok, text.encode(), parse_special=False)
    if name == "wpm, longer":  # U+023A normalizes to the longer U+2C65
        check(tok, "\u023a\u00e9".encode(), parse_special=False)
    rng = random.Random(5)
    for _ in range(times(200, of=3000)):
        some = rng.sample(OF_WORDS, 9)
        text = "".join(rng.choice(some) for _ in range(rng.randrange(1, 12)))
        check(tok, text.encode(), parse_special=False)


@pytest.mark.parametrize("name", ["wpm", "bert-bge"])
def test_marks_at_a_words_end(load_fixture: Load, name: str) -> None:
    """Combining marks belong to the word's last token, like other dropped characters there."""
    tok = quietly(name) if name in OTHERS else load_fixture(name)
    for word in (
        "cafe\u0301",
        "e\u0301\u0308",
        "kettle\x00",
        "\u4e2d\u00e9\u0301",
        "\u0301a\u0301",
    ):
        for text in (word, f"{word} the", f"the {word}, the", f"{word}\n" * 40):
            ids, spans = tok.encode_with_offsets(text, add_special=False, unit="char")
            parts = "".join(text[a:b] for a, b in spans.tolist())
            assert parts == "".join(text.split()).replace(word, word.lstrip("\u0301"))
            assert tok.encode_with_offsets(text.encode(), add_special=False)[0] == ids
    _, spans = tok.encode_with_offsets(" \u0301 a. \u0301", add_special=False, unit="char")
    assert spans.tolist() == [[3, 4], [4, 5]]  # a word of combining marks produces no token


@pytest.mark.parametrize("name", TILED)
@given(data=some_text, flags=flags)
def test_spans_tile_texts_that_are_not_normalized(
    load_fixture: Load, name: str, data: str, flags: dict[str, bool]
) -> None:
    tok = load_fixture(name)
    text = data.encode()
    if text.startswith(b"\xef\xbb\xbf"):
        return
    ids, rows = check_shape(tok, text, **flags)
    own = [(id, row) for id, row in zip(ids, rows, strict=True) if row[0] < row[1]]
    assert len(ids) - len(own) <= 2 * flags["add_special"]
    assert b"".join(text[a:b] for _, (a, b) in own) == text
    assert [a for _, (a, _) in own[1:]] == [b for _, (_, b) in own[:-1]]
    for id, (a, b) in own:
        assert name == "test" or tok.token_to_piece(id) == text[a:b]


@pytest.mark.full
@pytest.mark.parametrize("name", ["llama-spm", "llama-bpe", "gemma-4", *OTHERS])
def test_real_vocabularies(name: str) -> None:
    tok = quietly(name)
    for text in (*PROSE[:3], *CODE[:2], *EMOJI[:1]):
        data = text.encode()
        check(tok, data[:500], parse_special=False)
        ids, rows = check_shape(tok, data)
        covered = set()
        for id, (a, b) in zip(ids, rows, strict=True):
            covered |= set(range(a, b))
            piece = tok.token_to_piece(id).strip()
            if piece.isascii() and tok.vocab_type in ("BPE", "SPM") and a < b:
                assert data[a:b].strip() == piece
            if piece.isascii() and tok.vocab_type == "WPM" and id != tok.unk_id and a < b:
                source = data[a:b].decode("utf-8", "ignore")
                plain = "".join(unicodedata.normalize("NFD", c)[0] for c in source)
                assert plain.lower().encode() == piece
        left = {c for i, c in enumerate(data) if i not in covered}
        assert left <= set(b" \n\t") or tok.vocab_type == "WPM"


# ---- code points ----


@pytest.mark.parametrize("name", ["bpe-qwen2", "spm", "wpm", "ugm", "rwkv", "plamo2"])
@given(text=some_text, flags=flags)
def test_code_points_and_utf16(
    load_fixture: Load, name: str, text: str, flags: dict[str, bool]
) -> None:
    """The span of a token that has only part of a character contains the whole character."""
    tok = load_fixture(name)
    ids, in_bytes = tok.encode_with_offsets(text, **flags)
    for unit, size in (("char", len), ("utf16", lambda c: len(c.encode("utf-16-le")) // 2)):
        same, converted = tok.encode_with_offsets(text, unit=unit, **flags)
        assert same == ids
        # For each byte, where its character begins and ends.
        ends = list(itertools.accumulate(map(size, text)))
        begins = [0, *ends[:-1]]
        first = [begins[i] for i, c in enumerate(text) for _ in c.encode()] + [size(text)]
        last = [ends[i] for i, c in enumerate(text) for _ in c.encode()]
        spans = in_bytes.tolist()
        assert converted.tolist() == [
            [first[a], last[b - 1]] if a < b else [first[a]] * 2 for a, b in spans
        ]
        [(_, alone), _] = tok.encode_batch_with_offsets([text, "b"], unit=unit, **flags)
        assert np.array_equal(alone, converted)


@pytest.mark.parametrize("name", [*OTHERS, "wpm"])
def test_more_words_than_fit_in_a_batch(load_fixture: Load, name: str) -> None:
    """More words than fit in one batch: ranges of ASCII words only, and ranges of all words."""
    tok = quietly(name) if name in OTHERS else load_fixture(name)
    rng = random.Random(name)
    words = [
        "the",
        "kettle",
        "xqzzy",
        "Hello,",
        "caf\u00e9",
        "\u4e2d\u6587",
        "e\u0301t\u0301e",
        "(a)",
    ]
    words += [
        "\u043c\u0438\u0440",
        "\u0438\u0306\u043c",
        "\u304b\u304c",
        "\u00bd",
        "isn't",
        "antidisestablishmentarianism",
        "\uff21",
        "\u0627\u0644\u0633\u0648\u0642",
        "\u0627\u0653\u0646",
    ]
    at = 0
    parts: list[str] = []
    want: list[list[int]] = []
    for i in range(3000):
        word = rng.choice(words if i // 700 % 2 else words[:4])
        space = rng.choice([" ", " ", "  ", "\n"]) if i else ""
        spans = tok.encode_with_offsets(space + word, add_special=False)[1]
        want += (spans + at).tolist()
        parts.append(space + word)
        at += len(parts[-1].encode())
    ids, spans = tok.encode_with_offsets("".join(parts), add_special=False)
    assert len(ids) > 3000
    assert spans.tolist() == want


def test_the_example_of_the_design_page(load_fixture: Load) -> None:
    tok = load_fixture("ugm")
    ids, spans = tok.encode_with_offsets("caf\u00e9 \u00bd", add_special=False)
    texts = [tok.token_text(id).decode() for id in ids]
    assert texts == ["\u2581c", "a", "f", "\u00e9", "\u2581", "1", "<unk>", "2"]
    want = [[0, 1], [1, 2], [2, 3], [3, 5], [5, 6], [6, 8], [6, 8], [6, 8]]
    assert spans.tolist() == want


# ---- Hugging Face tokenizers ----


@pytest.mark.full
@pytest.mark.parametrize("name", ["gpt-2", "qwen2", "llama-spm"])
def test_hugging_face_tokenizers_agree(name: str, tmp_path: Any) -> None:
    """The offsets are equal wherever the ids agree. Both are in code points; `trim_offsets` is
    off."""
    tokenizers = pytest.importorskip("tokenizers")
    v = ggtok.vocabulary(real(name))
    v.save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    if name != "llama-spm":
        theirs.post_processor = tokenizers.processors.ByteLevel(trim_offsets=False)
    tok = v.tokenizer()
    same = 0
    for text in (*PROSE, *CODE, *EMOJI, "a  b", " x", "\u00e9\u0301", "\U0001f600 \uac00"):
        encoding = theirs.encode(text, add_special_tokens=False)
        ids, spans = tok.encode_with_offsets(text, add_special=False, unit="char")
        if encoding.ids != ids:
            continue
        own = [list(offsets) for offsets in encoding.offsets]
        if name == "llama-spm":  # there, the first character includes the added space
            own, spans = own[2:], spans[2:]
        assert own == spans.tolist(), text
        same += 1
    assert same > 10


# ---- special tokens ----


def test_white_space_that_special_tokens_strip(tmp_path: Any) -> None:
    tok = stripping(tmp_path)
    mask = tok.text_to_token("<mask>")
    assert mask is not None
    assert tok.token_attr(mask) & ggtok.TokenAttr.LSTRIP
    ids, spans = tok.encode_with_offsets("a \t<mask> b", add_special=False, parse_special=True)
    assert spans[ids.index(mask)].tolist() == [1, 9]
    ids, spans = tok.encode_with_offsets("  <mask>", add_special=False, parse_special=True)
    assert (ids, spans.tolist()) == ([mask], [[0, 8]])
    ids, spans = tok.encode_with_offsets("<mask> <mask>", add_special=False, parse_special=True)
    assert spans.tolist() == [[0, 6], [6, 13]]


def stripping(folder: Any) -> ggtok.Tokenizer:
    gguf = GGUF.read(fixture("bpe-jina"))
    if b"<mask>" not in gguf.strings("tokenizer.ggml.tokens"):
        add_tokens(gguf, ["<mask>"], 3)
    return ggtok.load(gguf.write(folder / "strip.gguf"))


@pytest.mark.parametrize("name", ["spm-phi3", "bpe-jina"])
@settings(max_examples=times(20, of=60))
@given(parts=st.lists(st.sampled_from(["<|end|>", "</s>", "<mask>", " ", "\n ", "a"]), max_size=8))
def test_special_tokens_strip_next_to_each_other(
    load_fixture: Load, name: str, parts: list[str]
) -> None:
    check(load_fixture(name), "".join(parts).encode(), True)


def test_added_tokens_have_empty_spans(load_fixture: Load) -> None:
    tok = load_fixture("wpm")
    _, spans = tok.encode_with_offsets("a b")
    assert (spans[0].tolist(), spans[-1].tolist()) == ([0, 0], [3, 3])
    assert tok.encode_with_offsets("")[1].tolist() == [[0, 0], [0, 0]]
    assert load_fixture("bpe-qwen2").encode_with_offsets("")[1].shape == (0, 2)
    spm = load_fixture("spm")
    _, spans = spm.encode_with_offsets("Hello")
    assert spans[:3].tolist() == [[0, 0], [0, 0], [0, 1]]  # <s>, the added space, and H
    _, spans = spm.encode_with_offsets("Hello", continuation=True)
    assert spans[:2].tolist() == [[0, 1], [1, 3]]


# ---- every input type ----


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "wpm", "ugm", "bpe-whitespace", "bpe-odd"])
def test_batches_have_the_spans_of_single_texts(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    texts = [*PROSE, *CODE, *EMOJI, "", " ", "\u00e9" * 50, "a" * 5000, *["short text"] * 200]
    for unit in ("byte", "char"):
        for threads in (1, 3):
            options: dict[str, Any] = {"unit": unit, "parse_special": True}
            batch = tok.encode_batch_with_offsets(texts, threads=threads, **options)
            for text, (ids, spans) in zip(texts, batch, strict=True):
                same, want = tok.encode_with_offsets(text, **options)
                assert ids == same
                assert spans.tolist() == want.tolist()
                assert spans.dtype == np.int64
            ids, spans, offsets = tok.encode_batch_arrays_with_offsets(
                texts, threads=threads, **options
            )
            assert (ids.dtype, spans.dtype, offsets.dtype) == (np.int32, np.int64, np.int64)
            assert ids.tolist() == [id for found, _ in batch for id in found]
            assert spans.tolist() == [row for _, found in batch for row in found.tolist()]
            assert np.diff(offsets).tolist() == [len(found) for found, _ in batch]
    assert tok.encode_batch_with_offsets([]) == []
    ids, spans, offsets = tok.encode_batch_arrays_with_offsets([])
    assert (ids.shape, spans.shape, offsets.tolist()) == ((0,), (0, 2), [0])
    data = [text.encode() for text in texts]
    in_bytes = tok.encode_batch_with_offsets(data)
    assert [ids for ids, _ in in_bytes] == tok.encode_batch(texts)


def test_texts_of_every_kind(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    text = "caf\u00e9 " * 20000  # too large to be read in place
    want = tok.encode_with_offsets(text)
    assert want[1][-1].tolist() == [len(text.encode()) - 1, len(text.encode())]
    kinds: list[Any] = [text.encode(), bytearray(text.encode()), memoryview(text.encode())]
    for same in kinds:
        ids, spans = tok.encode_with_offsets(same)
        assert ids == want[0]
        assert np.array_equal(spans, want[1])
    assert tok.encode_with_offsets(text, unit="char")[1][-1].tolist() == [len(text) - 1, len(text)]


def test_spans_of_words_that_python_splits() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\S+|\s+"])
    _, spans = tok.encode_with_offsets("two  words\u00e9")
    assert spans[0, 0] == 0
    assert spans[1:, 0].tolist() == spans[:-1, 1].tolist()


ERRORS: dict[str, tuple[Callable[[ggtok.Tokenizer], object], type[Exception], str]] = {
    "unit": (
        lambda t: t.encode_with_offsets("a", unit="word"),
        ValueError,
        "'byte', 'char' or 'utf16'",
    ),  # type: ignore[arg-type]
    "bytes": (lambda t: t.encode_with_offsets(b"a", unit="char"), ValueError, "text is bytes"),
    "no text": (lambda t: t.encode_with_offsets(7), TypeError, "int"),  # type: ignore[arg-type]
    "surrogate": (lambda t: t.encode_with_offsets("\ud800"), ValueError, "lone surrogate"),
    "choice": (lambda t: t.encode_with_offsets("a", parse_special="<s>"), TypeError, "<s>"),
    "batch: unit": (
        lambda t: t.encode_batch_with_offsets([], unit="x"),  # type: ignore[arg-type]
        ValueError,
        "'byte', 'char' or 'utf16'",
    ),
    "batch: bytes": (
        lambda t: t.encode_batch_arrays_with_offsets(["a", b"b"], unit="char"),
        ValueError,
        r"texts\[1\] is bytes",
    ),
    "bytes in utf16": (
        lambda t: t.encode_with_offsets(b"a", unit="utf16"),
        ValueError,
        "unit 'utf16' is for texts of type str, but text is bytes",
    ),
    "batch: a str": (lambda t: t.encode_batch_with_offsets("ab"), TypeError, "str"),
    "batch: surrogate": (
        lambda t: t.encode_batch_with_offsets(["a", "\ud800"]),
        ValueError,
        "lone surrogate",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(load_fixture: Load, case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message) as caught:
        call(load_fixture("bpe-qwen2"))
    assert isinstance(caught.value, ggtok.GGTokError)


def test_offsets_without_a_vocabulary() -> None:
    tok = ggtok.load(fixture("none"))
    with pytest.raises(ggtok.VocabError):
        tok.encode_with_offsets("a")
