"""Standard error (errors, warnings and hints, one line each) and exit statuses.

Warnings and hints are Python warnings, so ``--quiet`` and ``PYTHONWARNINGS`` apply to all of them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from ggtok.base.escape import number, printable
from ggtok.cli import standard_output
from ggtok.errors import GGTokError, VocabWarning

OK = 0
FINDING = 1  # the command succeeded and found a fault
ERROR = 2
INTERRUPTED = 128 + 2  # the exit status that shells report for SIGINT
BROKEN_PIPE = 128 + 13  # the same for SIGPIPE


class CommandWarning(UserWarning):
    """A warning about the result of a command that succeeds."""


class Hint(CommandWarning):
    """A warning that the user may have meant something else."""


class UsageError(Exception):
    """Raised if the command can't do what the command line asks for.

    Args:
        message: what is wrong.
        prog: the command whose ``--help`` may help.
    """

    def __init__(self, message: str, prog: str | None = None) -> None:
        super().__init__(message if prog is None else f"{message} (try '{prog} --help')")


# If there is a progress line, the function that removes it from the terminal.
clear_progress: Callable[[], None] | None = None


def clear_line() -> None:
    """Removes the progress line, if there is one."""
    if clear_progress is not None:
        clear_progress()


def say(kind: str, message: object) -> None:
    """Writes one line to standard error, if that is open."""
    line = printable(" ".join(str(message).split()))
    if sys.stderr is None:
        return
    with suppress(OSError):  # there is nowhere to report the error
        clear_line()
        sys.stderr.flush()
        sys.stderr.buffer.write(f"ggtok: {kind}: {line}\n".encode())
        sys.stderr.buffer.flush()


def warn(message: str) -> None:
    warnings.warn(message, CommandWarning, stacklevel=2)


def warn_of_files(kind: str, paths: Sequence[str], left_out: str, advice: str = "") -> None:
    """Warns once of all files of a kind that a command left out; `left_out` says so."""
    if paths:
        some = ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")
        warn(f"{number(len(paths), f'{kind} file')} {left_out}: {some}{advice and f' ({advice})'}")


def hint(message: str) -> None:
    warnings.warn(message, Hint, stacklevel=2)


@contextmanager
def warnings_as_lines(quiet: bool) -> Iterator[None]:
    """A context that shows warnings as lines on standard error: none if `quiet`, otherwise all of
    ggtok's, unless the user sets filters (``PYTHONWARNINGS``, ``python -W``)."""
    with warnings.catch_warnings():
        warnings.showwarning = _show
        if quiet:
            warnings.simplefilter("ignore")
        elif not sys.warnoptions:
            warnings.simplefilter("always", VocabWarning)
            warnings.simplefilter("always", CommandWarning)
        yield


def _show(message: Warning | str, category: type[Warning], *_: object, **_named: object) -> None:
    say("hint" if issubclass(category, Hint) else "warning", message)


# ---- errors ----


def report_errors(run: Callable[[], int]) -> int:
    """Calls `run`, reports an error as one line, and returns the exit status."""
    try:
        try:
            status = run()
        except SystemExit as e:  # raised by argparse after --help and --version
            status = int(e.code or OK)
        standard_output.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except standard_output.OutputError as e:
        standard_output.discard()
        if e.reader_is_gone:
            return BROKEN_PIPE
        say("error", e)
        return ERROR
    except (GGTokError, OSError, UsageError, Warning) as e:
        say("error", reason(e))
        return ERROR
    except MemoryError:
        say("error", "out of memory")
        return ERROR
    return status


def _missing_folder(path: str) -> str | None:
    """Returns the topmost folder of `path` that doesn't exist."""
    missing = None
    while (above := os.path.dirname(path)) not in ("", path) and not os.path.exists(above):
        missing = path = above
    return missing


def reason(error: BaseException) -> str:
    """Returns an error's message in the command's terms."""
    if isinstance(error, OSError) and error.strerror:
        if error.filename is None:
            return error.strerror
        name = os.fsdecode(error.filename)
        if isinstance(error, FileNotFoundError) and (folder := _missing_folder(name)):
            return f"{name}: the folder {folder} doesn't exist"
        return f"{name or repr(name)}: {error.strerror}"
    return str(error)
