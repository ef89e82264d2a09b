"""Lists of ids: no other code ever sees an incomplete list."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.vocabularies import fixture


def _run(script: str) -> tuple[str, str, int]:
    command = [sys.executable, "-c", script, str(fixture("bpe-llama3"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, done.stderr, done.returncode


_SCRIPT = """
import gc, sys
import ggtok
tok = ggtok.load(sys.argv[1])
for n in (0, 1, 2, 33, 5000, 1_200_000):
    text = ("Hello, wörld " * (n // 13 + 1))[:n]
    ids = tok.encode(text)
    assert type(ids) is list and ids == tok.encode_array(text).tolist()
    assert gc.is_tracked(ids)
    assert tok.encode_batch([text, "", text]) == [ids, tok.encode(""), ids]
    ids.append(5), ids.pop(0), ids.extend(ids)
kept = max(tok.encode("Hello, world"))
assert kept > 256  # CPython doesn't count references to small ints
count = sys.getrefcount(kept)
lists = [tok.encode("Hello, world") for _ in range(100)]
assert sys.getrefcount(kept) == count + 100 * lists[0].count(kept)
del lists
gc.collect()
assert sys.getrefcount(kept) == count
print("ok")
"""


def test_lists_hold_one_reference_for_each_id() -> None:
    assert _run(_SCRIPT) == ("ok\n", "", 0)


# Reads every list and tuple that the collector tracks: a null item would crash the process.
_READ_ALL = """
import gc, signal, sys
import ggtok
tok = ggtok.load(sys.argv[1])
runs = 0

def read_all(*_):
    global runs
    runs += 1
    for found in gc.get_objects():
        if type(found) in (list, tuple):
            for _ in found:
                pass
"""
_IN_A_HANDLER = """
def handle(*_):
    read_all()
    signal.setitimer(signal.ITIMER_REAL, 1e-3)  # the next signal

ids = tok.encode("Hello, world " * 400_000)  # creates the int objects
signal.signal(signal.SIGALRM, handle)
handle()
while runs < 8:
    assert tok.encode("Hello, world " * 400_000) == ids
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print("ok")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_signal_handler_sees_full_lists_only() -> None:
    assert _run(_READ_ALL + _IN_A_HANDLER) == ("ok\n", "", 0)


# Up to CPython 3.11, creating an object may run the collector and its callbacks.
_IN_A_COLLECTION = """
template = "{% for m in messages %}<|eot_id|>{{ m.role }}{{ m.content }}{% endfor %}"
chat = [{"role": "user", "content": f"{i}"} for i in range(120)]
odd = [{"role": "user", "content": [{"type": "text", "text": "a"}]} for i in range(120)]
options = {"template": template, "add_generation_prompt": False}
texts = [f"kettle {i}" for i in range(120)]
calls = {
    "encode_batch": lambda: tok.encode_batch(texts),
    "encode_batch_with_offsets": lambda: tok.encode_batch_with_offsets(texts),
    "parts": lambda: tok._loaded.encode_parts("<|eot_id|>a" * 120, 2, [(0, 1320)]),
    "a chat": lambda: tok.encode_chat(chat, **options),
    "an irregular chat": lambda: tok.encode_chat(odd, **options),
    "chats": lambda: tok.encode_chat_batch([chat[:2]] * 120, **options),
    "train": lambda: ggtok.train([text.encode() * 9 for text in texts], 400),
}
for call in calls.values():
    call()
gc.callbacks.append(read_all)
gc.set_threshold(40)
for name, call in calls.items():
    call()
gc.callbacks.clear()
assert runs > 10
print("ok")
"""


def test_a_collection_sees_full_lists_only() -> None:
    assert _run(_READ_ALL + _IN_A_COLLECTION) == ("ok\n", "", 0)
