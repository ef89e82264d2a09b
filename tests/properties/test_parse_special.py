"""Parsing of selected special tokens."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture

Load = Callable[[str], ggtok.Tokenizer]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
# Few tokens, so that llama.cpp's sort is stable for tokens of equal length.
TEXTS = ["<x>", "<xx>", "x><", "<y", "y>", "<xx><y"]
KINDS = [CONTROL, UNKNOWN, CONTROL, CONTROL, USER_DEFINED, CONTROL]
NAMES = ["bpe-gpt2", "spm", "wpm", "rwkv", "ugm-plain"]


@cache
def vocabulary_with(name: str, chosen: frozenset[str] | None, folder: Path) -> ggtok.Tokenizer:
    """Builds a vocabulary with TEXTS as tokens. Control and unknown tokens that aren't in `chosen`
    become NORMAL."""
    gguf = GGUF.read(fixture(name))
    kinds = [
        kind if chosen is None or text in chosen or kind == USER_DEFINED else NORMAL
        for text, kind in zip(TEXTS, KINDS, strict=True)
    ]
    add_tokens(gguf, TEXTS, kinds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(gguf.write(folder / "made.gguf"))


@pytest.mark.parametrize("name", NAMES)
def test_only_selected_tokens_are_parsed(tmp_path_factory: Any, name: str) -> None:
    """The ids are those of a vocabulary in which only the selected tokens are special."""
    folder = tmp_path_factory.mktemp("made")
    tok = vocabulary_with(name, None, folder)
    rng = random.Random(name)
    others = [tok.token_text(id).decode() for id in tok.special_ids if id < tok.n_tokens - 6]
    differing = 0
    for _ in range(20):
        chosen = rng.sample([t for t in TEXTS if t != "y>"], rng.randrange(1, 5))
        oracle = vocabulary_with(name, frozenset(chosen), folder)
        for _ in range(10):
            text = "".join(rng.choice([*TEXTS, "a ", " b", "<", ">", "x"]) for _ in range(9))
            if any(other in text for other in others):
                continue
            ids = tok.encode(text, parse_special=chosen)
            if name in ("bpe-gpt2", "rwkv"):  # other types find NORMAL tokens in raw text
                assert ids == oracle.encode(text, parse_special=True), (chosen, text)
            special = {tok.text_to_token(t) for t in chosen if t in text}
            assert special.isdisjoint(tok.encode(text)) or name in ("spm", "ugm-plain", "rwkv")
            differing += ids not in (tok.encode(text), tok.encode(text, parse_special=True))
    assert differing > 10


def test_every_form_and_every_entry(load_fixture: Load) -> None:
    tok = load_fixture("bpe-qwen2")
    end = tok.text_to_token("<|im_end|>")
    assert end is not None
    text = "a<|im_end|>b<|im_start|>"
    want = [*tok.encode("a"), end, *tok.encode("b<|im_start|>")]
    choices: list[Any] = [
        ["<|im_end|>"], {"<|im_end|>"}, (b"<|im_end|>",), [end], np.array([end]), {end: 1},
        [bytearray(b"<|im_end|>")], ["<|im_end|>", end], frozenset([end]),
    ]  # fmt: skip
    for choice in choices * 2:
        assert tok.encode(text, parse_special=choice) == want
        assert tok.encode_array(text, parse_special=choice).tolist() == want
        assert tok.count(text, parse_special=choice) == len(want)
        assert tok.encode_batch([text, text], parse_special=choice) == [want, want]
        ids, offsets = tok.encode_batch_arrays([text], parse_special=choice)
        assert (ids.tolist(), offsets.tolist()) == (want, [0, len(want)])
        assert tok.encode(bytearray(text.encode()), parse_special=choice) == want
        assert tok.encode(text, parse_special=choice, continuation=True) == want
    assert tok.encode(text, parse_special=[]) == tok.encode(text)
    assert tok.encode(text, parse_special=np.True_) == tok.encode(text, parse_special=True)
    assert tok.encode(text, parse_special=np.False_) == tok.encode(text)
    neither: Any
    for neither in (0, 1, None, object()):
        with pytest.raises(ggtok.InvalidTypeError, match="parse_special must be"):
            tok.encode(text, parse_special=neither)
    # A selection affects only its own call.
    assert tok.encode(text, parse_special=True).count(end) == 1
    assert tok.encode(text, parse_special=True)[-1] == tok.text_to_token("<|im_start|>")


def test_user_defined_tokens_are_always_parsed(load_fixture: Load) -> None:
    tok = load_fixture("bpe-qwen2")
    ids = range(tok.n_tokens)
    own = next(id for id in ids if tok.token_attr(id) & ggtok.TokenAttr.USER_DEFINED)
    text = tok.token_text(own).decode()
    assert tok.encode(text, parse_special=[]) == [own]
    assert tok.encode(text, parse_special=["<|im_end|>"]) == [own]
    assert tok.encode(text, parse_special=[text]) == [own]


WRONG: list[tuple[Any, type[Exception], str]] = [
    ("<|im_end|>", TypeError, r"one text is \['<\|im_end\|>'\]"),
    (b"<|im_end|>", TypeError, r"one text is \[b'<\|im_end\|>'\]"),
    (["<|im_end|>", "<|no|>"], ValueError, r"'<\|no\|>' is not a token"),
    (["\x1b<|no|>"], ValueError, r"'\\x1b<\|no\|>' is not a token"),
    (["a"], ValueError, "'a' isn't a CONTROL or UNKNOWN token"),
    ([5], ValueError, "5 isn't a CONTROL or UNKNOWN token"),
    ([100000], ValueError, "100000 is not a token id of this vocabulary"),
    ([-1], ValueError, "-1 is not a token id"),
    ([True], TypeError, "not a bool"),
    ([None], TypeError, "not NoneType"),
    ([["<|im_end|>"]], TypeError, "not list"),
    (["\ud800"], ValueError, "lone surrogate"),
]


@pytest.mark.parametrize(("choice", "error", "message"), WRONG, ids=[repr(w[0]) for w in WRONG])
def test_errors_name_the_entry(
    load_fixture: Load, choice: Any, error: type[Exception], message: str
) -> None:
    tok = load_fixture("bpe-qwen2")
    calls: list[Callable[[], object]] = [
        lambda: tok.encode("a", parse_special=choice),
        lambda: tok.encode_array("a", parse_special=choice),
        lambda: tok.count("a", parse_special=choice),
        lambda: tok.encode_batch(["a"], parse_special=choice),
        lambda: tok.encode_batch_arrays(["a"], parse_special=choice),
    ]
    for call in calls:
        with pytest.raises(error, match=message) as caught:
            call()
        assert isinstance(caught.value, ggtok.GGTokError)


def test_the_cache_of_selections_is_bounded() -> None:
    """The cache stays bounded, however many selections are used."""
    from ggtok.native.arguments import KEPT

    tok = ggtok.load(fixture("bpe-llama3"))
    special = sorted(tok.special_ids)
    for i in range(2 * KEPT):
        choice = [id for k, id in enumerate(special) if i >> k & 1]
        text = "".join(tok.token_text(id).decode() for id in special)
        parsed = [id for id in tok.encode(text, parse_special=choice) if id in special]
        assert set(parsed) - {tok.bos_id} <= set(choice)
    assert 0 < len(tok._loaded._choices) <= KEPT


def test_no_memory_for_a_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))

    def fail(ids: list[int]) -> object:
        raise MemoryError

    monkeypatch.setattr(tok._loaded, "choose", fail)
    with pytest.raises(ggtok.OutOfMemoryError):
        tok.encode("a", parse_special=["<|eot_id|>"])
