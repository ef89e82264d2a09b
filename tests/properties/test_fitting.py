"""truncate and chunks, compared with their definitions, for which the tests encode whole texts.

Claim blocks.3.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from tests.properties.given import NAMES, some_bytes, some_text
from tests.support.samples import times
from tests.support.vocabularies import OTHERS, REAL, fixture, real

Load = Callable[[str], ggtok.Tokenizer]


def quiet(name: str) -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(real(name))


def token_spans(tok: ggtok.Tokenizer, text: str | bytes) -> list[tuple[int, int]]:
    """Returns the spans of the text's tokens, in code points (str) or bytes."""
    unit = "char" if isinstance(text, str) else "byte"
    spans = tok.encode_with_offsets(text, add_special=False, unit=unit)[1]
    return [(int(a), int(b)) for a, b in spans]


def character_boundaries(text: bytes) -> set[int]:
    """Returns the boundaries of characters; a malformed byte counts as one character."""
    ends, end = {0}, 0
    for char in text.decode("utf-8", "surrogateescape"):
        end += len(char.encode("utf-8", "surrogateescape"))
        ends.add(end)
    return ends


def first_tokens(tok: ggtok.Tokenizer, text: str, n: int, add_special: bool) -> str:
    """Implements the definition of truncate."""
    if tok.count(text, add_special=add_special) <= n:
        return text
    data = text.encode()
    boundaries = character_boundaries(data)
    room = n - tok.count("", add_special=add_special)
    for _, end in reversed(token_spans(tok, data)[:room]):
        if end in boundaries and tok.count(data[:end], add_special=add_special) <= n:
            return data[:end].decode()
    return ""


def last_tokens(tok: ggtok.Tokenizer, text: str, n: int, add_special: bool) -> str:
    """Implements the definition of truncate with side="left"."""
    if tok.count(text, add_special=add_special) <= n:
        return text
    data = text.encode()
    boundaries = character_boundaries(data)
    room = n - tok.count("", add_special=add_special)
    spans = token_spans(tok, data)
    for start, _ in spans[len(spans) - room :]:
        if start in boundaries and tok.count(data[start:], add_special=add_special) <= n:
            return data[start:].decode()
    return ""


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=times(20, of=40))
@given(text=some_text, add_special=st.booleans(), part=st.floats(0, 1))
def test_truncate_equals_its_definition(
    load_fixture: Load, name: str, text: str, add_special: bool, part: float
) -> None:
    tok = load_fixture(name)
    added = tok.count("", add_special=add_special)
    n = added + round(part * (tok.count(text, add_special=add_special) - added))
    got = tok.truncate(text, n, add_special=add_special)
    assert got == first_tokens(tok, text, n, add_special), n
    assert tok.count(got, add_special=add_special) <= n
    got = tok.truncate(text, n, side="left", add_special=add_special)
    assert got == last_tokens(tok, text, n, add_special), n
    assert tok.count(got, add_special=add_special) <= n
    assert tok.truncate(text, 10**30) == tok.truncate(text, 10**30, side="left") == text


@pytest.mark.parametrize("name", ["spm", "bpe-llama3", "wpm", "ugm", "rwkv"])
@given(text=some_bytes, part=st.floats(0, 1))
def test_truncated_bytes_end_between_characters(
    load_fixture: Load, name: str, text: bytes, part: float
) -> None:
    tok = load_fixture(name)
    added = tok.count("")
    n = added + round(part * (tok.count(text) - added))
    for side in ("left", "right"):
        got = tok.truncate(text, n, side=side)  # type: ignore[arg-type]
        assert type(got) is bytes
        assert text.startswith(got) if side == "right" else text.endswith(got)
        assert tok.count(got) <= n
        assert (len(got) if side == "right" else len(text) - len(got)) in character_boundaries(text)
        assert tok.truncate(memoryview(bytearray(text)), n, side=side) == got  # type: ignore[arg-type]


