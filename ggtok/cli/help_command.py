"""``ggtok help``: shows the program's help, or a command's."""

from __future__ import annotations

import argparse

from ggtok.cli import commands
from ggtok.cli.parser import Help, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "command",
        nargs="?",
        choices=list(commands.SUMMARIES),
        metavar="COMMAND",
        help=argparse.SUPPRESS,
    )


def run(args: argparse.Namespace) -> None:
    parser = commands.top() if args.command is None else commands.parser(args.command)
    parser.print_help()


HELP = Help(
    usage="[COMMAND]",
    details="The same as 'ggtok --help' and 'ggtok COMMAND --help'.",
    words={"COMMAND": "the command to explain; without one, all are listed"},
    examples=["ggtok help", "ggtok help tokenize"],
)
