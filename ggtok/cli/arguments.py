"""Options, and those that all commands about a model share."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, NoReturn

import ggtok
from ggtok._inputs import read_regular
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

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse does, but an option whose value may be missing takes the next word only
        if that is one of its choices."""
        words = list(args or ())
        for action in self._actions:
            if action.nargs != "?" or not action.choices:
                continue
            options = range(words.index("--") if "--" in words else len(words))
            for i in options:
                if words[i] in action.option_strings and (
                    i + 1 == len(words) or words[i + 1] not in action.choices
                ):
                    words[i] += f"={action.const}"
        return super().parse_known_args(words, namespace)

    def _print_message(self, message: str, file: Any = None) -> None:
        writing.write(message.encode())


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


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


def add_words(parser: Parser) -> None:
    """The words of the command line that are not options: ``args.words``."""
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)


MODEL = "a GGUF file, or a model's name (see 'ggtok --help'); or use -m MODEL"
# Of the commands that read other words, too.
MODEL_FIRST = "a .gguf file, or a name with a scheme; none with -m MODEL or if GGTOK_MODEL is set"


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


_SCHEME = re.compile(r"[a-z][a-z0-9.+-]*://|(ollama|lmstudio):")


def take_model(args: argparse.Namespace) -> None:
    """Sets the model of a command whose other words are texts or paths: -m, else GGTOK_MODEL,
    else the first word if it can only be a model. No text and no path becomes a name that is
    asked of a server."""
    if args.model is not None:
        return
    first: str | None = args.words[0] if args.words else None
    args.model = os.environ.get("GGTOK_MODEL") or None
    if args.model is not None:
        if first is not None and _is_gguf(first):
            messages.hint(
                f"{first!r} is not taken as the model, since GGTOK_MODEL is set; to use it, give -m"
            )
        return
    if first is None or not (_is_gguf(first) or _is_name(first)):
        raise UsageError(
            "no model: give -m MODEL, set GGTOK_MODEL, or begin with a .gguf file or a name "
            f"with a scheme (hf://, https://, ollama:, lmstudio:){_why_not(first)}"
        )
    args.model = args.words.pop(0)


def take_only_model(args: argparse.Namespace) -> None:
    """Sets the model of a command that reads nothing else: its word, else -m, else GGTOK_MODEL."""
    if args.model is None:
        args.model = args.words.pop(0) if args.words else os.environ.get("GGTOK_MODEL") or None
    no_words(args)
    if args.model is None:
        raise UsageError("no model: give a GGUF file or a model's name, or set GGTOK_MODEL")


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
    if os.path.exists(word):
        return False
    from ggtok.sources import suggest

    return suggest.read_as(word) is not None


def _why_not(word: str | None) -> str:
    """Why the first word is no model, in parentheses."""
    if word is None:
        return ""
    if os.path.exists(word):
        return f" ({word}: not a GGUF file)"
    from ggtok.sources import hub, suggest

    why = f"{word or repr(word)}: no such file{suggest.did_you_mean(word)}"
    if hub.parse(word):
        why += f"; a repository of the Hub is hf://{word}"
    return f" ({why})"


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
