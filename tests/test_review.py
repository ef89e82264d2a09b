"""What reviews found: each row was a fault once."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from array import array
from pathlib import Path

import pytest

import ggtok
from tests.patch import GGUF
from tests.vocabularies import fixture


def test_a_token_of_unknown_bytes_is_not_squared(tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    tokens = gguf.strings("tokenizer.ggml.tokens")
    tokens[5] = b" " * 200_000  # a space stands for no byte: each prints as the whole text
    gguf.set("tokenizer.ggml.tokens", tokens)
    gguf.write(tmp_path / "squared.gguf")
    with pytest.raises(ggtok.VocabError, match="token 5 prints as far too many bytes"):
        ggtok.load(tmp_path / "squared.gguf")


def test_control_characters_of_a_file_stay_out_of_messages(tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("tokenizer.ggml.model", "\x1b]0;x\x07\x1b[2J")
    gguf.write(tmp_path / "escape.gguf")
    with pytest.raises(ggtok.VocabError) as caught:
        ggtok.load(tmp_path / "escape.gguf")
    assert str(caught.value).isprintable()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")
def test_a_pipe_is_called_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        ggtok.load(tmp_path / "pipe")


def test_ids_of_any_integer_array() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    ids = tok.encode("any array")
    assert tok.decode((ctypes.c_int * len(ids))(*ids)) == "any array"
    assert tok.decode(array("q", ids)) == "any array"
    view = memoryview(array("i", ids))
    view.release()
    with pytest.raises(ggtok.InvalidValueError):
        tok.decode(view)


@pytest.mark.parametrize("errors", ["no-such-handler", "xmlcharrefreplace", "a\0"])
def test_errors_that_is_no_handler(errors: str) -> None:
    tok = ggtok.load(fixture("spm-bytes"))
    byte = tok.text_to_token("<0xFF>")
    assert byte is not None
    with pytest.raises(ggtok.InvalidValueError, match="errors"):
        tok.decode([byte], errors=errors)


def test_a_path_that_no_file_can_have() -> None:
    with pytest.raises(ggtok.InvalidValueError):
        ggtok.load("\ud800")


def test_memory_that_changes_while_it_is_read() -> None:
    """Writable memory is copied, so what another thread does to it can't hurt."""
    tok = ggtok.load(fixture("bpe-llama3"))
    text = bytearray(b"some words, " * 20_000)
    ids = array("i", [5]) * 200_000
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            text[-1], ids[-1] = 0xF0, 2_000_000_000
            text[-1], ids[-1] = 0x20, 5

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        for _ in range(20):
            assert tok.count(text) > 10_000
            with contextlib.suppress(ggtok.TokenIdError):
                tok.decode_bytes(ids)
    finally:
        stop.set()
        thread.join()
