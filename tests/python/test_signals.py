"""Signals whose handlers raise an exception during a call."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

import ggtok
from ggtok.native import native_tokenizer
from tests.support.interrupts import posix, stop_midway
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture


class Stop(BaseException):
    pass


@posix
def test_a_signal_while_patterns_cut_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler's exception propagates from the call, and the tokenizer still works."""
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\w+|\W"])
    want = tok.encode("the kettle")
    splitter = tok._loaded._splitter
    assert splitter is not None
    split = splitter.split

    def interrupted(text: bytes) -> list[int]:
        signal.raise_signal(signal.SIGALRM)
        return split(text)

    def stop(number: int, frame: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    monkeypatch.setattr(splitter, "split", interrupted)
    try:
        for call in (tok.encode, tok.encode_array, tok.count):
            with pytest.raises(Stop):
                call("the kettle")
    finally:
        signal.signal(signal.SIGALRM, before)
    monkeypatch.undo()
    assert tok.encode("the kettle") == want


def test_a_signal_before_the_first_line_that_cuts_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal may arrive at any moment: here, when the callback is entered."""
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\w+|\W"])
    want = tok.encode("the kettle")

    class Interrupted:
        def __call__(self, *args: object) -> int:
            raise Stop

    monkeypatch.setattr(native_tokenizer.Splitter, "__call__", Interrupted.__call__)
    for call in (tok.encode, tok.encode_array, tok.count):
        with pytest.raises(Stop):
            call("the kettle")
    monkeypatch.undo()
    assert tok.encode("the kettle") == want


def test_a_failure_in_an_interrupted_call_is_forgotten() -> None:
    """If an interrupted call couldn't raise a pattern's exception, the next call doesn't raise
    it."""
    gguf = GGUF.read(fixture("bpe-gemma4"))
    gguf.remove("tokenizer.ggml.bos_token_id")
    tok = ggtok.load(gguf.dump(), pre_patterns=[r"\w+|\W"])
    assert tok._loaded._splitter is not None
    for call in (tok.encode, tok.count, lambda text: tok.encode_batch([text])):
        tok._loaded._splitter.failed[threading.get_ident()] = Stop()
        with pytest.raises(ggtok.VocabError, match="BOS"):
            call("the kettle")


@posix
@pytest.mark.parametrize(
    "error", [TypeError("stop"), UnicodeEncodeError("utf-8", "x", 0, 1, "stop")], ids=repr
)
def test_a_signal_whose_handler_raises_the_exception_of_faulty_texts(error: Exception) -> None:
    """The handler's exception propagates unchanged: it isn't mistaken for an error in the texts."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    error.__cause__ = ZeroDivisionError()

    def one(n: int) -> Callable[[], object]:
        text = "the kettle " * (200_000 * n)
        return lambda: tok.encode(text)

    def batch(n: int) -> Callable[[], object]:
        texts = ["the kettle " * 10_000] * (20 * n)
        return lambda: tok.encode_batch(texts, threads=1)

    for prepare in (one, batch):
        stop_midway(tok, prepare, error)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_borrowed_context_is_always_returned() -> None:
    """A context is returned even if a signal handler raises before the caller has stored it in a
    variable."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    tok.encode("the kettle")
    at_rest = tok.cache_info()
    assert at_rest.currsize
    loan = tok._loaded.take()
    assert not tok.cache_info().currsize
    del loan
    assert tok.cache_info() == at_rest
    loan = tok._loaded.take()
    del tok
    del loan  # the loan kept the tokenizer alive
