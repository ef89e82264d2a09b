"""Standard error: errors, warnings and hints, one line each.

Whatever is not an error is a Python warning, so that one set of filters
(``--quiet``, ``PYTHONWARNINGS``) holds for all.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ggtok.base.escape import shown
from ggtok.errors import VocabWarning


class CommandWarning(UserWarning):
    """The command did its work, but something about it should be known."""


class Hint(CommandWarning):
    """What was asked for is perhaps not what was meant."""


# Removes the line of progress that the terminal shows, if any.
clear_progress: Callable[[], None] | None = None


def say(kind: str, message: object) -> None:
    """One line on standard error, if there is one."""
    line = shown(" ".join(str(message).split()))
    if sys.stderr is None:
        return
    with suppress(OSError):  # nowhere is left to say so
        if clear_progress is not None:
            clear_progress()
        sys.stderr.flush()
        sys.stderr.buffer.write(f"ggtok: {kind}: {line}\n".encode())
        sys.stderr.buffer.flush()


def warn(message: str) -> None:
    warnings.warn(message, CommandWarning, stacklevel=2)


def hint(message: str) -> None:
    warnings.warn(message, Hint, stacklevel=2)


@contextmanager
def warnings_as_lines(quiet: bool) -> Iterator[None]:
    """Within it, warnings are lines of standard error: all of ggtok's, unless the user's filters
    (``PYTHONWARNINGS``, ``python -W``) say otherwise; none if `quiet`."""
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
