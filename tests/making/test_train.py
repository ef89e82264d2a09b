"""Compares merges with a naive oracle, and with the trainers that ggtok promises to equal.

Claim training.2, Claim training.3, Claim training.4, Claim training.5,
Claim training.6.
"""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import ConversionReport, TrainingReport
from tests.making import oracle
from tests.support.full import Lazy
from tests.support.samples import times

sentencepiece: Any = Lazy("sentencepiece")
Tokenizer: Any = Lazy("tokenizers", "Tokenizer")
models: Any = Lazy("tokenizers.models")
pre_tokenizers: Any = Lazy("tokenizers.pre_tokenizers")
trainers: Any = Lazy("tokenizers.trainers")

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MARK = "\u2581"
# No carriage returns, because sentencepiece strips them from the ends of lines.
REAL = "\n".join([*PROSE, *CODE]).replace("\r", "") + "\n"
EOS = "<|endoftext|>"

# Texts in which pairs are equally frequent, overlap, or occur in runs.
dense = st.text("ab", max_size=40)
tied = st.text("abcd ", max_size=60)
# Texts of characters that exist in all relevant Unicode versions.
assigned = st.text(st.characters(exclude_categories=("Cn", "Cs")), max_size=20)
natural = st.sampled_from([*PROSE, *CODE])
texts = st.lists(st.one_of(dense, tied, natural, assigned), max_size=8).map(" ".join)


def lines_of(text: str) -> list[str]:
    return regex.findall(r"[^\n]*\n|[^\n]+", text)


def byte_words(text: str, order: list[int]) -> Counter[tuple[int, ...]]:
    number = {byte: i for i, byte in enumerate(order)}
    return Counter(
        tuple(number[byte] for byte in word.encode())
        for line in lines_of(text)
        for word in regex.findall(GPT2, line)
    )


def train(text: object, size: int, **options: object) -> ggtok.Vocabulary:
    return ggtok.train(text, size, pre="gpt-2", **{"min_frequency": 1, **options})  # type: ignore[arg-type]


def size_of(text: str) -> int:
    return 257 + len(text.encode()) // 3


# ---- the oracle ----


@pytest.mark.parametrize("rule", ["huggingface", "bytes"])
@settings(max_examples=times(100, of=300), deadline=None)
@given(text=texts, min_frequency=st.integers(1, 3))
def test_byte_level_merges_are_the_oracles(rule: str, text: str, min_frequency: int) -> None:
    if not text:
        return
    characters = spelling.byte_characters()
    order = list(range(256))
    if rule == "huggingface":
        order.sort(key=lambda byte: ord(characters[byte].decode()))
    expected = oracle.train(
        byte_words(text, order),
        [bytes([byte]) for byte in order],
        size_of(text) - 1,
        min_count=min_frequency,
    )
    v = train(text, size_of(text), rule=rule, min_frequency=min_frequency)
    assert v.merges == [(left, right) for left, right, _ in expected]
    assert v.tokens[0] == EOS.encode()
    assert v.tokens[1:257] == [bytes([byte]) for byte in order]
    assert v.tokens[257:] == [left + right for left, right in v.merges]
    assert v.report.last_count == (expected[-1][2] if expected else 0)  # type: ignore[attr-defined]


def is_piece(left: bytes, right: bytes) -> bool:
    """Whether SentencePiece may merge these two parts, given a single script."""
    text = (left + right).decode()
    marks = text.count(MARK)
    return len(text) <= 16 and (marks == len(text) or not text.rfind(MARK) > 0)


@settings(max_examples=times(66, of=200), deadline=None)
@given(text=st.lists(st.one_of(dense, tied), max_size=6).map("\n".join))
def test_pieces_are_the_oracles(text: str) -> None:
    lines = [MARK + line.replace(" ", MARK) for line in text.split("\n") if line]
    if not lines:
        return
    chars = Counter("".join(lines))
    order = sorted(chars, key=lambda c: (-chars[c], c))
    words = Counter(
        tuple(map(order.index, word))
        for line in lines
        for word in regex.findall(f"{MARK}+[^{MARK}]*", line)
    )
    made = oracle.train(
        words,
        [c.encode() for c in order],
        len(order) + 40,
        before=lambda p, t: (len((t[p[0]] + t[p[1]]).decode()), t[p[0]] + t[p[1]]),
        may_join=is_piece,
    )
    v = ggtok.train(text, 3 + 256 + len(order) + 40, model="spm", min_frequency=1)
    normal = [left + right for left, right, _ in made] + [c.encode() for c in order]
    assert v.texts[259:] == normal
    assert v.scores is not None and v.scores[259:] == [-float(i) for i in range(len(normal))]


# ---- other trainers ----


