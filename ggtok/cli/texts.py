"""Texts in files and on standard input, for commands that cut them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ggtok.cli import messages, status
from ggtok.cli.arguments import Parser, token_count
from ggtok.cli.messages import warn
from ggtok.cli.status import UsageError


def add_arguments(parser: Parser) -> None:
    """The options that these commands share."""
    add = parser.add_argument
    add("-n", "--tokens", type=token_count, metavar="N", help="at most so many tokens (8k: 8000)")
    add("--no-special", action="store_true", help="count no BOS, nor what else is added to a text")
    add("-0", "--null", action="store_true", help="end each text with NUL instead of nothing")


def paths(args: argparse.Namespace) -> list[str]:
    """The files that are named; without any, standard input."""
    if args.tokens is None:
        raise UsageError("no number of tokens: give -n N")
    if args.tokens < 0:
        raise UsageError(f"-n must not be negative, but is {args.tokens}")
    if args.null and args.json:
        raise UsageError("--null and --json exclude each other")
    if args.words.count("-") > 1:
        raise UsageError("standard input can be read only once")
    return args.words or ["-"]


def each(paths: list[str], cut: Callable[[str], None]) -> int:
    """Calls `cut` for each file; gives the exit status. Those that can't be read are reported."""
    failed = False
    for path in paths:
        try:
            cut(path)
        except OSError as e:
            messages.say("error", status.reason(e))
            failed = True
    return status.ERROR if failed else status.OK


def warn_of_nul(path: str, text: bytes) -> None:
    """With --null, texts that hold NUL can't be told apart."""
    if b"\0" in text:
        warn(f"{'standard input' if path == '-' else path} holds NUL itself: use --json")
