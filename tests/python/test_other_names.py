"""Names of other libraries: errors say what to use."""

from __future__ import annotations

import copy
import pickle

import pytest

import ggtok
from ggtok.tokenizer import _OTHER_NAMES
from tests.support.vocabularies import fixture


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-llama3"))


@pytest.mark.parametrize(("name", "hint"), _OTHER_NAMES.items())
def test_the_error_says_what_to_use(tok: ggtok.Tokenizer, name: str, hint: str) -> None:
    assert not hasattr(tok, name)
    with pytest.raises(AttributeError) as e:
        getattr(tok, name)
    assert str(e.value) == f"'Tokenizer' object has no attribute {name!r}: use {hint}"
    assert (e.value.name, e.value.obj) == (name, tok)
    assert hasattr(tok, hint.partition("(")[0].partition(",")[0])


def test_unknown_names_are_errors_without_a_hint(tok: ggtok.Tokenizer) -> None:
    with pytest.raises(AttributeError, match=r"^'Tokenizer' object has no attribute 'frobnicate'$"):
        tok.frobnicate  # type: ignore[attr-defined]  # noqa: B018
    for same in copy.copy(tok), pickle.loads(pickle.dumps(tok)):
        assert same.encode("Hi") == tok.encode("Hi")


@pytest.mark.parametrize("name", ggtok._OTHER_NAMES)
def test_names_that_load_say_what_to_use(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}': use ggtok.load\("):
        getattr(ggtok, name)
    with pytest.raises(AttributeError, match=r"no attribute 'frobnicate'$"):
        ggtok.frobnicate  # type: ignore[attr-defined]  # noqa: B018


def test_dir_has_the_public_names() -> None:
    assert dir(ggtok) == sorted(ggtok.__all__)
    assert {"load", "Tokenizer", "train", "doctor", "errors"} - {*dir(ggtok)} == {"errors"}
