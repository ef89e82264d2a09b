"""The command of the pre-commit hook ``ggtok-budget``: ``ggtok count`` for options and files that
can't be mistaken for each other.

pre-commit appends the names of changed files to the hook's ``args``, and a file may be named
``--budget=99999999``. So all words after both ``-m`` and ``--budget`` are files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ggtok import cli
from ggtok.cli import messages
from ggtok.cli.messages import UsageError

_FLAGS = {"--special", "--add-special", "--parse-special", "--binary", "--no-ignore"}
_VALUES = {"-m": "-m", "--model": "-m", "--budget": "--budget"}


def count_arguments(words: Sequence[str]) -> list[str]:
    """Returns the arguments of ``ggtok`` for a hook's ``args`` and the names of files.

    Raises:
        UsageError: the args don't begin with flags, a model and a budget.
    """
    given: dict[str, str] = {}
    flags: list[str] = []
    left = list(words)
    while len(given) < 2:
        word = left.pop(0) if left else ""
        name, equals, value = word.partition("=")
        if word in _FLAGS:
            flags.append(word)
        elif name in _VALUES and _VALUES[name] not in given and (equals or left):
            given[_VALUES[name]] = value if equals else left.pop(0)
        else:
            raise UsageError(
                "the hook's args must be -m MODEL and --budget N, after flags of 'ggtok count' if "
                f"there are any, not {word!r}"
            )
    options = [part for pair in given.items() for part in pair]
    # A file may be named "-", which would be standard input.
    files = [f"./{name}" if name.startswith("-") else name for name in left]
    return ["count", *flags, *options, "--", *files]


def main(words: Sequence[str]) -> int:
    return messages.report_errors(lambda: cli.main(count_arguments(words)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
