"""The command ``ggtok``.

Each command has a module, and a row in the table of :mod:`ggtok.cli.commands`. They share
:mod:`~ggtok.cli.parser`, :mod:`~ggtok.cli.arguments` (options, loading the model),
:mod:`~ggtok.cli.reading`, :mod:`~ggtok.cli.writing`, :mod:`~ggtok.cli.progress` and
:mod:`~ggtok.cli.messages` (warnings, errors, exit statuses). Only the module of the command
that runs is imported.

All output is bytes on standard output, UTF-8 on every platform. An error is one line on
standard error, with exit status 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ggtok.cli import commands, messages

__all__ = ["entry_point", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (default: ``sys.argv``), and returns the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    return messages.guarded(lambda: commands.run(arguments))


def entry_point() -> NoReturn:
    """The console script."""
    try:
        _open_descriptors()
        code = main()
    except KeyboardInterrupt:  # outside the guard in main
        code = messages.INTERRUPTED
    sys.exit(code)


def _open_descriptors() -> None:
    """Opens /dev/null as each standard stream that is closed, so that no other file gets its
    number. Python still treats the stream as closed."""
    for number in 0, 1, 2:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
