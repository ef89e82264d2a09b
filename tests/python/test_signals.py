"""Signals whose handlers raise while a call is at work."""

from __future__ import annotations

import signal
import sys
import threading
from functools import partial

import pytest

import ggtok
from ggtok._native import splitting
from tests.support.patch import GGUF
from tests.support.timers import call_with_timer
from tests.support.vocabularies import fixture

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


class Stop(BaseException):
    pass


@posix
def test_a_signal_while_patterns_cut_words() -> None:
    """What its handler raises comes out of the call, and the tokenizer still works."""
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\w+|\W"])
    want = tok.encode("the kettle")

    def stop(number: int, frame: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for call in (tok.encode, tok.encode_array, tok.count):
            with pytest.raises(Stop):
                call_with_timer(partial(call, "the kettle " * 2_000_000), 0.1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert tok.encode("the kettle") == want


def test_a_signal_before_the_first_line_that_cuts_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes at any moment: here as the callback is entered."""
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\w+|\W"])
    want = tok.encode("the kettle")

    class Interrupted:
        def __call__(self, *args: object) -> int:
            raise Stop

    monkeypatch.setattr(splitting.Splitter, "__call__", Interrupted.__call__)
    for call in (tok.encode, tok.encode_array, tok.count):
        with pytest.raises(Stop):
            call("the kettle")
    monkeypatch.undo()
    assert tok.encode("the kettle") == want


def test_what_failed_in_a_call_that_a_signal_ended_is_forgotten() -> None:
    """The failure of a pattern, which that call did not get to raise."""
    gguf = GGUF.read(fixture("bpe-gemma4"))
    gguf.remove("tokenizer.ggml.bos_token_id")
    tok = ggtok.load(gguf.dump(), pre_patterns=[r"\w+|\W"])
    assert tok._native._splitter is not None
    for call in (tok.encode, tok.count, lambda text: tok.encode_batch([text])):
        tok._native._splitter.failed[threading.get_ident()] = Stop()
        with pytest.raises(ggtok.VocabError, match="BOS"):
            call("the kettle")


@posix
@pytest.mark.parametrize(
    "error", [TypeError("stop"), UnicodeEncodeError("utf-8", "x", 0, 1, "stop")], ids=repr
)
def test_a_signal_whose_handler_raises_what_unreadable_texts_do(error: Exception) -> None:
    """It comes out all the same: the texts are fine."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    text = "the kettle " * 2_000_000  # made before the clock runs
    batch = [text[: len(text) // 20]] * 500

    def stop(number: int, frame: object) -> None:
        raise error from ZeroDivisionError()

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for call in (
            lambda: tok.encode(text),
            lambda: tok.encode_batch(batch, threads=1),
        ):
            with pytest.raises(type(error)) as caught:
                call_with_timer(call, 0.01)
            assert caught.value is error
            assert isinstance(error.__cause__, ZeroDivisionError)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_context_on_loan_comes_back_however_the_loan_ends() -> None:
    """A signal handler may raise before the caller has so much as a name for it."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    tok.encode("the kettle")
    at_rest = tok.cache_info()
    assert at_rest.currsize
    loan = tok._native.take()
    assert not tok.cache_info().currsize
    del loan
    assert tok.cache_info() == at_rest
    loan = tok._native.take()
    del tok
    del loan  # which kept the tokenizer alive
