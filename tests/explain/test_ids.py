"""Compares the steps of `explain` with those of the plain Python tokenizer, ids with encode's."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings

import ggtok
from ggtok.inspect.parity.texts import ALPHABETS, BROKEN, WHITE_SPACE, texts
from ggtok.native import pre_names
from ggtok.vocabularies.pre_rows import EXPRESSIONS, PRE_ROWS, SCANNERS
from tests.plain import explain as plain
from tests.properties.given import NAMES, flags, some_bytes
from tests.support.patch import GGUF
from tests.support.vocabularies import INP_OUT, fixture, inp_out, real

Load = Callable[[str], ggtok.Tokenizer]

PLANES = "".join(chr(c) for c in range(0, 0x110000, 3061) if not 0xD800 <= c < 0xE000)
# Texts that are tried both joined and separately.
HOSTILE = [
    *(alphabet * 2 for alphabet in ALPHABETS),
    PLANES,
    "".join(f"{space}a{space}{space}1" for space in WHITE_SPACE),
    "I'll don'T '\u017f \u00a0'' 1234567 \u0661\u0662\u0663\u0664 x12,345 \n\n \r\n",
    "<sentinel:12> IMGIMGABZ <dna>ACGTTacgx</dna> <|plamo:x|>    \uee00 na\u00efve HelloWORLD",
]


def same(found: object, want: object) -> bool:
    """Whether two explanations are equal, where NaN equals NaN and 0.0 differs from -0.0."""
    return repr(found) == repr(want)


def check(
    tok: ggtok.Tokenizer,
    text: str | bytes,
    add_special: bool = True,
    parse_special: bool = False,
) -> None:
    """Checks the explanation of a text: ids, steps (as in the plain tokenizer) and positions."""
    flags = {"add_special": add_special, "parse_special": parse_special}
    found = tok.explain(text, **flags)
    assert found.ids == tok.encode(text, **flags), text
    assert same(found, plain.explain(tok._loaded, text, add_special, parse_special)), text
    assert json.loads(json.dumps(dataclasses.asdict(found)))["ids"] == found.ids
    # Fragments tile the text; white space that a special token strips belongs to the token's
    # fragment.
    data = text.encode() if isinstance(text, str) else text
    ranges = [(fragment.begin, fragment.end) for fragment in found.fragments]
    assert [0, *(end for _, end in ranges)] == [*(begin for begin, _ in ranges), len(data)]
    for fragment in found.fragments:
        if fragment.special is None:
            assert (
                fragment.text.encode("utf-8", "surrogateescape")
                == (data[fragment.begin : fragment.end])
            )
        for word, next_word in pairwise(fragment.words):
            assert fragment.begin <= word.begin <= word.end <= next_word.end <= fragment.end


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5)
@given(text=some_bytes, flags=flags)
def test_any_text(load_fixture: Load, name: str, text: bytes, flags: dict[str, bool]) -> None:
    check(load_fixture(name), text, **flags)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_texts(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    special = [tok.token_text(id) for id in range(tok.n_tokens) if tok.token_attr(id) & 0x19]
    words = [tok.token_to_piece(id) for id in range(0, tok.n_tokens, 7)]
    for text in texts(5, 14, words, special):
        check(tok, text[:250], parse_special=True)
    check(tok, PLANES)
    check(tok, b" a".join(BROKEN))
    check(tok, b" a ".join(special), parse_special=True)


# Pre-tokenizer names with the same chain of scanners and the same flags split texts alike, so one
# name for each combination is enough.
ROWS = {row: name for name, row in PRE_ROWS.items()}


@pytest.mark.parametrize("pre", ROWS.values())
def test_every_chain_is_explained(pre: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(fixture("bpe-gpt2"), pre=pre)
    check(tok, "".join(HOSTILE))
    check(tok, HOSTILE[-2])


def test_every_name_has_a_row() -> None:
    assert list(PRE_ROWS) == pre_names()
    counting = {"groups_right", "groups_left"}
    used = {scanner for chain, _ in PRE_ROWS.values() for scanner in SCANNERS[chain]}
    assert used - counting == set(EXPRESSIONS)


@pytest.mark.full
@pytest.mark.parametrize("name", INP_OUT)
def test_real_vocabularies(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(real(name))
    for text, want in [*zip(*inp_out(name), strict=True)][::3]:
        assert tok.explain(text, add_special=False).ids == want
        check(tok, text)
    for text in HOSTILE[-4:]:
        check(tok, text, parse_special=True)
    for id in range(0, tok.n_tokens, tok.n_tokens // 100) if tok.vocab_type != "WPM" else ():
        assert same(tok.merge_tree(id), plain.merge_tree(tok._loaded, id))


def test_pre_patterns() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\w+", r"[a-k]+"])
    check(tok, "The kettle's on, na\u00efve " + PLANES)
    words = tok.explain("ab, lab").fragments[0].words
    assert [word.text for word in words] == ["ab", ", ", "l", "ab"]
    assert words[0].rules == []


@pytest.mark.parametrize("choice", [[], ["<|eot_id|>"], [662, b"<|eot_id|>"]])
def test_chosen_special_tokens(load_fixture: Load, choice: list[object]) -> None:
    tok = load_fixture("bpe-llama3")
    text = "a<|eot_id|>b<|begin_of_text|>c"
    want = tok.encode(text, parse_special=choice)
    assert tok.explain(text, parse_special=choice).ids == want
    assert tok.explain(text, parse_special=iter(choice)).ids == want  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["plamo2", "plamo3", "ugm"])
def test_characters_that_plamo_and_ugm_split_and_drop(load_fixture: Load, name: str) -> None:
    tag = b"<|plamo:"
    for text in (
        b"\xef\xbb\xbf\xef\xbb\xbfthe \xef\xbb\xbf",
        b"\xf5\x90\x80\x80a\xf4\x90\x80\x80",
        "a\ue3ff\uee00\uee00b\uee00".encode(),
        b"the    kettle\n\n\n\n\naaaaa<<<<<" + tag + b"x|>>>>>> a" + tag + b"a b|>" + tag + b"y|z",
        tag + b"n" * 64 + b"|>" + tag + b"n" * 65 + b"|>" + tag + b"\x1c|>" + tag,
    ):
        check(load_fixture(name), text)


def test_files_without_types_are_explained(tmp_path: Path) -> None:
    """Without types, all tokens are NORMAL. A tag such as <oov> that is no token is plain text."""
    for name in "ugm", "bpe-hybriddna":
        gguf = GGUF.read(fixture(name))
        del gguf.raw[b"tokenizer.ggml.token_type"]
        tokens = [b"no tag" if t == b"<oov>" else t for t in gguf.strings("tokenizer.ggml.tokens")]
        gguf.set("tokenizer.ggml.tokens", tokens)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ggtok.VocabWarning)
            tok = ggtok.load(gguf.write(tmp_path / "model.gguf"))
        check(tok, "the <dna>ACGT</dna> kettle <unk>", parse_special=True)


def test_nan_scores_are_explained(tmp_path: Path) -> None:
    """With NaN scores, the order of merges depends on how the reference's heap moves elements."""
    gguf = GGUF.read(fixture("spm"))
    scores = gguf.array("tokenizer.ggml.scores")
    for id in range(259, len(scores), 3):
        scores[id] = float("nan")
    gguf.set("tokenizer.ggml.scores", scores)
    tok = ggtok.load(gguf.write(tmp_path / "nan.gguf"))
    text = "the quick brown fox jumps over the lazy dog and then there were others " * 4
    check(tok, text)


def test_flags_and_overrides_are_explained() -> None:
    for name, key in (
        ("spm", "add_space_prefix"),
        ("ugm", "remove_extra_whitespaces"),
        ("wpm", "normalizer.lowercase"),
        ("wpm", "normalizer.strip_accents"),
        ("bpe-whitespace", "normalizer.lowercase"),
        ("bpe-whitespace", "escape_whitespaces"),
        ("bpe-hybriddna", "escape_whitespaces"),
        ("bpe-mmbert", "escape_whitespaces"),
        ("bpe-llama3", "add_eos_token"),
    ):
        for on in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ggtok.VocabWarning)
                tok = ggtok.load(fixture(name), overrides={f"tokenizer.ggml.{key}": on})
            check(tok, "  A \u00e9\n  <dna>AC Gt</dna>  <mask> the\u3000Kettle \n\nx ")
