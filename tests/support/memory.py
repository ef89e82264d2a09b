"""The memory of this process, on Linux.

`ru_maxrss` is unsuitable: on Linux, a program inherits its parent's peak.
"""

from __future__ import annotations

from pathlib import Path


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    raise KeyError(key)


def peak() -> int:
    """Returns the peak resident memory of this process, in kB."""
    return _status("VmHWM:")


def resident() -> int:
    """Returns the resident memory of this process, in kB."""
    return _status("VmRSS:")
