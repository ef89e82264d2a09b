"""``ggtok help``: what the command does, or one of its commands."""

from __future__ import annotations

import argparse

from ggtok.cli import commands
from ggtok.cli.arguments import Command, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "command",
        nargs="?",
        choices=list(commands.SUMMARIES),
        metavar="COMMAND",
        help=argparse.SUPPRESS,
    )


def run(args: argparse.Namespace) -> None:
    name = args.command
    parser = commands.top() if name is None else commands.parser(name, commands.find(name))
    parser.print_help()


COMMAND = Command(
    usage="[COMMAND]",
    details="The same as 'ggtok --help' and 'ggtok COMMAND --help'.",
    words={"COMMAND": "the command to explain; without any, all are listed"},
    examples=["ggtok help", "ggtok help tokenize"],
    add_arguments=add_arguments,
    run=run,
)
