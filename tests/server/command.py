"""Runs ``ggtok serve`` in a child process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Served:
    """A running command. Its standard error goes to a file, since an unread pipe would fill up."""

    def __init__(self, arguments: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ggtok", "serve", *arguments],
                stderr=file,
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                env={**os.environ, **environment},
            )

    def text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def lines(self) -> list[dict[str, Any]]:
        """Returns the log's lines, parsed as JSON."""
        return [json.loads(line) for line in self.text().splitlines() if line.startswith("{")]

    @property
    def url(self) -> str:
        found = re.search(r"http://\S+", self.text())
        return found[0] if found else ""

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def serving(
    arguments: Sequence[str | Path], log: Path, environment: dict[str, str] | None = None
) -> Iterator[Served]:
    from tests.support import waits

    made = Served([*map(str, arguments), "--port", "0"], log, environment or {})
    try:
        waits.until(lambda: made.url or made.process.poll() is not None)
        assert made.url, made.text()
        yield made
    finally:
        made.stop()
