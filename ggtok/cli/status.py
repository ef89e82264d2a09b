"""How a command ends: exit statuses, and errors as one line on standard error."""

from __future__ import annotations

import os
from collections.abc import Callable

from ggtok.cli import messages, writing
from ggtok.errors import (
    Argument,
    ForPython,
    GGTokError,
    TextEncodeError,
    UnknownPreTokenizerError,
    Wording,
)

OK = 0
FINDING = 1  # the command did its work, and something is wrong with what it was given
ERROR = 2
INTERRUPTED = 128 + 2  # SIGINT, as shells count
BROKEN_PIPE = 128 + 13  # SIGPIPE


class UsageError(Exception):
    """A command line that can't be carried out, in words for whoever wrote it.

    Args:
        message: what is wrong with it.
        prog: whose ``--help`` may help.
    """

    def __init__(self, message: str, prog: str | None = None) -> None:
        super().__init__(message if prog is None else f"{message} (try '{prog} --help')")


def guarded(run: Callable[[], int]) -> int:
    """The exit status of `run`, or of the error that ended it, about which it says a line."""
    try:
        try:
            status = run()
        except SystemExit as e:  # argparse, after --help and --version
            status = int(e.code or OK)
        writing.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except writing.OutputError as e:
        writing.discard()
        if e.reader_is_gone:
            return BROKEN_PIPE
        messages.say("error", e)
        return ERROR
    except (GGTokError, OSError, UsageError, Warning) as e:
        messages.say("error", reason(e))
        return ERROR
    except MemoryError:
        messages.say("error", "out of memory")
        return ERROR
    return status


# Options that aren't named like the argument, by the argument and its value in a message.
_OPTIONS = {
    ("resume", "False"): "--restart",
    ("eos", "False"): "--no-eos",
    ("byte_fallback", None): "--no-byte-fallback",
}


def option(argument: Argument) -> str:
    """The command's option for an argument of Python's: ``--force`` for ``force=True``."""
    name, value = argument.name, argument.value
    found = _OPTIONS.get((name, value), "--" + name.replace("_", "-"))
    if value in (None, "True", "False"):
        return found
    return f"{found} {value.strip(chr(39)) or 'NAME'}"


def _worded(message: str) -> str:
    """A message in the command's terms."""
    if not isinstance(message, Wording):
        return message
    parts = (part for part in message.parts if not isinstance(part, ForPython))
    return "".join(option(part) if isinstance(part, Argument) else str(part) for part in parts)


def _missing_folder(path: str) -> str | None:
    """The first of the folders that a path names and that don't exist."""
    missing = None
    while (above := os.path.dirname(path)) not in ("", path) and not os.path.exists(above):
        missing = path = above
    return missing


def reason(error: BaseException) -> str:
    """What an error says, in the command's terms."""
    if isinstance(error, OSError) and error.strerror:
        if error.filename is None:
            return error.strerror
        name = os.fsdecode(error.filename)
        if isinstance(error, FileNotFoundError) and (folder := _missing_folder(name)):
            return f"{name}: the folder {folder} doesn't exist"
        return f"{name or repr(name)}: {error.strerror}"
    message = str(error)
    if isinstance(error, TextEncodeError):
        return _worded(error.message)
    if isinstance(error, GGTokError) and error.args and error.args[0] == message:
        message = _worded(error.args[0])
    if isinstance(error, UnknownPreTokenizerError) and error.key is not None:
        message += "; --pre NAME sets a known one ('ggtok inspect --pre-names' lists them)"
    return message
