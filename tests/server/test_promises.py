"""Every number that docs/serving.md promises to bound is the code's, and has a test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ggtok.server import (
    application,
    bodies,
    connections,
    decoded,
    limits,
    replies,
    serving,
    vllm,
    workers,
)
from ggtok.server import native as native_module

ROOT = Path(__file__).resolve().parents[2]
SERVING = (ROOT / "docs" / "serving.md").read_text("utf-8")
MIB, KIB = 1 << 20, 1 << 10
SECTION = SERVING[SERVING.index("\n## Security\n") : SERVING.index("\n## Operation\n")]

# The page's words, the number in the code's unit, the code's number, and the test that reaches it.
PROMISES = {
    "A body has at most 16 MiB": (16 * MIB, application.MAX_BODY, "test_malformed_bodies"),
    "at most four times as much": (4, limits.TOTAL, "test_bodies_together_are_limited"),
    "a request's head has at most 32 KiB": (32 * KIB, connections.MOST_HEAD, "test_long_heads"),
    "head must arrive within 15 seconds": (15, connections.HEAD_SECONDS, "test_slow_requests"),
    "body within 30 seconds": (30, connections.BODY_SECONDS, "test_slow_requests"),
    "second for each 256 KiB": (256 * KIB, connections.BODY_RATE, "test_slow_but_steady_bodies"),
    "up to 80 times": (80, 80, "test_memory_of_answers"),
    "empty objects takes 40 times": (40, 40, "test_memory_of_answers"),
    "prose 8 times": (8, 8, "test_memory_of_answers"),
    "body of more than 1 MiB at a time": (MIB, limits.LARGE, "test_only_one_long_text"),
    "stays below 2.3 GiB": (2.3, 2.3, "tests.server.attack"),
    "An answer has at most 128 MiB": (128 * MIB, replies.MOST, "test_answers_that_are_too_long"),
    "have at most 256 MiB": (256 * MIB, connections.MOST_UNREAD, "test_many_bytes_that_are"),
    "refused with status 413 if it has more than 32 MiB": (
        32 * MIB, decoded.MOST, "test_long_texts_are_refused_before"
    ),
    "one text of more than 1 MiB is decoded": (MIB, decoded.LARGE, "test_only_one_long_text"),
    "at most 250,000 lists, objects and members of objects": (
        250_000, bodies.MOST_PARTS, "test_bodies_of_many_parts"
    ),
    "more get status 400": (400, 400, "test_bodies_of_many_parts"),
    "Bodies of up to 16 KiB": (16 * KIB, workers.SMALL, "test_small_requests_do_not_wait"),
    "has at most 262,144 characters": (
        262_144, vllm.LONGEST_TEMPLATE, "test_long_templates_of_requests_are_refused"
    ),
    "takes more than a second": (1, workers.CHECK_SECONDS, "test_a_file_that_can_not_be_checked"),
    "have together at most 32 KiB": (32 * KIB, connections.MOST_HEAD, "test_waiting_heads"),
    "for up to five seconds": (5, connections.LINGER_SECONDS, "test_refusals_can_be_read"),
    "at most 2,048 connections": (2048, connections.MOST_CONNECTIONS, "test_ten_thousand_idle"),
    "disconnected after 30 seconds": (30, connections.STUCK_SECONDS, "test_clients_that_do_not"),
}  # fmt: skip
ELSEWHERE = {
    "a batch has at most 100,000 texts": (100_000, native_module._MOST_TEXTS, "test_errors"),
    "at most 20,000 chunks": (20_000, native_module._MOST_CHUNKS, "test_errors"),
    "up to 64 separators": (64, native_module._MOST_SEPARATORS, "test_many_separators"),
    "a text to explain at most 4 KiB": (4 * KIB, native_module._MOST_EXPLAINED, "test_errors"),
    "up to eight seconds to finish": (8, serving.GRACE_SECONDS, "test_a_busy_thread"),
}


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("words", [*PROMISES, *ELSEWHERE])
def test_numbers_are_the_codes(words: str) -> None:
    number, code, test = {**PROMISES, **ELSEWHERE}[words]
    assert plain(words) in plain(SERVING)
    assert number == code
    named = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("*.py"))
    if test.startswith("test_"):
        assert f"def {test}" in named


def test_every_number_is_listed() -> None:
    left = plain(SECTION)
    for words in PROMISES:
        left = left.replace(plain(words), "")
    left = left.replace("more than 1 MiB", "").replace("status 413", "")
    assert not re.findall(r"\d[\d,.]*", left), left


MEMORY = """
import re, sys, warnings
warnings.simplefilter("ignore")
from starlette.testclient import TestClient
from ggtok import server
from ggtok.server.bodies import MOST_PARTS
from tests.support.vocabularies import fixture

path, data = {
    "words": ("/v1/ggtok/spans", b'{"text": "%s"}' % ("\U0001f9ff".encode() * (1 << 19))),
    "prose": ("/tokenize", b'{"content": "%s"}' % (b"Is the kettle on? " * (1 << 17))),
    "objects": ("/tokenize", b'{"content": [%s{}]}' % (b"{}," * (MOST_PARTS - 4))),
}[sys.argv[1]]
def peak():  # kB; ru_maxrss would include the parent's
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
with TestClient(server.app({"m": fixture("bpe-llama3")}), "http://127.0.0.1") as client:
    client.post(path, content=b'{"text": "Hi", "content": "Hi"}')
    before = peak()
    client.post(path, content=data)
    print((peak() - before) * 1024 / len(data))
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory as Linux reports it")
@pytest.mark.parametrize(("body", "most"), [("words", 80), ("objects", 40), ("prose", 8)])
def test_memory_of_answers(body: str, most: int) -> None:
    """The client in the same process keeps further copies of the body and of the answer."""
    command = [sys.executable, "-c", MEMORY, body]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert 0 < float(done.stdout) < most + 10, done.stdout
