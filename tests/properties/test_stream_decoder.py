"""stream_decoder returns decode()'s text, each part as soon as no further id can change it."""

from __future__ import annotations

import copy
import pickle
import random
import warnings
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ggtok
from tests.properties.given import NAMES
from tests.support.samples import times
from tests.support.vocabularies import REAL, fixture, real

Load = Callable[[str], ggtok.Tokenizer]
HELD = 40  # maximum number of characters held back: those of an EOS and of the token before it


def behind(tok: ggtok.Tokenizer, prompt: list[int], ids: list[int], **options: object) -> str:
    """Returns decode(prompt + ids) without its longest common prefix with decode(prompt)."""
    options = {"clean_spaces": False, **options}
    before = tok.decode(prompt, **options)  # type: ignore[arg-type]
    text = tok.decode(prompt + ids, **options)  # type: ignore[arg-type]
    n = 0
    while n < min(len(before), len(text)) and before[n] == text[n]:
        n += 1
    return text[n:]


def until(text: str, stops: Sequence[str]) -> tuple[str, str | None]:
    """Returns the text before the first complete stop string, and that string."""
    for end in range(1, len(text) + 1):
        complete = [stop for stop in stops if text.endswith(stop, 0, end)]
        if complete:
            stop = max(complete, key=len)
            return text[: end - len(stop)], stop
    return text, None


@cache
def interesting(tok: ggtok.Tokenizer) -> list[int]:
    """Returns ids whose text may continue in the next ids or be changed by clean-up."""
    found = list(tok.special_ids)
    odd = (b" ", b"'", b".", b"s", b"re", b"\xe2", b"\x82")
    for id in range(tok.n_tokens):
        piece = tok.token_to_piece(id)
        if len(piece) <= 3 and (piece.startswith(odd) or not piece.isascii()):
            found.append(id)
    return found[:600]


def any_ids(tok: ggtok.Tokenizer) -> st.SearchStrategy[list[int]]:
    one = st.one_of(st.sampled_from(interesting(tok)), st.integers(0, tok.n_tokens - 1))
    return st.lists(one, max_size=12)


options = st.fixed_dictionaries(
    {
        "remove_special": st.booleans(),
        "unparse_special": st.booleans(),
        "clean_spaces": st.sampled_from([None, True, False]),
        "errors": st.sampled_from(["replace", "ignore", "backslashreplace", "surrogateescape"]),
    }
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=times(20, of=60))
@given(data=st.data(), options=options)
def test_streamed_text_equals_decode(
    load_fixture: Load, name: str, data: st.DataObject, options: dict[str, object]
) -> None:
    tok = load_fixture(name)
    prompt, ids = data.draw(any_ids(tok)), data.draw(any_ids(tok))
    want = behind(tok, prompt, ids, **options)
    stream = tok.stream_decoder(prompt, **options)  # type: ignore[arg-type]
    returned = ""
    for i, id in enumerate(ids):
        returned += stream.feed(id)
        # The text returned so far is a prefix of the final text, and only a few characters are held
        # back.
        assert want.startswith(returned)
        so_far = behind(tok, prompt, ids[: i + 1], **options)
        assert len(so_far) - len(returned) <= HELD
    assert returned + stream.finish() == want
    stream.reset()
    assert stream.feed(ids) + stream.finish() == want
    stops = data.draw(st.lists(st.text(alphabet=want + "ab ", min_size=1, max_size=3), max_size=3))
    if want:
        at = data.draw(st.integers(0, len(want) - 1))
        stops.append(want[at : at + data.draw(st.integers(1, 4))])
    stream = tok.stream_decoder(prompt, stop=stops, **options)  # type: ignore[arg-type]
    text = "".join(stream.feed(id) for id in ids) + stream.finish()
    assert (text, stream.stopped) == until(want, stops)


def by_bytes(tok: ggtok.Tokenizer, text: str) -> list[int]:
    """Returns the ids of the text's characters, without characters that aren't tokens."""
    by_piece = {tok.token_to_piece(id): id for id in range(tok.n_tokens)}
    return [by_piece[c.encode()] for c in text if c.encode() in by_piece]


def eager(tok: ggtok.Tokenizer, ids: list[int], continuations: list[list[int]]) -> str:
    """Returns the common prefix of all continuations: no decoder can return more."""
    texts = [tok.decode([*ids, *more]) for more in continuations]
    first, last = min(texts), max(texts)
    n = 0
    while n < min(len(first), len(last)) and first[n] == last[n]:
        n += 1
    return first[:n]


