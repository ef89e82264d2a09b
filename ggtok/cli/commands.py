"""The table of commands, and the commands' parsers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import ggtok
from ggtok.cli import messages
from ggtok.cli.parser import Help, Parser, did_you_mean

# Each command is a module of this package with HELP, add_arguments(parser) and run(args), which
# returns the exit status or None. To add a command, add its module and a row here.
SUMMARIES = {
    "tokenize": "turn text into token ids",
    "detokenize": "turn token ids into text",
    "inspect": "show a vocabulary: type, special tokens, flags, metadata",
    "chat": "turn chat messages into a prompt or its token ids",
    "prompts": "show where the tokens of two prompts differ",
    "encode": "turn texts or conversations in files into files of ids",
    "count": "count the tokens of files, folders and chats",
    "stats": "show bytes per token by file and script",
    "truncate": "cut texts to at most N tokens",
    "chunks": "cut texts into chunks of at most N tokens",
    "explain": "show how a text becomes ids, step by step",
    "merges": "show which merges produce a token",
    "convert": "convert another library's vocabulary for llama.cpp",
    "export": "write a vocabulary in another library's format",
    "edit": "change the metadata of a GGUF file: template, special tokens, any key",
    "doctor": "report what is wrong or surprising in a model's tokenizer",
    "diff": "compare two vocabularies",
    "extract": "write a model's vocabulary without its weights",
    "parity": "compare ids with the installed llama.cpp",
    "train": "train a vocabulary on text files",
    "serve": "answer requests for ids and counts over HTTP",
    "view": "show vocabularies in a browser: pieces, merges, templates",
    "list": "list the models on this machine",
    "cache": "list or remove cached vocabularies",
    "completion": "print a shell's completion script",
    "help": "show the help of a command, or list the commands",
}
_WITHOUT_JSON = ("completion", "help", "serve")
# Other names for commands, which users may know from other programs.
_ALIASES = {
    "decode": "detokenize",
    "compare": "diff",
    "info": "inspect",
    "show": "inspect",
    "ls": "list",
    "template": "chat",
}

_EPILOG = """\
'ggtok COMMAND --help' explains a command.

A MODEL is one of
  model.gguf                           a file; its weights, if any, are not read
  user/repo[:quant]                    a repository on the Hugging Face Hub
  hf://user/repo[@revision]/file.gguf  a file in a repository
  https://host/model.gguf              a file on any server
  ollama:name[:tag]                    a model in Ollama's store
  lmstudio:publisher/model[:quant]     a model that LM Studio has downloaded

exit status: 0 success; 1 the command found a fault in its input;
2 an error, reported in one line on standard error"""


def run_command_line(argv: Sequence[str]) -> int:
    """Runs a command line and returns its exit status."""
    if not argv:
        argv = ["help"]
    elif [*argv] == ["version"]:
        argv = ["--version"]
    if argv[0] not in SUMMARIES:
        argv = _after_options(argv)
    name, *rest = argv
    args = parser(name).parse(rest)
    with messages.warnings_as_lines(args.quiet):
        status: int | None = _module(name).run(args)
    return status or messages.OK


def _module(name: str) -> Any:
    """Imports a command's module on first use, and returns it."""
    return import_module(f"ggtok.cli.{name}_command")


def parser(name: str) -> Parser:
    """Returns the parser for a command's arguments."""
    summary, module = SUMMARIES[name], _module(name)
    help: Help = module.HELP
    made = Parser(
        prog=f"ggtok {name}",
        usage=help.usage,
        description=f"{summary[0].upper()}{summary[1:]}. {help.details}",
        words=help.words,
        epilog="examples:\n"
        + "".join(f"  {line}\n" for line in help.examples)
        + "\nexit status:\n  0  success\n"
        + (f"  1  {help.finding}\n" if help.finding else "")
        + "  2  an error, reported in one line on standard error",
    )
    if name not in _WITHOUT_JSON:
        made.add_argument("--json", action="store_true", help="print JSON")
    module.add_arguments(made)
    return made


def top() -> Parser:
    """Returns the parser for the options before the command."""
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
    made.add_argument("-m", "--model", metavar="MODEL", help="the model for the command")
    version = f"ggtok {ggtok.__version__}"
    made.add_argument("-V", "--version", action="version", version=version, help="show the version")
    return made


def _after_options(argv: Sequence[str]) -> list[str]:
    """Handles a command line that begins with options; returns the command and its arguments."""
    parsing = top()
    n = 0
    while n < len(argv) and argv[n].startswith("-"):
        n += 2 if argv[n] in ("-m", "--model") else 1
    args: argparse.Namespace = parsing.parse(argv[:n])
    if n >= len(argv):
        parsing.error(f"a command is required: {', '.join(SUMMARIES)}")
    name = argv[n]
    if name not in SUMMARIES:
        similar = did_you_mean(_ALIASES.get(name, name), [*SUMMARIES, *_ALIASES.values()])
        listed = f"; the commands are {', '.join(SUMMARIES)}"
        parsing.error(f"unknown command {name!r}{similar or listed}")
    model = [] if args.model is None else ["-m", args.model]
    return [name, *(["--quiet"] if args.quiet else []), *model, *argv[n + 1 :]]
