"""Lists of ids: stored where a list has its items, or by calls in an unknown interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.vocabularies import fixture

_SCRIPT = """
import gc, sys
{before}
import ggtok
tok = ggtok.load(sys.argv[1])
for n in (0, 1, 2, 33, 5000, 1_200_000):
    text = ("Hello, wörld " * (n // 13 + 1))[:n]
    ids = tok.encode(text)
    assert type(ids) is list and ids == tok.encode_array(text).tolist()
    assert not ids or sys.getsizeof(ids) >= sys.getsizeof([]) + 8 * len(ids)
    assert tok.encode_batch([text, "", text]) == [ids, [], ids]
    ids.append(5), ids.pop(0), ids.extend(ids)
kept = max(tok.encode("Hello, world"))
assert kept > 256  # of smaller ints references aren't counted
count = sys.getrefcount(kept)
lists = [tok.encode("Hello, world") for _ in range(100)]
assert sys.getrefcount(kept) == count + 100 * lists[0].count(kept)
del lists
gc.collect()
assert sys.getrefcount(kept) == count
print("ok")
"""


@pytest.mark.parametrize(
    "before",
    [
        "",
        "sys.hexversion = 0x040000f0",
        "sys.hexversion = None",
        "sys.implementation.name = 'another'",
        "sys.implementation.name = 7",
    ],
)
def test_in_any_interpreter(before: str) -> None:
    command = [sys.executable, "-c", _SCRIPT.format(before=before), str(fixture("bpe-gpt2"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("ok\n", "", 0)


_HOOK = """
import gc, sys
import ggtok
tok = ggtok.load(sys.argv[1])
text = "Hello, wörld " * 3000
ids = tok.encode_array(text).tolist()
n = len(ids)

class Implementation:
    asked = 0
    @property
    def name(self):
        Implementation.asked += 1
        for found in gc.get_objects():
            if type(found) is list and len(found) == n and found is not ids:
                del found[8:]
        if Implementation.asked == 1:
            raise KeyboardInterrupt
        return "cpython"

sys.implementation = Implementation()
try:
    tok.encode(text)
except KeyboardInterrupt:
    print("interrupted")
assert tok.encode(text) == ids
assert tok.encode(text) == ids
print("ok", Implementation.asked)
"""


def test_what_the_interpreter_is_asked_may_run_code() -> None:
    """It sees no list that is being made, and what it raises isn't lost."""
    command = [sys.executable, "-c", _HOOK, str(fixture("bpe-gpt2"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\nok 2\n", "", 0)
