"""How a command ends: exit statuses, and errors as one line on standard error."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ggtok.cli import messages, writing
from ggtok.errors import GGTokError

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


# The clause with which a message of the library goes on to advise Python code, and the
# command's advice.
_ADVICE = (
    (
        r"; [^;]*\bggtok\.load\(",
        "; --pre NAME sets a known one ('ggtok inspect --pre-names' lists them)",
    ),
    (r"; pass bytes\b", ""),
    (r"[:;] [^:;]*\btemplate=", "; give one with --template NAME"),
)
# Arguments of Python's functions in their messages, and the command's options.
_OPTIONS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"^shards=(\d+)", r"--shards \1"),
    (r"^shards(?= must\b)", "--shards"),
    (r"\bresume=False\b", "--restart"),
    (r"\bforce=True\b", "--force"),
    (r"\berrors='(\w+)'", r"--errors \1"),
    (r"\bdtype='(\w+)'", r"--dtype \1"),
    (r"\bkind='(\w+)'", r"--kind \1"),
    (r"\bformat='(\w+)'", r"--format \1"),
    (r"\bpass eos=False\b", "give --no-eos"),
    (r"\bpass field=", "give --field NAME"),
    (r"\binexact=True\b", "--inexact"),
    (r"\bpre=NAME\b", "--pre NAME"),
    (r"\blike='llama\.cpp'", "--like llama.cpp"),
    (r"\blike=(?!\w)", "--like"),
    (r"^pre: ", "--pre: "),
    (
        r"\b(?:vocab_size|character_coverage|split_digits|min_frequency|max_token_length|max_words)"
        r"(?= (?:is|must|has)\b)",
        lambda found: "--" + found[0].replace("_", "-"),
    ),
    (r"^(alphabet|pre)(?= has no effect\b)", r"--\1"),
    (r"\bbyte_fallback(?= has\b)", "--no-byte-fallback"),
)


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
    for clause, advice in _ADVICE:
        if found := re.search(clause, message):
            return message[: found.start()] + advice
    for argument, option in _OPTIONS:
        message = re.sub(argument, option, message)
    return message
