"""How much memory a process has had.

Not `ru_maxrss`: Linux hands a parent's down to the programs it starts.
"""

from __future__ import annotations

from pathlib import Path


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    raise KeyError(key)


def peak() -> int:
    """The most that this process has had in memory, kB; Linux alone tells."""
    return _status("VmHWM:")


def resident() -> int:
    """What this process has in memory now, kB; Linux alone tells."""
    return _status("VmRSS:")
