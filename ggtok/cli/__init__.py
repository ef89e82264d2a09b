"""The command ``ggtok``.

Each command has a module, and a row in the table in :mod:`ggtok.cli.commands`. All commands share
:mod:`~ggtok.cli.parser`, :mod:`~ggtok.cli.shared_options` (options, loading the model),
:mod:`~ggtok.cli.input_texts`, :mod:`~ggtok.cli.standard_output`, :mod:`~ggtok.cli.progress` and
:mod:`~ggtok.cli.messages` (warnings, errors, exit statuses). Only the module of the command
that runs is imported.

All output goes to standard output as UTF-8, on every platform. An error is one line on standard
error, with exit status 2.
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
    return messages.report_errors(lambda: commands.run_command_line(arguments))


def entry_point() -> NoReturn:
    """Runs the command as the console script ``ggtok``."""
    try:
        _open_descriptors()
        code = main()
    except KeyboardInterrupt:  # raised before or after main's own handler
        code = messages.INTERRUPTED
    sys.exit(code)


def _open_descriptors() -> None:
    """Opens /dev/null for each closed standard stream, so that no other file gets its descriptor.
    Python still treats the stream as closed."""
    for number in 0, 1, 2:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
