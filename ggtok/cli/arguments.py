"""Options, and those that all commands about a model share."""

from __future__ import annotations

import argparse
import os
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, NoReturn

import ggtok
from ggtok.base.files import read_regular
from ggtok.cli import messages, writing
from ggtok.cli.status import UsageError
from ggtok.cli.suggestions import did_you_mean

# What stands for the value of an option that is a file's or a folder's name.
PATHS = {"MODEL", "FILE", "F", "OUT", "PATH"}


class Command(NamedTuple):
    """What a command's module defines.

    Attributes:
        usage: its command line, after the options.
        details: sentences of its help, after the summary.
        words: what the words of `usage` mean.
        examples: command lines.
        add_arguments: adds its options to its parser.
        run: carries it out; gives the exit status, None for success.
        finding: when the exit status is 1, for its help.
    """

    usage: str
    details: str
    words: Mapping[str, str]
    examples: Sequence[str]
    add_arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int | None]
    finding: str = ""


class _Formatter(argparse.HelpFormatter):
    """Wraps paragraphs; leaves lists, which have several lines, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UsageErrors and whose help goes where all output goes."""

    def __init__(
        self, prog: str, usage: str, description: str, words: Mapping[str, str], epilog: str
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
            self._action_groups.insert(0, self._action_groups.pop())  # before the options
        self.add_argument("-h", "--help", action="help", help="show this help and exit")
        self.add_argument(
            "-q", "--quiet", action="store_true", help="print no warnings and no hints"
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.prog)

    def refuse(self, unknown: Sequence[str]) -> None:
        """An error about the first argument that nothing reads, if there is one."""
        option = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
        if option is not None:
            meant = did_you_mean(option, self._option_string_actions)
            self.error(f"unknown option {option}{meant}")
        if unknown:
            self.error(f"unexpected argument: {unknown[0]!r}")

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """As argparse's, but paths may begin with ``~``."""
        if options.get("metavar") in PATHS:
            options["type"] = expanded
        return super().add_argument(*names, **options)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        return super().parse_known_args(self._joined(args or ()), namespace)

    def _joined(self, words: Sequence[str]) -> list[str]:
        """The words, each option joined to its value by ``=``.

        As for getopt, an option takes the next word whatever it begins with, which argparse would
        take for another option. An option whose value may be missing takes it only if it is one
        of the choices.
        """
        actions = {name: action for action in self._actions for name in action.option_strings}
        waiting = deque(words)
        joined: list[str] = []
        while waiting:
            word = waiting.popleft()
            if word == "--":
                return [*joined, word, *waiting]
            action = actions.get(word)
            if action is not None and action.nargs is None and waiting:
                word += f"={waiting.popleft()}"
            elif action is not None and action.nargs == "?" and action.choices:
                given = waiting and waiting[0] in action.choices
                word += f"={waiting.popleft() if given else action.const}"
            joined.append(word)
        return joined

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """As argparse does, which before Python 3.13 drops a value that is ``--``."""
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
            meant = did_you_mean(value, action.choices)
            choices = meant or f"; the choices are {', '.join(action.choices)}"
            self.error(f"{_name(action)} can't be {value!r}{choices}")

    def _print_message(self, message: str, file: Any = None) -> None:
        writing.write(message.encode())


def token_count(word: str) -> int:
    """A number of tokens: 8000, 8k or 1.5M."""
    found = re.fullmatch(r"([+-]?[0-9]+(?:\.[0-9]+)?)([kKmM]?)", word)
    if found is None or ("." in word and not found[2]):
        raise ValueError(word)
    if not found[2]:
        return int(found[1])
    return round(float(found[1]) * (1000 if found[2] in "kK" else 1_000_000))


def check_output(path: str) -> None:
    """Refuses ``-``, which elsewhere is a standard stream, as the name of a file to write."""
    if path == "-":
        raise UsageError("-: not written to standard output; give a file's name")


def _name(action: argparse.Action) -> str:
    """What the command line calls an option, or an argument."""
    return action.option_strings[0] if action.option_strings else str(action.metavar)


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_patterns(parser: Parser) -> None:
    add = partial(parser.add_argument, metavar="GLOB", action="append", default=[])
    add("--include", help="of folders, these files")
    add("--exclude", help="of folders, not these files and folders")


def add_field(parser: Parser) -> None:
    """Options of commands that read corpora."""
    parser.add_argument(
        "--kind",
        choices=["text", "jsonl", "parquet", "arrow"],
        help="of all files (default: by their extensions)",
    )
    parser.add_argument(
        "--field",
        metavar="NAME",
        action="append",
        help="of JSON lines and tables, also meta.text; several are joined (default: text)",
    )


def add_force(parser: Parser) -> None:
    parser.add_argument(
        "--force", action="store_true", help="also write over a file of another format"
    )


def add_inexact(parser: Parser) -> None:
    parser.add_argument(
        "--inexact",
        action="store_true",
        help="also write a file in which the ids of some texts differ; a warning says of which",
    )


def expanded(path: str) -> str:
    """A path whose ``~`` is the home folder: shells leave it in quotes and after ``=``."""
    if path.startswith("~") and not os.path.lexists(path):
        return os.path.expanduser(path)
    return path


def add_words(parser: Parser, *, texts: bool = False) -> None:
    """The words of the command line that are not options, ``args.words``: paths, or `texts`."""
    parser.add_argument("words", nargs="*", type=str if texts else expanded, help=argparse.SUPPRESS)


MODEL = "a GGUF file, or a model's name (see 'ggtok --help'); or use -m MODEL"
# Of the commands that read other words, too.
MODEL_FIRST = "a .gguf file, or a name with a scheme; or use -m MODEL, or set GGTOK_MODEL"


def add_model(parser: Parser, *, texts: bool = False) -> None:
    """The options of a command that loads one model, and its words: paths, or `texts`."""
    add_words(parser, texts=texts)
    parser.add_argument(
        "-m", "--model", metavar="MODEL", help="the model, in place of the argument"
    )
    parser.add_argument(
        "--pre", metavar="NAME", help="use this pre-tokenizer instead of the file's"
    )
    parser.add_argument(
        "--override-kv",
        metavar="KEY=TYPE:VALUE,...",
        action="append",
        default=[],
        help="use these values instead of the file's; TYPE is int, float, bool or str",
    )


_SCHEME = re.compile(r"[a-z][a-z0-9.+-]*://|(ollama|lmstudio):")


def take_model(args: argparse.Namespace, needed: int = 0) -> None:
    """Sets the model of a command that reads other words, too: the first word if it can only be
    a model, else -m, else GGTOK_MODEL.

    No text and no path becomes a name that is asked of a server: a name is a model beside -m or
    GGTOK_MODEL only if more words follow than the command needs.
    """
    first: str | None = args.words[0] if args.words else None
    other = _of_environment() if args.model is None else args.model
    if first is not None and (
        _is_gguf(expanded(first))
        or ((other is None or len(args.words) > needed) and _is_name(first))
    ):
        no_second_model(args.model, first)
        other = expanded(args.words.pop(0))
    if other is None:
        raise UsageError(
            "no model: give -m MODEL, set GGTOK_MODEL, or begin with a .gguf file or a name "
            f"with a scheme (hf://, https://, ollama:, lmstudio:){_why_not(first)}"
        )
    args.model = other


def take_only_model(args: argparse.Namespace) -> None:
    """Sets the model of a command that reads nothing else: its word, else -m, else GGTOK_MODEL."""
    if args.words:
        no_second_model(args.model, args.words[0])
        args.model = args.words.pop(0)
    no_words(args)
    if args.model is None:
        args.model = _of_environment()
    if args.model is None:
        raise UsageError("no model: give a GGUF file or a model's name, or set GGTOK_MODEL")


def _of_environment() -> str | None:
    return expanded(os.environ.get("GGTOK_MODEL", "")) or None


def no_second_model(model: str | None, second: str) -> None:
    """Refuses a model that is named after an option gave one."""
    if model is not None:
        raise UsageError(f"two models, {model} and {second}: give one of them")


def can_only_be_model(word: str) -> bool:
    return _is_gguf(expanded(word)) or _is_name(word)


def _is_gguf(path: str) -> bool:
    """Whether it is a GGUF file, by its name, or else (Ollama's have none) by how it begins."""
    if not os.path.isfile(path):
        return False
    if path.lower().endswith(".gguf"):
        return True
    try:
        return read_regular(path, 4) == b"GGUF"
    except OSError:
        return False


def _is_name(word: str) -> bool:
    """Whether it is a model's name with a scheme, or a model page's address without one."""
    if _SCHEME.match(word):
        return True
    if "/" not in word or os.path.exists(word):
        return False
    from ggtok.sources import listing

    return listing.read_as(word) is not None


def _why_not(word: str | None) -> str:
    """Why the first word is no model, in parentheses."""
    if word is None:
        return ""
    if os.path.exists(word):
        return f" ({word}: not a GGUF file)"
    from ggtok.sources import hub, listing

    why = f"{word or repr(word)}: no such file{listing.did_you_mean(word)}"
    if hub.parse(word):
        why += f"; a repository of the Hub is hf://{word}"
    return f" ({why})"


def no_words(args: argparse.Namespace) -> None:
    """Refuses words that nothing reads."""
    if args.words:
        raise UsageError(f"unexpected argument: {args.words[0]!r}")


def check_id(tok: ggtok.Tokenizer, id: int) -> None:
    """Refuses what is no id of the vocabulary."""
    if not 0 <= id < tok.n_tokens:
        raise UsageError(f"no token {id}: the ids are 0 to {tok.n_tokens - 1}")


def load(args: argparse.Namespace) -> ggtok.Tokenizer:
    """The model that the options of :func:`add_model` describe."""
    with telling(args):
        return ggtok.load(args.model, pre=args.pre, overrides=overrides(args))


def telling(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Within it, long waits are reported, unless --quiet was given."""
    if args.quiet or os.path.exists(args.model):
        return nullcontext()
    from ggtok.sources import telling

    return telling(lambda text: messages.say("note", text))


def overrides(args: argparse.Namespace) -> dict[str, int | float | bool | str] | None:
    """What --override-kv says."""
    if not args.override_kv:
        return None
    from ggtok.loading import override_kv

    return override_kv.parse(args.override_kv)