def check_chunks(
    tok: ggtok.Tokenizer,
    text: str | bytes,
    n: int,
    *,
    overlap: int = 0,
    prefix: str | bytes = "",
    add_special: bool = True,
    at: tuple[str, ...] | None = None,
) -> list[ggtok.Chunk]:
    """Checks the chunks and returns them."""
    empty = text[:0]
    prefix = (
        prefix if isinstance(text, str) else prefix.encode() if isinstance(prefix, str) else prefix
    )
    chunks = tok.chunks(text, n, overlap=overlap, prefix=prefix, add_special=add_special, at=at)
    if not text:
        assert chunks == []
        return chunks

    def count(start: int, end: int) -> int:
        return tok.count(prefix + text[start:end], add_special=add_special)  # type: ignore[operator]

    assert chunks[0].start == 0
    assert chunks[-1].end == len(text)
    boundaries = character_boundaries(text) if isinstance(text, bytes) else range(len(text) + 1)
    for chunk in chunks:
        assert chunk.start < chunk.end
        assert chunk.n_tokens == count(chunk.start, chunk.end) <= n
        if isinstance(text, bytes):
            assert {chunk.start, chunk.end} <= boundaries
    assert (
        empty.join(
            text[a.start : min(a.end, b.start)]
            for a, b in pairwise([*chunks, chunks[-1]])  # type: ignore[misc]
        )
        + text[chunks[-1].start :]
        == text
    )  # type: ignore[operator]
    ends = sorted({end for _, end in token_spans(tok, text)} | {len(text)})
    for chunk, after in pairwise(chunks):
        assert chunk.end < after.end
        if not at:
            later = ends[bisect_right(ends, chunk.end) :]
            longer = next(end for end in later if end in boundaries)
            assert count(chunk.start, longer) > n
            if len(text) < 1000:  # nor does one more token of the rest fit
                rest = prefix + text[chunk.start :]  # type: ignore[operator]
                moved = [end - len(prefix) + chunk.start for _, end in token_spans(tok, rest)]
                longer = next((end for end in moved if end > chunk.end and end in boundaries), 0)
                assert not longer or count(chunk.start, longer) > n
        if not overlap:
            assert after.start == chunk.end
            continue
        own = prefix + text[chunk.start : chunk.end]  # type: ignore[operator]
        starts = [start - len(prefix) + chunk.start for start, _ in token_spans(tok, own)]
        assert min(starts[-overlap:]) >= after.start
        assert after.start > chunk.start
    return chunks


def least(tok: ggtok.Tokenizer, text: str, prefix: str = "", add_special: bool = True) -> int:
    """Returns the smallest n with which every character fits into a chunk."""
    counts = (tok.count(prefix + char, add_special=add_special) for char in {*text} or "a")
    return max(1, *counts)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=times(20, of=40))
@given(
    text=some_text,
    more=st.integers(0, 12),
    prefix=st.sampled_from(["", "q: ", "passage: "]),
    add_special=st.booleans(),
)
def test_chunks_equal_their_definition(
    load_fixture: Load, name: str, text: str, more: int, prefix: str, add_special: bool
) -> None:
    tok = load_fixture(name)
    n = least(tok, text, prefix, add_special) + more
    chunks = check_chunks(tok, text, n, prefix=prefix, add_special=add_special)
    data = check_chunks(tok, text.encode(), n, prefix=prefix, add_special=add_special)
    assert [len(text.encode()[a:b].decode()) for a, b, _ in data] == [b - a for a, b, _ in chunks]


@pytest.mark.parametrize(
    "name", ["spm", "bpe-llama3", "wpm", "ugm", "rwkv", "plamo2", "bpe-gemma4"]
)
@settings(max_examples=times(20, of=60))
@given(text=some_text, overlap=st.integers(1, 5), more=st.integers(0, 12))
def test_chunks_overlap(load_fixture: Load, name: str, text: str, overlap: int, more: int) -> None:
    tok = load_fixture(name)
    try:
        check_chunks(tok, text, least(tok, text) + more, overlap=overlap)
    except ggtok.InvalidValueError as e:
        would_do = int(str(e).rsplit(": ", 1)[1].split()[0])
        check_chunks(tok, text, would_do, overlap=overlap)


@pytest.mark.parametrize("name", ["spm", "bpe-llama3", "wpm", "ugm", "rwkv"])
@given(text=some_bytes, more=st.integers(0, 8))
def test_chunks_of_bytes_end_between_characters(
    load_fixture: Load, name: str, text: bytes, more: int
) -> None:
    tok = load_fixture(name)
    try:
        check_chunks(tok, text, 3 + more)
    except ggtok.InvalidValueError as e:
        check_chunks(tok, text, int(str(e).rsplit(": ", 1)[1].split()[0]))


@pytest.mark.full
@pytest.mark.parametrize("name", [*REAL[::3], *OTHERS])
def test_real_vocabularies(name: str) -> None:
    tok = quiet(name)
    rng = random.Random(11)
    lines = [*PROSE, *CODE] * 4
    rng.shuffle(lines)
    text = "\n\n".join(lines)[:12000]
    for n, options in (
        (64, {}),
        (40, {"overlap": 8, "prefix": "passage: "}),
        (512, {"at": ("\n\n", "\n", ". ")}),
    ):
        chunks = check_chunks(tok, text, n, **options)  # type: ignore[arg-type]
        full = sum(chunk.n_tokens >= n - 4 for chunk in chunks)
        assert full >= 0.8 * (len(chunks) - 1) or "at" in options
    for n in (5, 100, 1000):
        assert tok.truncate(text, n) == first_tokens(tok, text, n, True)
        assert tok.truncate(text, n, side="left") == last_tokens(tok, text, n, True)


