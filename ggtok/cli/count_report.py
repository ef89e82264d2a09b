"""What ``ggtok count`` prints: lines, sums, a tree, JSON, CSV."""

from __future__ import annotations

import argparse
import csv
import io
import os
from collections import Counter as Sums
from typing import TYPE_CHECKING, Any, TypeVar

from ggtok.base.escape import shown
from ggtok.cli import writing
from ggtok.corpora.sources import compression_of

if TYPE_CHECKING:
    from ggtok.cli.counting import Counted as Counted
    from ggtok.cli.counting import Counter as Counter


Row = TypeVar("Row", bound=tuple[Any, ...])


class Report:
    """What was counted.

    Attributes:
        files: path, tokens and bytes of each.
        binary: paths that were skipped.
        errors: how many files couldn't be read.
        total: tokens of all files.
    """

    def __init__(self) -> None:
        self.files: list[tuple[str, int, int]] = []
        self.binary: list[str] = []
        self.errors = 0
        self.total = 0

    def add(self, path: str, tokens: int, size: int) -> None:
        # UTF-8 in any locale.
        name = os.fsencode(path).decode("utf-8", "surrogateescape")
        self.files.append((name, tokens, size))
        self.total += tokens


def write(report: Report, args: argparse.Namespace) -> None:
    """Prints the report in the form that the options name."""
    files = _chosen(report.files, args, tokens=1)
    if args.total:
        writing.write(b"%d\n" % report.total)
    elif args.json:
        _write_json(report, files, args)
    elif args.csv:
        _write_csv(files)
    elif args.tree:
        _write_lines(_tree(report, args.min), report)
    elif args.by is not None:
        rows = [(n, name) for name, n in _sums(report, args.by)]
        _write_lines(_chosen(rows, args, tokens=0), report)
    else:
        _write_lines([(n, shown(p)) for p, n, _ in files], report)


def _chosen(rows: list[Row], args: argparse.Namespace, tokens: int) -> list[Row]:
    """The rows that --min, --sort and --top leave, in their order; which column has the tokens."""
    rows = [row for row in rows if row[tokens] >= args.min]
    if args.sort or args.top is not None:
        rows.sort(key=lambda row: -row[tokens])
    return rows[: args.top]


def _write_lines(rows: list[tuple[int, str]], report: Report) -> None:
    if len(report.files) != 1:
        rows.append((report.total, "total"))
    width = max((len(str(n)) for n, _ in rows), default=0)
    for n, name in rows:
        writing.write_line(f"{n:>{width}}  {name}")


def _sums(report: Report, by: str) -> list[tuple[str, int]]:
    """Tokens by extension or folder, most first."""
    sums: Sums[str] = Sums()
    for path, n, _ in report.files:
        if by == "ext":
            name = os.path.splitext(os.path.basename(path))[1] or "(none)"
        else:
            name = os.path.dirname(path) or "."
        sums[shown(name)] += n
    return sums.most_common()


def _write_json(
    report: Report, files: list[tuple[str, int, int]], args: argparse.Namespace
) -> None:
    value = {
        "total": report.total,
        "files": [{"path": path, "tokens": n, "bytes": size} for path, n, size in files],
        "binary": report.binary,
    }
    if args.budget is not None:
        value["over_budget"] = report.total > args.budget
    writing.write_json(value, indent=2)


def _write_csv(files: list[tuple[str, int, int]]) -> None:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("path", "tokens", "bytes"))
    rows.writerows(files)
    writing.write(text.getvalue().encode("utf-8", "surrogateescape"))


# ---- the tree ----


class _Folder:
    def __init__(self) -> None:
        self.tokens = 0
        self.folders: dict[str, _Folder] = {}
        self.files: list[tuple[str, int]] = []


def _tree(report: Report, least: int) -> list[tuple[int, str]]:
    """Lines of folders and files, those in a folder further to the right."""
    top = _Folder()
    for path, n, _ in report.files:
        *folders, name = path.split("/")
        at = top
        for folder in folders:
            at = at.folders.setdefault(folder, _Folder())
            at.tokens += n
        at.files.append((name, n))
    rows: list[tuple[int, str]] = []
    waiting: list[tuple[int, str, _Folder | int]] = [(-1, "", top)]  # paths may be deep
    while waiting:
        depth, name, node = waiting.pop()
        if isinstance(node, int):
            n = node
        else:
            while len(node.folders) == 1 and not node.files and node is not top:
                ((inner, node),) = node.folders.items()
                name = f"{name}/{inner}"
            n = node.tokens
            inside: list[tuple[int, str, _Folder | int]] = [
                *((depth + 1, inner, folder) for inner, folder in node.folders.items()),
                *((depth + 1, inner, tokens) for inner, tokens in node.files),
            ]
            waiting += reversed(inside)
            name += "/"
        if depth >= 0 and n >= least:
            rows.append((n, "  " * depth + shown(name)))
    return rows


# ---- progress ----


def size_of(files: list[str]) -> int:
    """Bytes of the files, as far as they can be known; 0 if some are compressed."""
    total = 0
    for path in files:
        if compression_of(path):
            return 0
        try:
            total += os.stat(path).st_size
        except OSError:
            continue
    return total
