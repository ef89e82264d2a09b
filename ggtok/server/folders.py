"""A folder whose .gguf files are models. New files appear without a restart."""

from __future__ import annotations

import os
import time
from math import inf

SCAN_SECONDS = 1.0  # between two scans


class ServedFolder:
    """A folder of models.

    Attributes:
        scanned: when the last scan began, or the last request waited for it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.scanned = -inf

    def is_due(self) -> bool:
        return time.monotonic() - self.scanned >= SCAN_SECONDS

    def postpone(self) -> None:
        self.scanned = time.monotonic()

    def gguf_files(self) -> list[str]:
        """Returns the paths of the .gguf files, by name. Raises OSError."""
        names = sorted(name for name in os.listdir(self.path) if name.lower().endswith(".gguf"))
        paths = [os.path.join(self.path, name) for name in names]
        return [path for path in paths if os.path.isfile(path)]
