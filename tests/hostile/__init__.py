"""Hostile input: files, texts and surroundings that mean ggtok harm. See __main__.py."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# How a child process finds these tests, and the ggtok that is installed: the one beside them
# may have no compiled module.
TESTS = f"import sys; sys.path.append({str(ROOT)!r})"
