"""No test compares times, because they depend on the machine and its load."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import settings

TESTS = Path(__file__).resolve().parent
CLOCK = re.compile(
    r"(?<!def )\b"
    r"(?:time\.time|monotonic|perf_counter|process_time|thread_time|getrusage|timeit)(?:_ns)?\b"
)
# Tests that name a clock, and why. (Commands such as tests/parity.py may print how long they ran.)
ALLOWED = {
    "checks/test_engines.py": "replaces the clock of the comparison",
    "cli/test_count.py": "replaces the clock of the command",
    "sources/test_cache.py": "makes an entry old",
    "sources/test_http.py": "makes a text that is new each time",
    "cli/test_progress.py": "replaces the clock of the command",
    "test_no_clocks.py": "this file",
}


def test_no_test_reads_a_clock() -> None:
    """Instead, tests wait with one generous limit (tests/support/waits.py), count work
    (tests/support/work.py), or repeat a signal until one arrives at the right time
    (tests/support/interrupts.py). Only tests/bench measures speed."""
    names = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if path.name.startswith(("test_", "conftest")) or path.parent.name == "support"
        if CLOCK.search(path.read_text("utf-8"))
    }
    assert names == set(ALLOWED)
    assert settings.default is not None and settings.default.deadline is None