def hugging_face(
    documents: Iterable[str], size: int, *, seen: bool = False, **options: object
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Returns Hugging Face's vocabulary and merges, in GPT-2's byte map."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        initial_alphabet=[] if seen else pre_tokenizers.ByteLevel.alphabet(),
        **options,
    )
    tokenizer.train_from_iterator(documents, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def spelled(v: ggtok.Vocabulary) -> tuple[dict[str, int], list[tuple[str, str]]]:
    assert v.merge_texts is not None
    vocab = {text.decode(): id for id, text in enumerate(v.texts)}
    return vocab, [(left.decode(), right.decode()) for left, right in v.merge_texts]


@pytest.mark.full
@settings(max_examples=times(33, of=100), deadline=None)
@given(
    text=texts,
    seen=st.booleans(),
    min_frequency=st.integers(1, 3),
    specials=st.lists(st.sampled_from(["ab", "a", "aab", "the", "Ġt", "é", "<s>"]), unique=True),
    longest=st.sampled_from([None, 1, 2, 3, 5, 16]),
)
def test_the_same_as_hugging_face(
    text: str, seen: bool, min_frequency: int, specials: list[str], longest: int | None
) -> None:
    """Special tokens that merges would produce, and a maximum length, are tried, too."""
    if not text:
        return
    specials = [*specials, EOS]
    size = size_of(text) + len(specials)
    v = train(
        text,
        size,
        alphabet="seen" if seen else "bytes",
        min_frequency=min_frequency,
        special_tokens=specials,
        max_token_length=longest,
    )
    theirs = hugging_face(
        lines_of(text),
        size,
        seen=seen,
        min_frequency=min_frequency,
        special_tokens=specials,
        max_token_length=longest,
    )
    assert spelled(v) == theirs


@pytest.mark.full
@pytest.mark.parametrize("documents", ["lines", "whole"])
def test_real_text_as_hugging_face(documents: str) -> None:
    parts = lines_of(REAL) if documents == "lines" else [REAL]
    v = train(REAL, 1500, documents=documents)
    assert spelled(v) == hugging_face(parts, 1500, special_tokens=[EOS])


def sentence_piece(text: str, size: int, **options: object) -> list[tuple[str, float]]:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.split("\n")),
        model_writer=model,
        vocab_size=size,
        model_type="bpe",
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        hard_vocab_limit=False,
        max_sentence_length=1 << 20,
        minloglevel=2,
        **{"byte_fallback": True, **options},
    )
    p = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [(p.id_to_piece(id), p.get_score(id)) for id in range(p.get_piece_size())]


def scored(v: ggtok.Vocabulary) -> list[tuple[str, float]]:
    assert v.scores is not None
    return [(text.decode(), score) for text, score in zip(v.texts, v.scores, strict=True)]


@pytest.mark.full
@pytest.mark.parametrize("split_digits", [False, True])
@pytest.mark.parametrize("coverage", [1.0, 0.99])
def test_real_text_as_sentencepiece(split_digits: bool, coverage: float) -> None:
    digits = "12 1234 x1 \uff13\uff14 12 1234\n"
    text = REAL + 3 * digits + 2 * "tab\tand\x01 so on\n" + 3 * "か゛カー漢字かな\n"
    v = ggtok.train(
        text,
        1600,
        model="spm",
        min_frequency=1,
        split_digits=split_digits,
        character_coverage=coverage,
    )
    theirs = sentence_piece(text, 1600, split_digits=split_digits, character_coverage=coverage)
    assert scored(v) == theirs


@pytest.mark.full
@settings(max_examples=times(20, of=60), deadline=None)
@given(st.lists(st.one_of(tied, natural), min_size=1, max_size=6).map("\n".join))
def test_any_text_as_sentencepiece(text: str) -> None:
    """The merges are equal up to the last pair that occurs; after it, SentencePiece adds pairs that
    no longer occur."""
    if not text.strip("\n"):
        return
    text = text.replace("\r", "")
    v = ggtok.train(text, 1000, model="spm", min_frequency=1)
    ours = scored(v)
    theirs = sentence_piece(text, len(ours))
    assert ours == theirs


named = st.sampled_from(["<", "s>", "<s>", "</s>", "<unk>", "<0x41>", "x", "ab", "c", " ", "\n"])


@pytest.mark.full
@settings(max_examples=times(20, of=80), deadline=None)
@given(st.lists(named, min_size=1, max_size=30).map("".join), st.booleans())
def test_texts_with_special_tokens_as_sentencepiece(text: str, byte_fallback: bool) -> None:
    """Special tokens and byte tokens split words, longest first, and aren't part of words."""
    text += "\nx<s>x xx ab"
    specials = ["ab", "xabx", "<s>x", "c"]
    options = {"byte_fallback": byte_fallback, "character_coverage": 0.98}
    v = ggtok.train(text, 1000, model="spm", min_frequency=1, special_tokens=specials, **options)
    ours = scored(v)
    assert ours == sentence_piece(text, len(ours), control_symbols=specials, **options)


