"""token_counter: a function that counts tokens, for other libraries."""

from __future__ import annotations

import inspect
import pickle

import pytest

import ggtok
from ggtok import adapters
from tests.support.vocabularies import fixture

TEXT = "Zoë <|eot_id|> counts"


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-llama3"))


@pytest.mark.parametrize("add_special", [False, True])
def test_counts_the_ids_of_encode(tok: ggtok.Tokenizer, add_special: bool) -> None:
    count = adapters.counter(tok, add_special=add_special)
    ids = tok.encode(TEXT, add_special=add_special)
    assert tok.eot_id not in ids
    assert (count(TEXT), count.encode(TEXT)) == (len(ids), ids)
    assert count.decode(ids) == TEXT
    unpickled = pickle.loads(pickle.dumps(count))
    assert unpickled(TEXT) == count(TEXT)
    assert repr(count) == f"<ggtok counter of {tok!r}, add_special={add_special}>"


def test_has_one_parameter_and_a_name(tok: ggtok.Tokenizer) -> None:
    """duckdb and semchunk inspect how many parameters the function has; other libraries print its
    name."""
    count = adapters.counter(tok)
    signature = inspect.signature(count)
    assert [str(p) for p in signature.parameters.values()] == ["text: 'str'"]
    assert count.__name__ == "count_tokens"
    assert not count("")


def test_wrong_arguments_raise_errors(tok: ggtok.Tokenizer) -> None:
    with pytest.raises(ggtok.InvalidTypeError, match=r"must be a ggtok\.Tokenizer, not str"):
        adapters.counter("model.gguf")  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidTypeError, match="add_special"):
        adapters.counter(tok, add_special=1)  # type: ignore[arg-type]
