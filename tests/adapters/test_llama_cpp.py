"""Compares LlamaCppTokenizer with the behavior of llama-cpp-python, on the reference build."""

from __future__ import annotations

import abc
import random
import sys
import types

import pytest

import ggtok
from ggtok.adapters import LlamaCppTokenizer
from tests.support.llamacpp import LlamaCpp
from tests.support.vocabularies import fixture, real, reference_names

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
# The reference doesn't load the fixture "big-endian", and aborts on "none".
NAMES = [name for name in reference_names() if name not in ("big-endian", "none")]
TEXTS = [b"", b"Hello, world", "Zoë 日本 <|eot_id|></s>".encode(), b"  a  b\n", b"<s> x"]
TEXTS += [b"caf\xc3\xa9 \xff"]


@pytest.mark.parametrize("name", [*NAMES, "llama-bpe", "llama-spm"])
def test_results_equal_llama_cpp_pythons(llama: LlamaCpp, name: str) -> None:
    """The results are those of llama-cpp-python's _internals.LlamaModel: tokenize is
    llama_tokenize; detokenize joins pieces, and removes a space after BOS."""
    path = fixture(name) if name in NAMES else real(name)
    vocab, tok = llama.load(path), ggtok.load(path)
    own = LlamaCppTokenizer(tok)
    for text in TEXTS:
        for bos in (False, True):
            for special in (False, True):
                want = vocab.tokenize(text, add_special=bos, parse_special=special)
                assert own.tokenize(text, bos, special) == list(want)
    pieces = {special: vocab.pieces(special) for special in (False, True)}
    rng = random.Random(name)
    for _ in range(40):
        ids = [rng.randrange(tok.n_tokens) for _ in range(rng.randrange(6))]
        ids = ids if tok.bos_id is None or rng.random() < 0.6 else [tok.bos_id, *ids]
        for special in (False, True):
            want_text = b"".join(pieces[special][id] for id in ids)
            if ids and ids[0] == tok.bos_id and want_text[:1] == b" ":
                want_text = want_text[1:]
            assert own.detokenize(ids, special=special) == want_text
            assert own.detokenize(ids, [1, 2], special) == want_text


def test_encode_and_decode_take_strings_and_wrong_ids_raise_errors() -> None:
    tok = ggtok.load(fixture("spm-bytes"))
    own = LlamaCppTokenizer(tok)
    assert own.encode("Zoë \ud800!") == tok.encode("Zoë !", parse_special=True)
    assert own.encode("Hello", False, False) == tok.encode("Hello", add_special=False)
    assert own.decode(own.encode("Zoë, world")) == "Zoë, world"
    half = own.tokenize("x\u0416".encode(), add_bos=False)[:-1]
    assert own.decode(half) == "x"
    for ids in ([tok.n_tokens], [-1]):
        with pytest.raises(ggtok.TokenIdError):
            own.detokenize(ids)
    with pytest.raises(ggtok.InvalidTypeError, match="a token must be an integer, not str"):
        own.detokenize("text")  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidTypeError, match=r"must be a ggtok\.Tokenizer, not NoneType"):
        LlamaCppTokenizer(None)  # type: ignore[arg-type]


def test_is_an_instance_of_its_base_class(monkeypatch: pytest.MonkeyPatch) -> None:
    class BaseLlamaTokenizer(abc.ABC):
        @abc.abstractmethod
        def tokenize(self) -> list[int]: ...

    module = types.ModuleType("llama_cpp.llama_tokenizer")
    module.BaseLlamaTokenizer = BaseLlamaTokenizer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    own = LlamaCppTokenizer(ggtok.load(fixture("bpe-llama3")))
    assert isinstance(own, BaseLlamaTokenizer)
