"""A text that grows has, at each moment, the ids of the whole text so far."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from tests.properties.given import HELD_WHOLE, NAMES, flags, hostile_texts, some_bytes
from tests.support.vocabularies import OTHERS, REAL, fixture, real

Load = Callable[[str], ggtok.Tokenizer]


def pieces(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    ends = sorted({min(cut, len(data)) for cut in cuts})
    return (data[a:b] for a, b in itertools.pairwise([0, *ends, len(data)]))


def check(tok: ggtok.Tokenizer, data: bytes, cuts: Sequence[int], **flags: bool) -> int:
    """Checks the ids after each piece and at the end; returns the number of ids that feed gave."""
    stream = tok.stream_encoder(**flags)
    final: list[int] = []
    seen = b""
    for piece in pieces(data, cuts):
        final += stream.feed(piece)
        seen += piece
        if len(seen) % 3 == 0 or len(seen) == len(data):
            assert [*final, *stream.pending] == tok.encode(seen, **flags), (seen, cuts, flags)
            assert stream.count == tok.count(seen, **flags)
    n = len(final)
    final += stream.finish()
    assert final == tok.encode(data, **flags), (data, cuts, flags)
    assert stream.count == len(final) and stream.finish() == stream.pending == []
    return n


@pytest.mark.parametrize("name", NAMES)
@given(data=some_bytes, cuts=st.lists(st.integers(0, 60), max_size=12), flags=flags)
def test_any_text_and_any_cuts(
    load_fixture: Load, name: str, data: bytes, cuts: list[int], flags: dict[str, bool]
) -> None:
    check(load_fixture(name), data, cuts, **flags)


def random_cuts(rng: random.Random, n: int) -> list[int]:
    return [rng.randrange(n + 1) for _ in range(rng.choice((1, 4, n // 8 + 1)))]


def check_hostile(tok: ggtok.Tokenizer, seed: int, n: int) -> None:
    rng = random.Random(seed)
    for i, text in enumerate(hostile_texts(tok, seed, n)):
        data = text[:400]
        check(
            tok, data, random_cuts(rng, len(data)), add_special=i % 2 == 0, parse_special=i % 3 > 0
        )


@pytest.mark.parametrize("name", NAMES)
def test_hostile_texts(load_fixture: Load, name: str) -> None:
    check_hostile(load_fixture(name), 31, 6)


@pytest.mark.full
@pytest.mark.parametrize("name", [*REAL, *OTHERS])
def test_real_vocabularies(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(real(name))
    check_hostile(tok, 32, 40)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HELD_WHOLE])
def test_ids_become_final_early(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    data = "".join(f"{line}\n" for line in CODE * 3).encode()
    cuts = [*range(0, len(data), 32)]
    assert check(tok, data, cuts) > 0.9 * tok.count(data) - 10


@pytest.mark.parametrize("name", ["bpe-llama3", "bpe-gemma4", "spm", "wpm", "rwkv", "plamo2"])
def test_appending_encodes_only_the_end(load_fixture: Load, name: str) -> None:
    """The work of a call depends on its own text: counted in looked-up words, or in held text."""
    tok = load_fixture(name)
    words = (" ".join(PROSE[:4]).replace("\n", " ") + "\n").encode()
    stream = tok.stream_encoder()
    for _ in range((4 << 20) // len(words) // 64):
        stream.feed(words * 64)
    counts = []
    for _ in range(8):
        before = tok.cache_info()
        stream.feed(words[:256])
        assert stream.count > 0
        after = tok.cache_info()
        counts.append(after.hits + after.misses - before.hits - before.misses)
        assert sum(map(len, stream._parts)) < 600
    assert max(counts) < 512


def test_text_without_cuts_is_searched_in_linear_time(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    stream = tok.stream_encoder()
    searched = 0
    encode = tok._loaded.encode_block

    def counting(data: bytes, *args: object) -> object:
        nonlocal searched
        searched += len(data)
        return encode(data, *args)

    tok._loaded.encode_block = counting
    try:
        final = [id for _ in range(3000) for id in stream.feed("a")]
    finally:
        tok._loaded.encode_block = encode
    assert final == [] and searched < 4 * 3000
    assert stream.finish() == tok.encode("a" * 3000)


def test_copies_and_pickles_continue(load_fixture: Load) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    stop = "<|eot_id|>"
    for parse_special in (True, [stop], iter([stop])):
        stream = tok.stream_encoder(parse_special=parse_special)
        begun = stream.feed(f"one two{stop} thr")
        copies = [stream.copy(), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))]
        stream.feed("ough")  # doesn't change the copies
        for i, other in enumerate(copies):
            rest = other.feed(f"ee {i}") + other.finish()
            whole = tok.encode(f"one two{stop} three {i}", parse_special=[stop])
            assert [*begun, *rest] == whole and other.count == len(whole)


def test_texts_of_every_kind(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    stream = tok.stream_encoder()
    assert stream.pending == tok.encode("") and stream.count == 1
    texts: list[str | bytes | bytearray | memoryview] = [
        "",
        "one t",
        b"wo thr",
        bytearray(b"ee\xc3"),
        memoryview(b"\xa9"),
    ]
    ids = [id for text in texts for id in stream.feed(text)]
    assert [*ids, *stream.finish()] == tok.encode("one two three\u00e9")
    continued = tok.stream_encoder(continuation=True)
    assert continued.feed("one two three ") + continued.finish() == tok.encode(
        "one two three ", continuation=True
    )


def test_a_failed_call_appends_nothing(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    stream = tok.stream_encoder()
    ids = stream.feed("one two ")
    with pytest.raises(ggtok.TextEncodeError):
        stream.feed("three \udc80")
    with pytest.raises(ggtok.InvalidTypeError, match="text must be str or bytes-like"):
        stream.feed(1)  # type: ignore[arg-type]
    assert [*ids, *stream.feed("four"), *stream.finish()] == tok.encode("one two four")
    with pytest.raises(ggtok.InvalidValueError, match="the text is finished"):
        stream.feed("five")


def test_arguments_are_checked_at_once(load_fixture: Load) -> None:
    with pytest.raises(ggtok.VocabError, match="no vocabulary"):
        ggtok.load(fixture("none")).stream_encoder()
    with pytest.raises(ggtok.InvalidValueError, match="can't encode a text as a continuation"):
        load_fixture("wpm").stream_encoder(continuation=True)
    tok = load_fixture("bpe-llama3")
    with pytest.raises(ggtok.InvalidTypeError, match="parse_special must be"):
        tok.stream_encoder(parse_special="<|eot_id|>")
    with pytest.raises(ggtok.InvalidValueError, match="Hello"):
        tok.stream_encoder(parse_special=["Hello"])
    with pytest.raises(ggtok.InvalidTypeError, match="add_special"):
        tok.stream_encoder(add_special="yes")  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidTypeError, match="stream_encoder"):
        ggtok.StreamEncoder()
