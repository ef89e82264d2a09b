"""is_canonical: true for ids to which some text encodes, false for all others."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

import ggtok
from ggtok.inspect.parity.texts import texts
from tests.properties.given import NAMES, flags, some_bytes
from tests.support.samples import times
from tests.support.vocabularies import OTHERS, REAL, fixture, real

Load = Callable[[str], ggtok.Tokenizer]
SPECIAL = ggtok.TokenAttr.CONTROL | ggtok.TokenAttr.USER_DEFINED | ggtok.TokenAttr.UNKNOWN
# Vocabularies with few byte tokens, where different characters can lose bytes and become equal.
FEW_BYTES = ["bpe-odd"]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in FEW_BYTES])
@settings(max_examples=times(20, of=60))
@given(data=some_bytes, flags=flags)
def test_ids_of_texts_are_canonical(
    load_fixture: Load, name: str, data: bytes, flags: dict[str, bool]
) -> None:
    tok = load_fixture(name)
    if name.startswith("spm"):  # a stray lead byte forms a symbol with bytes of the next space mark
        data = data.decode("utf-8", "replace").encode()
    ids = tok.encode(data, **flags)
    assert tok.is_canonical(ids), ids


@pytest.mark.parametrize("text", ["\uff09", "a\uff09b \uff09", ")", "(\uff09)"])
def test_texts_that_normalization_changes_twice(load_fixture: Load, text: str) -> None:
    """The charsmap replaces U+FF09 by ")", and ")" itself by another character."""
    tok = load_fixture("ugm")
    assert tok.is_canonical(tok.encode(text))
    assert tok.is_canonical(tok.encode(text, add_special=False))


@pytest.mark.parametrize("text", ["\u00ab", "\u00ab\u00ab a", "\u00c5"])
def test_texts_whose_normalized_form_becomes_unknown(load_fixture: Load, text: str) -> None:
    """Normalization replaces U+00AB by the token U+00C5, and that by an unknown character."""
    tok = load_fixture("ugm-nfc")
    assert tok.is_canonical(tok.encode(text, add_special=False))


@pytest.mark.full
@pytest.mark.parametrize("name", [*REAL, *OTHERS])
def test_real_vocabularies(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(real(name))
    rng = random.Random(7)
    ids = range(tok.n_tokens)
    specials = [tok.token_text(id) for id in ids if tok.token_attr(id) & SPECIAL][:400]
    words = [tok.token_to_piece(id) for id in rng.sample(ids, 300)]
    rejected = 0
    for text in texts(23, 25, words, specials or [b"<s>"]):
        for parse_special in (False, True):
            found = tok.encode(text[:400], parse_special=parse_special)
            assert tok.is_canonical(found), text[:400]
            if found:
                found[rng.randrange(len(found))] = rng.randrange(tok.n_tokens)
                rejected += not tok.is_canonical(found)
    assert rejected > 2


@pytest.mark.parametrize("name", ["spm-phi3", "bpe-qwen2", "bpe-gemma4", "rwkv", "wpm", "ugm"])
def test_all_short_texts_and_no_other_ids(load_fixture: Load, name: str) -> None:
    """Of the lists of ids with few characters, exactly the encodings of short texts are
    canonical."""
    tok = load_fixture(name)
    alphabet = " ath\u2581" if name in ("spm-phi3", "ugm", "bpe-gemma4") else " ath"
    seen: set[tuple[int, ...]] = set()
    for n in range(6):
        for chars in itertools.product(alphabet, repeat=n):
            seen.add(tuple(tok.encode("".join(chars), add_special=False)))
    # Tokens of one or two characters of the alphabet: `seen` has the ids of every text that a few
    # of them can spell.
    few = [
        id
        for id in range(tok.n_tokens)
        if (piece := tok.token_to_piece(id)) and set(piece) <= set(b" ath") and len(piece) <= 2
    ]
    accepted = rejected = 0
    for n in range(1, 4):
        for ids in itertools.product(few, repeat=n):
            if len(tok.decode_bytes(ids)) + 1 > 4:
                continue
            canonical = tok.is_canonical(ids)
            assert canonical == (ids in seen), ids
            accepted += canonical
            rejected += not canonical
    assert accepted > 5
    assert rejected > 2


def test_split_tokens_are_not_canonical(load_fixture: Load) -> None:
    tok = load_fixture("bpe-qwen2")
    ids = tok.encode("the kettle was singing")
    split = 0
    for i, id in enumerate(ids):
        piece = tok.token_to_piece(id)
        for cut in range(1, len(piece)):
            left, right = (
                tok.encode(part, add_special=False) for part in (piece[:cut], piece[cut:])
            )
            assert not tok.is_canonical([*ids[:i], *left, *right, *ids[i + 1 :]])
            split += 1
    assert split >= 10


def test_special_tokens_stand_for_themselves(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    eot = tok.eot_id
    assert eot is not None
    word = tok.encode("kettle", add_special=False)
    for ids in ([], [eot], [eot, eot], [eot, *word], [*word, eot, *word], [tok.bos_id, *word]):
        assert tok.is_canonical(ids)  # type: ignore[arg-type]
    spelled = tok.encode(tok.token_text(eot), add_special=False)
    assert eot not in spelled
    assert tok.is_canonical(spelled)


def test_spm_text_needs_its_space_prefix(load_fixture: Load) -> None:
    """SPM adds a space before a text, and before text that follows a special token."""
    tok = load_fixture("spm-phi3")
    with_space = tok.encode("a", add_special=False)
    without = tok.encode("a", continuation=True)
    assert with_space != without
    assert tok.is_canonical(with_space)
    assert not tok.is_canonical(without)
    assert not tok.is_canonical([tok.eos_id, *without])  # type: ignore[list-item]
    assert tok.is_canonical([tok.eos_id, *with_space])  # type: ignore[list-item]


def test_a_space_mark_where_spaces_produce_no_token(load_fixture: Load) -> None:
    """In this vocabulary, spaces separate words and produce no token. U+2581, which in other
    vocabularies stands for a space, does produce one."""
    tok = load_fixture("bpe-whitespace")
    for text in "\u2581n o", "n o\u2581", "\u2581 \u2581n\to":
        assert tok.is_canonical(tok.encode(text))
    mark, n, o = tok.encode("\u2581n o", add_special=False)
    assert tok.encode("\u2581no", add_special=False) != [mark, n, o]
    assert not tok.is_canonical([mark, tok.text_to_token("<0xFC>")])


def test_a_space_mark_after_a_user_defined_token_of_spaces(load_fixture: Load) -> None:
    """Two spaces are a user-defined token. The tokens after it contain space marks, which come from
    other characters."""
    tok = load_fixture("spm")
    spaces = tok.text_to_token("  ")
    for text in "   \u2581", "x   \u2581", "  \u2581\u2581a":
        ids = tok.encode(text)
        assert spaces in ids
        assert tok.is_canonical(ids)


def test_unknown_text_is_canonical(load_fixture: Load) -> None:
    """The unknown token can be spelled out in the text, or result from an unknown character."""
    tok = load_fixture("ugm")
    for text in ("\u0378a", "a\u0378b \u0378 c", "<unk>a"):
        for parse_special in (False, True):
            assert tok.is_canonical(tok.encode(text, parse_special=parse_special))
    unknown = tok.unk_id
    a = tok.encode("\u0378the", add_special=False)[-1]
    assert tok.is_canonical([*tok.encode("\u0378", add_special=False), a])
    assert not tok.is_canonical([unknown, a, unknown, unknown, a])  # type: ignore[list-item]


def test_is_canonical_checks_its_arguments(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    ids = tok.encode("Hello")
    for same in (ids, tuple(ids), iter(ids), np.array(ids), np.array(ids, np.uint16)):
        assert tok.is_canonical(same)
    for outside in ([680], [-1], [2**31 - 1], [*ids, 680]):
        assert not tok.is_canonical(outside)
    for wrong in ("text", None, [1.5], 3):
        with pytest.raises(ggtok.InvalidTypeError):
            tok.is_canonical(wrong)  # type: ignore[arg-type]
    assert ggtok.load(fixture("none")).is_canonical([])
    assert not ggtok.load(fixture("none")).is_canonical([0])
    test = load_fixture("test")
    assert test.is_canonical(range(test.n_tokens))  # some five bytes hash to each id