@pytest.mark.parametrize("name", ["wpm", "spm", "bpe-llama3", "ugm"])
def test_text_comes_as_early_as_it_can(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    rng = random.Random(3)
    hints = interesting(tok)
    continuations = [[], *([id] for id in range(tok.n_tokens))]
    # Clean-up may change text several characters back: "  ' s" becomes "'s".
    for end in ("' s", "' re", "' ", "'re", "'s", "e", "s", " s", " "):
        continuations.append(by_bytes(tok, end))
    for _ in range(4):
        ids = [rng.choice(hints) for _ in range(6)]
        more = [*continuations, *([rng.choice(hints) for _ in range(3)] for _ in range(300))]
        stream, text = tok.stream_decoder(clean_spaces=None), ""
        for i, id in enumerate(ids):
            text += stream.feed(id)
            assert text == eager(tok, ids[: i + 1], more)


@given(
    text=st.text(" '.?!,smrevtx\u00e9", max_size=16),
    prompt=st.text(" '.sre", max_size=6),
)
def test_spaces_are_cleaned_up_as_by_decode(load_fixture: Load, text: str, prompt: str) -> None:
    tok = load_fixture("bpe-llama3")
    ids, before = by_bytes(tok, text), by_bytes(tok, prompt)
    assert len(ids) >= len(text.replace("\u00e9", ""))
    stream = tok.stream_decoder(before, clean_spaces=None)
    joined = "".join(stream.feed(id) for id in ids) + stream.finish()
    assert joined == behind(tok, before, ids, clean_spaces=None)


@pytest.mark.full
@pytest.mark.parametrize("name", REAL[::4])
def test_real_vocabularies(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(real(name))
    rng = random.Random(5)
    text = "Streams of 🦊🦊 and caf\u00e9, \u65e5\u672c\u8a9e; \u0646\u0635 ' s . ok\n"
    for prompt_text in ("", "A prompt 🦊"):
        prompt = tok.encode(prompt_text)
        for ids in (
            tok.encode(text, add_special=False),
            [rng.randrange(tok.n_tokens) for _ in range(200)],
        ):
            for clean in (None, False):
                stream = tok.stream_decoder(prompt, clean_spaces=clean)
                got = "".join(map(stream.feed, ids)) + stream.finish()
                assert got == behind(tok, prompt, ids, clean_spaces=clean)


def test_characters_are_returned_whole(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    ids = tok.encode("a🦊b", add_special=False)
    stream = tok.stream_decoder()
    assert [stream.feed(id) for id in ids] == ["a", *[""] * (len(ids) - 3), "🦊", "b"]
    cut = tok.stream_decoder(ids[:2])  # the prompt ends inside the fox
    assert cut.feed(ids[2:]) + cut.finish() == "🦊b"


def test_an_eos_at_the_end_is_dropped() -> None:
    with_eos = ggtok.load(fixture("bpe-llama3"), overrides={"tokenizer.ggml.add_eos_token": True})
    eos, a = with_eos.eos_id, with_eos.encode("a", add_special=False)
    assert eos is not None
    stream = with_eos.stream_decoder(remove_special=True)
    assert [stream.feed(id) for id in (*a, eos)] == ["a", ""]
    assert stream.feed(a) == with_eos.decode([eos, *a])
    assert stream.feed(eos) + stream.finish() == ""


def test_stop_strings(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    ids = tok.encode("one\nUser: two", add_special=False)
    stream = tok.stream_decoder(tok.encode("User:"), stop=["User:", "\nUser:", "zzz"])
    assert "".join(map(stream.feed, ids)) == "one"
    assert stream.stopped == "\nUser:"
    assert stream.feed(ids) == stream.finish() == ""
    stream.reset()
    assert stream.stopped is None
    assert stream.feed(ids) == "one"
    unfinished = tok.stream_decoder(stop=["end of"])
    assert unfinished.feed(tok.encode("the end", add_special=False)) == "the "
    assert unfinished.finish() == "end"
    assert unfinished.stopped is None


def test_stop_ids(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    one, two = tok.encode("one", add_special=False), tok.encode("two", add_special=False)
    eot, eos = tok.eot_id, tok.eos_id
    for options, stopped in (
        ({"stop_at_eog": True}, eot),
        ({"stop_ids": [eot]}, eot),
        ({"stop_ids": np.array([5, eot]), "unparse_special": False}, eot),
        ({"stop": ["<|eot_id|>"], "unparse_special": False}, "<|eot_id|>"),
        ({"stop": ["<|eot_id|>"]}, "<|eot_id|>"),
        ({"stop": ["<|eot_id|>"], "unparse_special": False, "stop_at_eog": True}, "<|eot_id|>"),
    ):
        for ids in ([[*one, eot, *two]], [*one, eot, *two]):
            stream = tok.stream_decoder(tok.encode("a"), **options)  # type: ignore[arg-type]
            assert "".join(map(stream.feed, ids)) == "one"
            assert stream.stopped == stopped
            assert stream.feed(two) == stream.finish() == ""
            stream.reset()
            assert stream.stopped is None
            assert stream.feed(two) + stream.finish() == "two"
    # A stop id releases the pending text. A stop string in that text takes precedence.
    stream = tok.stream_decoder(stop=["eno", "nex"], stop_ids=[eos])
    assert stream.feed([*one, eos]) == "one"
    assert stream.stopped == eos
    stream = tok.stream_decoder(stop=["ne"], stop_ids=[eos])
    assert (stream.feed([*one, eos]), stream.stopped) == ("o", "ne")
    stream = tok.stream_decoder(stop_ids=[eos])
    assert stream.feed(tok.encode("\U0001f98a", add_special=False)[:2]) == ""
    assert stream.feed(eos) == "\ufffd"
    with pytest.raises(ggtok.TokenIdError, match=r"stop_ids\[1\] is 999"):
        tok.stream_decoder(stop_ids=[1, 999])
    with pytest.raises(ggtok.InvalidTypeError, match="stop_ids must be"):
        tok.stream_decoder(stop_ids="ab")  # type: ignore[arg-type]
    assert ggtok.load(fixture("none")).stream_decoder(stop_ids=[5]).feed(5) == ""


COPIES: dict[str, Callable[[ggtok.StreamDecoder], ggtok.StreamDecoder]] = {
    "copy": ggtok.StreamDecoder.copy,
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda stream: pickle.loads(pickle.dumps(stream)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", ["wpm", "bpe-llama3", "spm"])
@settings(max_examples=times(10, of=40))
@given(data=st.data(), options=options)
def test_copies_are_independent(
    how: str, name: str, data: st.DataObject, options: dict[str, object]
) -> None:
    tok = loaded(name)
    prompt, ids, more, others = (data.draw(any_ids(tok)) for _ in range(4))
    stops = data.draw(st.lists(st.text("ab s'.", min_size=1, max_size=2), max_size=2))
    stream = tok.stream_decoder(prompt, stop=stops, stop_at_eog=True, **options)  # type: ignore[arg-type]
    alone = tok.stream_decoder(prompt, stop=stops, stop_at_eog=True, **options)  # type: ignore[arg-type]
    assert stream.feed(ids) == alone.feed(ids)
    first = COPIES[how](stream)
    first.feed(others)
    second = COPIES[how](stream)
    want = [*map(alone.feed, more), alone.finish()]
    assert [*map(stream.feed, more), stream.finish()] == want
    assert [*map(second.feed, more), second.finish()] == want
    assert second.stopped == stream.stopped == alone.stopped
    first.reset(), alone.reset()
    assert first.feed(ids) == alone.feed(ids)


@cache
def loaded(name: str) -> ggtok.Tokenizer:
    """Loads a vocabulary from a path, so that a pickle is small."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(fixture(name))


def test_ids_of_every_kind(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    ids = tok.encode("Hello", add_special=False)
    for same in (ids, tuple(ids), iter(ids), np.array(ids), np.array(ids, np.int32), range(0)):
        stream = tok.stream_decoder(same)
        assert stream.feed(ids) == "Hello"
    stream = tok.stream_decoder()
    assert stream.feed(np.int64(ids[0])) + stream.feed(np.array(ids[1:])) == "Hello"
    assert stream.finish() == ""
    assert stream.finish() == ""
    with pytest.raises(ggtok.InvalidValueError, match="finished"):
        stream.feed(1)
    assert ggtok.load(fixture("none")).stream_decoder([5]).feed(7) == ""


def test_errors(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    stream = tok.stream_decoder()
    for wrong in (680, -1, [1, 680], np.array([2**40]), [2**70]):
        with pytest.raises(ggtok.TokenIdError, match="not a token id"):
            stream.feed(wrong)
    with pytest.raises(ggtok.TokenIdError, match=r"prompt_ids\[1\] is 999"):
        tok.stream_decoder([1, 999])
    for wrong in ("text", None, 1.5, [1.5]):
        with pytest.raises(ggtok.InvalidTypeError):
            stream.feed(wrong)  # type: ignore[arg-type]
    for wrong in ("stop", b"stop", 3, [3]):
        with pytest.raises(ggtok.InvalidTypeError, match="stop"):
            tok.stream_decoder(stop=wrong)  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidValueError, match=r"stop\[1\] is empty"):
        tok.stream_decoder(stop=["a", ""])
    with pytest.raises(ggtok.InvalidValueError, match="errors"):
        tok.stream_decoder(errors="no such")
    assert stream.feed(tok.encode("fine", add_special=False)) == "fine"


def test_strict_errors_are_raised(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    fox = tok.encode("🦊", add_special=False)
    stream = tok.stream_decoder(fox[:1], errors="strict")
    assert stream.feed(fox[1:]) == "🦊"
    stream.reset()
    with pytest.raises(ggtok.TextDecodeError):
        stream.feed(tok.encode("a", add_special=False))
    stream.reset()
    with pytest.raises(ggtok.TextDecodeError):
        stream.finish()
    with pytest.raises(ggtok.TextDecodeError):
        tok.stream_decoder([*fox[1:], *fox], errors="strict")
    tok = load_fixture("bpe-qwen2")  # a vocabulary without clean-up
    fox, a = tok.encode("🦊", add_special=False), tok.encode("a", add_special=False)[0]
    stream = tok.stream_decoder(errors="strict")
    assert [stream.feed(a), stream.feed(a), stream.feed(fox), stream.feed(fox[0])] == [
        "a",
        "a",
        "🦊",
        "",
    ]
    with pytest.raises(ggtok.TextDecodeError):
        stream.feed(a)
