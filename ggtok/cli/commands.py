"""The table of commands, and the way from a command line to one of them."""

from __future__ import annotations

from argparse import REMAINDER, SUPPRESS
from collections.abc import Sequence
from importlib import import_module

import ggtok
from ggtok.cli.arguments import Command, Parser
from ggtok.cli.messages import warnings_as_lines
from ggtok.cli.status import OK
from ggtok.cli.suggestions import did_you_mean

# Each is a module of this package with a COMMAND. To add one: a module, and its row here.
SUMMARIES = {
    "tokenize": "turn text into token ids",
    "detokenize": "turn token ids into text",
    "inspect": "show a file's vocabulary: type, special tokens, flags, metadata",
    "chat": "turn chat messages into a prompt or its token ids",
    "encode": "turn files of text into files of token ids",
    "count": "count the tokens of files and folders",
    "truncate": "cut texts down to a number of tokens",
    "chunks": "cut texts into chunks of a number of tokens",
    "explain": "show how a text's ids come about, step by step",
    "merges": "show which merges make a token",
    "convert": "turn another library's vocabulary into one for llama.cpp",
    "export": "write a vocabulary in another library's format",
    "doctor": "tell what is wrong or surprising in a model's tokenizer",
    "diff": "compare two models' vocabularies",
    "extract": "write a model's vocabulary without its weights",
    "parity": "compare ids with the llama.cpp that is installed",
    "train": "train a vocabulary on text files",
    "list": "list the models on this machine",
    "cache": "list or remove the vocabularies fetched from elsewhere",
    "completion": "print a script that completes commands in a shell",
    "help": "show the help of a command, or the list of commands",
}


def run(argv: Sequence[str]) -> int:
    """Runs a command line; gives its exit status."""
    if not argv or argv[0] not in SUMMARIES:
        argv = _top(argv)
    command = find(argv[0])
    # Options may stand between the words.
    parsing = parser(argv[0], command)
    args, unknown = parsing.parse_known_intermixed_args(argv[1:])
    parsing.refuse(unknown)
    with warnings_as_lines(args.quiet):
        return command.run(args) or OK


def find(name: str) -> Command:
    """The command of that name, whose module is imported only now."""
    command: Command = import_module(f"ggtok.cli.{name}").COMMAND
    return command


def parser(name: str, command: Command) -> Parser:
    """The parser of a command's arguments."""
    summary = SUMMARIES[name]
    made = Parser(
        prog=f"ggtok {name}",
        usage=command.usage,
        description=f"{summary[0].upper()}{summary[1:]}. {command.details}",
        words=command.words,
        epilog="examples:\n"
        + "".join(f"  {line}\n" for line in command.examples)
        + "\nexit status:\n  0  success\n"
        + (f"  1  {command.finding}\n" if command.finding else "")
        + "  2  an error, reported in one line on standard error",
    )
    command.add_arguments(made)
    return made


_EPILOG = """\
'ggtok COMMAND --help' explains a command.

A MODEL is one of
  model.gguf                           a file; its weights, if any, are not read
  user/repo[:quant]                    a repository on the Hugging Face Hub
  hf://user/repo[@revision]/file.gguf  a file in a repository
  https://host/model.gguf              a file on any server
  ollama:name[:tag]                    a model in Ollama's store
  lmstudio:publisher/model[:quant]     a model that LM Studio has downloaded

exit status: 0 success; 1 the command found a fault in what it was given;
2 an error, reported in one line on standard error"""


# Names that other programs have for commands.
_ALIASES = {"decode": "detokenize", "version": "--version"}


def top() -> Parser:
    """The parser of what precedes a command."""
    made = Parser(
        prog="ggtok",
        usage="COMMAND ...",
        description="llama.cpp's tokenizer for GGUF files, without llama.cpp.",
        words={},
        epilog="commands:\n"
        + "".join(f"  {name:<12}{summary}\n" for name, summary in SUMMARIES.items())
        + "\n"
        + _EPILOG,
    )
    made.add_argument(
        "-V",
        "--version",
        action="version",
        version=f"ggtok {ggtok.__version__}",
        help="show the version",
    )
    made.add_argument("words", nargs=REMAINDER, help=SUPPRESS)
    return made


def _top(argv: Sequence[str]) -> list[str]:
    """The command and its arguments, from a command line that doesn't begin with a command."""
    parsing = top()
    args, unknown = parsing.parse_known_args(argv)
    parsing.refuse(unknown)
    if not args.words:
        parsing.error(f"a command is required: {', '.join(SUMMARIES)}")
    name = args.words[0]
    if name not in SUMMARIES:
        meant = did_you_mean(_ALIASES.get(name, name), [*SUMMARIES, *_ALIASES.values()])
        listed = meant or f"; the commands are {', '.join(SUMMARIES)}"
        parsing.error(f"unknown command {name!r}{listed}")
    return [name, *(["--quiet"] if args.quiet else []), *args.words[1:]]
