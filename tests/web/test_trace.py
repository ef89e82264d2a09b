"""The steps that the JavaScript package reports, compared with the Python package's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

import ggtok
from ggtok.inspect.parity.texts import BROKEN
from tests.support.samples import thinned, times
from tests.support.vocabularies import INP_OUT, fixture, fixture_names, inp_out, real
from tests.web import compare
from tests.web.hosts import JsError, Node, Tokenizer

NAMES = [name for name in fixture_names() if name != "none"]
OPTIONS = (
    ({}, {}),
    (
        {"addSpecial": False, "parseSpecial": True},
        {"add_special": False, "parse_special": True},
    ),
)
WHOLE = ("text", "vocab_type", "model", "pre")  # fields that the caller already has

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


def comparable(trace: Any) -> Any:
    """Returns a trace in a comparable form, without the tokens' spans. NaN equals itself, and -0.0
    isn't 0.0."""
    if isinstance(trace, dict):
        items = {key: comparable(value) for key, value in trace.items()}
        if "how" in items:
            del items["begin"], items["end"]
        return items
    if isinstance(trace, list):
        return [comparable(item) for item in trace]
    is_number = isinstance(trace, (int, float)) and not isinstance(trace, bool)
    return repr(float(trace)) if is_number else trace


def tokens_of(trace: Any) -> Iterator[Any]:
    yield from trace["before"]
    for fragment in trace["fragments"]:
        if fragment["special"]:
            yield fragment["special"]
        for word in fragment["words"]:
            yield from word["tokens"]
    yield from trace["after"]


def _python(trace: Any) -> Any:
    """Returns the Python package's trace with the JavaScript package's field names."""
    if isinstance(trace, dict):
        found = {key: _python(value) for key, value in trace.items()}
        return {**found, "begin": 0, "end": 0} if "how" in found else found
    return list(map(_python, trace)) if isinstance(trace, list) else trace


def compare_traces(tok: ggtok.Tokenizer, js: Tokenizer, texts: list[bytes]) -> None:
    for theirs, ours in OPTIONS:
        found = js.each("trace", [(text, theirs) for text in texts])
        for text, trace in zip(texts, found, strict=True):
            expected = _python(asdict(tok.explain(text, **ours)))
            for name in WHOLE:
                del expected[name]
            assert comparable(trace) == comparable(expected), text
            ids, spans = tok.encode_with_offsets(text, **ours)
            shown = list(tokens_of(trace))
            assert [token["id"] for token in shown] == ids
            assert [[token["begin"], token["end"]] for token in shown] == spans.tolist(), text


def compare_trees(tok: ggtok.Tokenizer, js: Tokenizer, ids: range) -> None:
    for id, tree in zip(ids, js.each("traceToken", [(id,) for id in ids]), strict=True):
        expected = _python(asdict(tok.merge_tree(id)))
        assert expected.pop("id") == id
        split = [note for note in expected["notes"] if "it is split by" in note]
        assert bool(split) == bool(tree.pop("words"))
        expected["notes"] = [note for note in expected["notes"] if note not in split]
        assert comparable(tree) == comparable(expected), id


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_explain(node: Node, name: str) -> None:
    tok, js = ggtok.load(fixture(name)), Tokenizer(node, fixture(name))
    texts = [text[:400] for text in thinned(compare.texts(tok, times(15, 60)))]
    compare_traces(tok, js, [*texts, b" a".join(BROKEN), b""])
    if tok.vocab_type in ("BPE", "SPM"):
        compare_trees(tok, js, thinned(range(0, tok.n_tokens, times(19, 3))))


@pytest.mark.full
@pytest.mark.parametrize("name", INP_OUT)
def test_steps_are_those_of_explain_with_real_vocabularies(node: Node, name: str) -> None:
    tok, js = ggtok.load(real(name)), Tokenizer(node, real(name))
    compare_traces(tok, js, inp_out(name)[0])
    if tok.vocab_type in ("BPE", "SPM"):
        compare_trees(tok, js, range(0, tok.n_tokens, tok.n_tokens // 100))
    js.free()


def test_texts_and_tokens_without_a_trace_are_refused(node: Node) -> None:
    js = Tokenizer(node, fixture("wpm"))
    with pytest.raises(JsError, match="at most 16384 can be traced"):
        js.trace("a" * 16385)
    with pytest.raises(JsError, match="has no merges") as refused:
        js.traceToken(5)
    assert refused.value.name == "UnsupportedError"
    with pytest.raises(JsError, match="not in the vocabulary"):
        js.traceToken(-1)


def test_a_worker_returns_the_same_steps(node: Node) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    js = Tokenizer(node, fixture("bpe-llama3").read_bytes(), worker=True)
    assert js.trace(" there")["ids"] == tok.encode(" there")
    assert js.traceToken(330)["reached"]
