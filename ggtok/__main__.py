"""Runs the command: ``python -m ggtok``."""

from ggtok.cli import entry_point

entry_point()
