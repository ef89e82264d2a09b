"""The command ``ggtok``.

One module for each command, one row for it in :mod:`ggtok.cli.commands`. What they
share: :mod:`~ggtok.cli.arguments` (options, loading the model),
:mod:`~ggtok.cli.reading`, :mod:`~ggtok.cli.writing`, :mod:`~ggtok.cli.messages`
(warnings, hints) and :mod:`~ggtok.cli.status` (errors and exit statuses). Only the
module of the command that runs is imported.

All output is bytes on standard output, UTF-8 on every platform. Errors are one
line on standard error and exit status 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ggtok.cli import commands, status

__all__ = ["entry_point", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (default: the program's own); gives the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    return status.guarded(lambda: commands.run(arguments))


def entry_point() -> NoReturn:
    """The console script."""
    try:
        _open_descriptors()
        code = main()
    except KeyboardInterrupt:  # before or after main guards itself
        code = status.INTERRUPTED
    sys.exit(code)


def _open_descriptors() -> None:
    """Opens those of standard input, output and error that are closed, so that no other file
    gets their numbers. For Python they stay closed."""
    for number in 0, 1, 2:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
