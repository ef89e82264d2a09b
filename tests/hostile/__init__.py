"""Hostile input: files, texts and surroundings that try to harm ggtok. See __main__.py."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Lets a child process import these tests, but the installed ggtok: the copy in this folder may lack
# its compiled module.
TESTS = f"import sys; sys.path.append({str(ROOT)!r})"
