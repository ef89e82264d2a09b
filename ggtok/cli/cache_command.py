"""``ggtok cache``: lists and removes cached vocabularies."""

from __future__ import annotations

import argparse
import time

from ggtok.base.escape import printable
from ggtok.cli import standard_output
from ggtok.cli.parser import Help, Parser
from ggtok.sources import download_cache


def add_arguments(parser: Parser) -> None:
    actions = ["ls", "clear"]
    parser.add_argument("action", choices=actions, metavar="ls|clear", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> None:
    if args.action == "clear":
        n, size = download_cache.clear()
        noun = "vocabulary" if n == 1 else "vocabularies"
        line = f"removed {n} {noun}, {standard_output.size(size)}"
        standard_output.write_result(args, {"removed": n, "bytes": size}, [line])
        return
    kept = download_cache.entries()
    listed = [{"url": e.url, "size": e.size, "used": int(e.used)} for e in kept]
    rows = [("SIZE", "USED", "URL")]
    for e in kept:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used))
        rows.append((standard_output.size(e.size), used, printable(e.url)))
    value = {"folder": download_cache.folder(), "entries": listed}
    standard_output.write_result(args, value, standard_output.table(rows, right=(0,)))


HELP = Help(
    usage="ls|clear",
    details="The cache holds vocabularies fetched from servers. It is the folder GGTOK_CACHE if "
    "that is set, else in the platform's cache folder.",
    words={"ls": "list the vocabularies", "clear": "remove them"},
    examples=["ggtok cache ls", "ggtok cache clear"],
)
