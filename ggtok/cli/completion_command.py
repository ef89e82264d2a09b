"""``ggtok completion``: prints shell completion scripts."""

from __future__ import annotations

import argparse

from ggtok.cli import commands, standard_output
from ggtok.cli.parser import PATHS, Help, Parser
from ggtok.errors import MissingExtraError
from ggtok.native import pre_names

TYPE_CHECKING = False  # importing typing takes time
if TYPE_CHECKING:
    from typing import Any

SHELLS = ["bash", "zsh", "fish"]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="bash|zsh|fish", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> None:
    try:
        import shtab
    except ImportError:
        raise MissingExtraError(
            "completion needs a package: pip install 'ggtok[completion]'"
        ) from None
    script: str = shtab.complete(_all_commands(shtab, args.shell), args.shell)
    standard_output.write(script.encode() + b"\n")


def _all_commands(shtab: Any, shell: str) -> argparse.ArgumentParser:
    """Returns a parser for all commands, with shtab's completion for each argument."""
    top = argparse.ArgumentParser("ggtok", allow_abbrev=False)
    top.add_argument("-V", "--version", action="version", help="show the version")
    top.add_argument("-q", "--quiet", action="store_true", help="print no warnings or hints")
    each = top.add_subparsers()
    for name, summary in commands.SUMMARIES.items():
        parser = commands.parser(name)
        for action in parser._actions:
            _set_completion(action, shtab)
            if shell == "fish" and action.help:  # shtab doesn't escape backslashes for fish
                action.help = action.help.replace("\\", "\\\\")
        each.add_parser(name, help=summary, description=summary, parents=[parser], add_help=False)
    return top


def _set_completion(action: Any, shtab: Any) -> None:
    if action.dest == "words":
        action.help = "a model, files, or other arguments"
        action.complete = shtab.FILE
    elif action.metavar in PATHS:
        action.complete = shtab.FILE
    elif action.dest == "pre":
        action.choices = pre_names()
    elif action.help == argparse.SUPPRESS:
        action.help = " or ".join(action.choices)


HELP = Help(
    usage="bash|zsh|fish",
    details="The script completes commands, options, their values and file names. It needs the "
    "package shtab: pip install 'ggtok[completion]'.",
    words={"bash|zsh|fish": "the shell"},
    examples=[
        "ggtok completion bash > ~/.local/share/bash-completion/completions/ggtok",
        "ggtok completion zsh > ~/.zfunc/_ggtok    # a folder of $fpath, before compinit",
        "ggtok completion fish > ~/.config/fish/completions/ggtok.fish",
    ],
)
