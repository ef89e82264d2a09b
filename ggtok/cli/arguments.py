"""Options, and those that all commands about a model share."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, NoReturn

import ggtok
from ggtok.cli import messages, writing
from ggtok.cli.status import UsageError


class Command(NamedTuple):
    """What a command's module defines.

    Attributes:
        usage: its command line, after the options.
        details: sentences of its help, after the summary.
        words: what the words of `usage` mean.
        examples: command lines.
        add_arguments: adds its options to its parser.
        run: carries it out; gives the exit status, None for success.
    """

    usage: str
    details: str
    words: Mapping[str, str]
    examples: Sequence[str]
    add_arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int | None]


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

    def _print_message(self, message: str, file: Any = None) -> None:
        writing.write(message.encode())


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_words(parser: Parser) -> None:
    """The words of the command line that are not options: ``args.words``."""
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)


MODEL = "a GGUF file, or a model's name (see 'ggtok --help'); or use -m MODEL"


def add_model(parser: Parser) -> None:
    """The options of a command that loads one model: -m, else its first word."""
    add_words(parser)
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


def take_model(args: argparse.Namespace) -> None:
    """Makes the first of the words the model, if -m didn't name it."""
    if args.model is None:
        if not args.words:
            raise UsageError("no model: give a GGUF file or a model's name")
        args.model = args.words.pop(0)


_SCHEME = re.compile(r"[a-z][a-z0-9.+-]*://|(ollama|lmstudio):")


def take_model_before_paths(args: argparse.Namespace) -> None:
    """The same for a command whose other words are paths: -m, else GGTOK_MODEL, else the first
    word if it can only be a model. No path becomes a name that is asked of a server."""
    if args.model is None:
        args.model = os.environ.get("GGTOK_MODEL") or None
    if args.model is None:
        first = args.words[0] if args.words else ""
        is_file = first.lower().endswith(".gguf") and os.path.isfile(first)
        if not (is_file or _SCHEME.match(first)):
            raise UsageError(
                "no model: give -m MODEL, set GGTOK_MODEL, or begin with a .gguf file or a name "
                "with a scheme (hf://, https://, ollama:, lmstudio:)"
            )
        args.model = args.words.pop(0)


def no_words(args: argparse.Namespace) -> None:
    """Refuses words that nothing reads."""
    if args.words:
        raise UsageError(f"unexpected argument: {args.words[0]!r}")


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
    from ggtok import override_kv

    return override_kv.parse(args.override_kv)