@pytest.mark.full
def test_real_code_as_sentencepiece() -> None:
    text = 3 * "\n".join(['s = "<s>" + x', "for (a<0x10>; b; c<s>d) </s><s>", REAL])
    v = ggtok.train(text, 1300, model="spm", min_frequency=1)
    assert scored(v) == sentence_piece(text, 1300, character_coverage=1.0)


# ---- independence ----


def test_neither_threads_nor_order_matter() -> None:
    lines = lines_of(REAL * 20)
    expected = train(lines, 1200, threads=1)
    shuffled = random.Random(1).sample(lines, len(lines))
    for threads in (1, 2, 5):
        v = train(shuffled, 1200, threads=threads)
        assert (v.texts, v.merge_texts) == (expected.texts, expected.merge_texts)


@pytest.mark.full
def test_words_of_all_lengths() -> None:
    """Depending on its length, a word is counted inline, as a longer key, only in the table, or in
    a separate chunk."""
    rng = random.Random(2)
    words = ["".join(rng.choices("abc", k=k)) for k in (1, 2, 14, 15, 16, 31, 32, 254, 255, 256)]
    words += ["".join(rng.choices("abc", k=k)) for k in (8191, 8192, 8193, 65536, 70000, 200000)]
    text = " ".join(words * 2)
    counts = ggtok.count_words(text, pre="gpt-2")
    expected = Counter(regex.findall(GPT2, text))
    assert dict(counts.items()) == {word.encode(): n for word, n in expected.items()}
    v = train(text, 300)
    characters = spelling.byte_characters()
    order = sorted(range(256), key=lambda byte: ord(characters[byte].decode()))
    merges = oracle.train(byte_words(text, order), [bytes([b]) for b in order], 299)
    assert v.merges == [(left, right) for left, right, _ in merges]


@pytest.mark.full
def test_many_words() -> None:
    """There are so many words that caches fill, tables grow, and both sorting methods are used."""
    rng = random.Random(3)
    words = [f"{rng.randrange(10**k)}x" for k in (2, 4, 5, 6, 7) for _ in range(40_000)]
    words += ["the"] * 20_000
    rng.shuffle(words)
    expected = Counter(words)
    counts = ggtok.count_words("\n".join(words), pre_patterns=[r"[^\n]+"])
    del expected["\n"]
    found = {word.decode(): n for word, n in counts.items() if word != b"\n"}
    assert found == expected
    assert counts.total == 2 * len(words) - 1
    assert len(counts) == len(expected) + 1


def test_counts_of_any_size() -> None:
    """Counts may exceed 2^31, which other trainers don't support."""
    counts = ggtok.count_words("abab ab", pre="gpt-2")
    for _ in range(40):
        counts.merge(counts)
    v = ggtok.train(counts, 260)
    assert v.merges == [(b"a", b"b"), (b" ", b"ab"), (b"ab", b"ab")]
    assert v.report.last_count == 2**40  # type: ignore[attr-defined]
    for _ in range(23):
        counts.merge(counts)
    with pytest.raises(ggtok.InvalidValueError, match="2\\^62"):
        ggtok.train(counts, 260)
    with pytest.raises(ggtok.InvalidValueError, match="64 bits"):
        counts.merge(counts)


def test_a_long_word_takes_linear_time() -> None:
    """In one word with many pairs, each merge visits only the occurrences of its pair."""
    rng = random.Random(4)
    word = "".join(rng.choices("ACGT", k=3_000_000))
    v = train(word, 600, documents="whole")
    assert len(v) == 600 and v.report.distinct_words == 1  # type: ignore[attr-defined]
    assert len(max(v.tokens[257:], key=len)) > 4


def test_singular_and_plural() -> None:
    report = str(
        TrainingReport(made=1, asked=2, words=1, distinct_words=1, text_bytes=1, last_count=1)
    )
    assert "1 token of 2 asked for\n1 word, 1 different, 1 byte\n" in report
    assert "the last merge occurred 1 time\n" in report
    one = ConversionReport(compared=1, judge="tokenizers", differing=1, unexplained=("x",))
    assert "on 1 line: 1 differs\n1 line differs for no known reason, such as 'x'" in str(one)
    two = ConversionReport(compared=2, judge="tokenizers", differing=2, unexplained=("x", "y"))
    assert "on 2 lines: 2 differ\n2 lines differ for no known reason" in str(two)
