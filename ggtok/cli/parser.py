"""The command-line parser, which reads options like getopt and reports errors in one line."""

from __future__ import annotations

import argparse
import os
import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from ggtok.cli import standard_output
from ggtok.cli.messages import UsageError

# Metavars of options whose values are paths.
PATHS = {"MODEL", "FILE", "F", "OUT", "PATH"}


class Help(NamedTuple):
    """The text that ``--help`` prints for a command.

    Attributes:
        usage: the arguments of the command, as a synopsis.
        details: sentences that follow the command's summary.
        words: what each argument in `usage` means.
        examples: command lines.
        finding: when the exit status is 1.
    """

    usage: str
    details: str
    words: dict[str, str]
    examples: Sequence[str]
    finding: str = ""


class _Formatter(argparse.HelpFormatter):
    """A help formatter that wraps paragraphs, but not texts that already have several lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError for errors, and prints help like all other output."""

    def __init__(
        self, prog: str, usage: str, description: str, words: dict[str, str], epilog: str
    ) -> None:
        super().__init__(
            prog=prog,
            usage=f"{prog} [OPTION]... {usage}",
            description=description,
            epilog=epilog,
            formatter_class=_Formatter,
            add_help=False,
            allow_abbrev=False,
        )
        if words:
            width = max(map(len, words))
            lines = [f"{word:<{width}}  {meaning}\n" for word, meaning in words.items()]
            self.add_argument_group("arguments", "".join(lines))
            self._action_groups.insert(0, self._action_groups.pop())  # moves the group to the front
        self.add_argument("-h", "--help", action="help", help="show this help and exit")
        self.add_argument("-q", "--quiet", action="store_true", help="print no warnings or hints")

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.prog)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Like argparse's add_argument, but paths may begin with ``~``."""
        if options.get("metavar") in PATHS:
            options["type"] = expand_home
        return super().add_argument(*names, **options)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parses arguments; options and words may come in any order.

        As in getopt, the argument after an option is its value, whatever it begins with. If the
        option's value is optional, the next argument is the value only if it is one of the option's
        choices or, for an option without choices, doesn't begin with a dash.
        """
        options: list[str] = []
        words: list[str] = []
        waiting = deque(argv)
        while waiting:
            word = waiting.popleft()
            if word == "--":
                words += waiting
                break
            if not self._is_option(word):
                words.append(word)
                continue
            action = self._option_string_actions.get(word)
            if action is not None and action.nargs is None:
                if not waiting:
                    self.error(f"{_name(action)} needs a value")
                word += f"={waiting.popleft()}"
            elif action is not None and action.nargs == "?":
                following = waiting[0] if waiting else "-"
                takes = following in (action.choices or ()) or not (
                    action.choices or following.startswith("-")
                )
                word += f"={waiting.popleft() if takes else action.const}"
            options.append(word)
        args, unused = self.parse_known_args([*options, *(["--", *words] if words else [])])
        if unused:
            self.error(f"unexpected argument: {unused[0]!r}")
        return args

    def _is_option(self, word: str) -> bool:
        """Whether an argument is an option, with or without its value.

        Raises:
            UsageError: the argument looks like an option, but isn't one.
        """
        if not word.startswith("-") or word == "-":
            return False
        known = self._option_string_actions
        name = word.partition("=")[0]
        is_long = word.startswith("--")
        first = known.get(word[:2])
        flags = [known.get(f"-{letter}") for letter in word[1:]]
        if (
            name in known
            or (first is not None and first.nargs is None and not is_long)  # such as -n5
            or all(flag is not None and flag.nargs == 0 for flag in flags)  # such as -qe
        ):
            return True
        is_number = re.match(r"-\.?\d", word) and not self._has_negative_number_optionals
        if not is_number and " " not in word:
            advice = did_you_mean(name, known)
            if not advice and not is_long:
                advice = f"; if it is not an option, write -- before it: -- {word}"
            self.error(f"unknown option {name}{advice}")
        return False

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Like argparse's _get_values, which drops the value ``--`` before Python 3.13."""
        if action.option_strings and arg_strings == ["--"]:
            self._check_value(action, "--")
            return self._get_value(action, "--")
        return super()._get_values(action, arg_strings)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            if action.type not in (int, float, token_count):
                raise
            self.error(f"{_name(action)} must be a number, not {arg_string!r}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            listed = f"; the choices are {', '.join(action.choices)}"
            advice = did_you_mean(value, action.choices) or listed
            self.error(f"{_name(action)} can't be {value!r}{advice}")

    def _print_message(self, message: str, file: Any = None) -> None:
        standard_output.write(message.encode())


def _name(action: argparse.Action) -> str:
    """Returns an option's names, or an argument's metavar."""
    return "/".join(action.option_strings) or str(action.metavar)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns ``"; did you mean X?"`` for the known word most similar to `word`, or ``""``."""
    import difflib  # slow to import

    names = {each.lstrip("-"): each for each in known}
    bare = word.lstrip("-")
    completions = [name for name in names if bare and name.startswith(bare)]
    similar = completions[:1] or difflib.get_close_matches(bare, names, n=1, cutoff=0.7)
    return f"; did you mean {names[similar[0]]}?" if similar else ""


def token_count(word: str) -> int:
    """Parses a number of tokens: 8000, 8k or 1.5M."""
    found = re.fullmatch(r"([+-]?[0-9]+(?:\.[0-9]+)?)([kKmM]?)", word)
    if found is None or ("." in word and not found[2]):
        raise ValueError(word)
    if not found[2]:
        return int(found[1])
    return round(float(found[1]) * (1000 if found[2] in "kK" else 1_000_000))


def expand_home(path: str) -> str:
    """Expands ``~`` in a path, which shells don't do in quotes and after ``=``."""
    if path.startswith("~") and not os.path.lexists(path):
        return os.path.expanduser(path)
    return path
