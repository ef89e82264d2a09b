"""Runs a command on a terminal of a chosen size."""

from __future__ import annotations

import os
import select
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path


def on_terminal(
    argv: Sequence[str],
    cwd: Path,
    *,
    columns: int = 80,
    stdin: bytes = b"",
    typed: bytes | None = None,
    **env: str,
) -> bytes:
    """Returns what the command writes to the terminal, including standard error. Its standard input
    is the terminal if `typed` is passed, else a pipe."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if typed is None else theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env={**os.environ, "TERM": "xterm", **env},
    )
    os.close(theirs)
    if typed is not None:
        os.write(ours, typed)
    elif process.stdin is not None:
        process.stdin.write(stdin)
        process.stdin.close()
    written = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # the process closed the terminal
            break
        if not block:
            break
        written += block
    os.close(ours)
    assert process.wait(60) == 0
    return written.replace(b"\r\n", b"\n")