def test_chunks_end_at_separators(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    text = "".join(f"Sentence {i} is here. And on.\n" + "\n" * (i % 3 == 0) for i in range(40))
    separators = ("\n\n", "\n", ". ")
    used = set()
    for n in (25, 40, 64, 90, 150):
        plain = tok.chunks(text, n)
        for chunk in check_chunks(tok, text, n, at=separators)[:-1]:
            could = next(c for c in tok.chunks(text[chunk.start :], n))
            part = text[chunk.start : chunk.start + could.end]
            in_last_quarter = [
                s for s in separators if 4 * (part.rfind(s) + len(s)) > 3 * len(part)
            ]
            length = len(part)
            if in_last_quarter:
                used.add(in_last_quarter[0])
                length = part.rfind(in_last_quarter[0]) + len(in_last_quarter[0])
            assert chunk.end - chunk.start == length
        assert tok.chunks(text, n, at=["no such"]) == tok.chunks(text, n, at=()) == plain
    assert used == {*separators}


def hostile() -> Iterator[str]:
    yield "a" * 3000
    yield " " * 3000
    yield "\n" * 500 + "x" + " " * 500
    yield "🦊" * 300
    yield "e\u0301" * 400
    yield "1234567890" * 100
    yield "'re'll've" * 100
    yield "\u3000\u2003 " * 200


@pytest.mark.parametrize("name", ["spm", "bpe-llama3", "wpm", "ugm", "rwkv", "plamo2", "bpe-neox"])
def test_hostile_texts(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    for text in hostile():
        n = least(tok, text) + 17
        check_chunks(tok, text, n)
        with contextlib.suppress(ggtok.InvalidValueError):
            check_chunks(tok, text, n, overlap=3)
        for k in (n, 5 * n):
            assert tok.truncate(text, k) == first_tokens(tok, text, k, True)
            assert tok.truncate(text, k, side="left") == last_tokens(tok, text, k, True)


def test_texts_that_python_splits() -> None:
    """No cuts are known in texts that Python splits into words."""
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\S+|\s+"])
    text = " ".join(PROSE[:2])
    check_chunks(tok, text, 20)
    check_chunks(tok, text, 20, overlap=2)
    for side in ("left", "right"):
        assert tok.count(tok.truncate(text, 9, side=side)) == 9  # type: ignore[arg-type]


def test_errors_say_which_n_would_do(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    for text, n, options in (
        ("abc", 1, {}),
        ("a 🦊", 2, {}),
        ("kettles and pans", 3, {"prefix": "passage: "}),
        ("kettles and pans", 6, {"overlap": 5}),
        ("kettles and pans", 6, {"overlap": 500}),
        ("kettles and 🦊🦊🦊 pans", 9, {"overlap": 4, "prefix": "q:"}),
    ):
        with pytest.raises(ggtok.InvalidValueError, match="would do") as caught:
            tok.chunks(text, n, **options)  # type: ignore[arg-type]
        would_do = int(str(caught.value).rsplit(": ", 1)[1].split()[0])
        assert would_do > n
        check_chunks(tok, text, would_do, **options)  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidValueError, match="5 would do"):
        tok.chunks("a 🦊", 2)


def test_arguments(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    for n in (0, -1):
        with pytest.raises(ggtok.InvalidValueError, match=f"n .* {n}"):
            tok.chunks("text", n)
        with pytest.raises(ggtok.InvalidValueError, match=f"n is {n}, but 1"):
            tok.truncate("text", n)
    assert tok.truncate("text", 0, add_special=False) == ""
    assert tok.truncate("text", 1) == tok.truncate("", 1) == ""
    with pytest.raises(ggtok.InvalidTypeError, match="n must be an integer, not float"):
        tok.chunks("text", 2.5)  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidValueError, match="overlap must not be negative"):
        tok.chunks("text", 5, overlap=-1)
    with pytest.raises(ggtok.InvalidTypeError, match="at must be a collection of texts, not str"):
        tok.chunks("text", 5, at="\n")
    with pytest.raises(ggtok.InvalidValueError, match=r"at\[1\] is empty"):
        tok.chunks("text", 5, at=("\n", ""))
    with pytest.raises(ggtok.InvalidValueError, match="side must be"):
        tok.truncate("text", 5, side="middle")  # type: ignore[arg-type]
    for call in (tok.chunks, tok.truncate):
        with pytest.raises(ggtok.InvalidTypeError, match="text must be str or bytes-like"):
            call(3, 5)  # type: ignore[operator]
        with pytest.raises(ggtok.TextEncodeError):
            call("\udc80", 5)  # type: ignore[operator]
    assert tok.chunks("", 5) == tok.chunks(b"", 5) == []
    assert tok.chunks("text", 10**30) == [(0, 4, tok.count("text"))]
    with pytest.raises(ggtok.VocabError):
        ggtok.load(fixture("none")).chunks("text", 5)
    with pytest.raises(ggtok.VocabError):
        ggtok.load(fixture("none")).truncate("text", 5)


def test_long_texts(load_fixture: Load) -> None:
    """Texts that are longer than one window of chunks.py are split correctly, with and without
    cuts."""
    tok = load_fixture("bpe-llama3")
    for text, n in (("kettle and pan " * 30_000, 512), ("a" * 300_000, 2000)):
        chunks = tok.chunks(text, n, overlap=5)
        assert chunks[-1].end == len(text)
        assert {chunk.n_tokens for chunk in chunks[:-1]} <= {n, n - 1, n - 2}
        assert all(a.start < b.start < a.end for a, b in pairwise(chunks))
        for side in ("left", "right"):
            assert tok.count(tok.truncate(text, n, side=side)) == n  # type: ignore[call-overload]
