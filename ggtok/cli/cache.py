"""``ggtok cache``: the vocabularies that were fetched."""

from __future__ import annotations

import argparse
import time

from ggtok.base.escape import shown
from ggtok.cli import writing
from ggtok.cli.arguments import Command, Parser, add_json
from ggtok.sources import cache


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    parser.add_argument(
        "action", choices=["ls", "clear"], metavar="ls|clear", help=argparse.SUPPRESS
    )


def run(args: argparse.Namespace) -> None:
    if args.action == "clear":
        _clear(args.json)
        return
    kept = cache.entries()
    if args.json:
        listed = [{"url": e.url, "size": e.size, "used": int(e.used)} for e in kept]
        writing.write_json({"folder": cache.folder(), "entries": listed}, indent=2)
        return
    rows = [("SIZE", "USED", "URL")]
    for e in kept:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used))
        rows.append((writing.size(e.size), used, shown(e.url)))
    writing.write_table(rows, right=(0,))


def _clear(as_json: bool) -> None:
    n, size = cache.clear()
    if as_json:
        writing.write_json({"removed": n, "bytes": size})
    else:
        noun = "vocabulary" if n == 1 else "vocabularies"
        writing.write_line(f"removed {n} {noun}, {writing.size(size)}")


COMMAND = Command(
    usage="ls|clear",
    details="They are kept in GGTOK_CACHE if that is set, else in the platform's cache folder.",
    words={"ls": "list them", "clear": "remove them"},
    examples=["ggtok cache ls", "ggtok cache clear"],
    add_arguments=add_arguments,
    run=run,
)
