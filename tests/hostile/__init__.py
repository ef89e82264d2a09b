"""Hostile input: files, texts and file systems that try to harm ggtok. See __main__.py."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The first line of a child process's code: makes the tests importable. The checkout comes last in
# sys.path, because its ggtok may lack the compiled module: the installed ggtok takes precedence.
TESTS = f"import sys; sys.path.append({str(ROOT)!r})"
