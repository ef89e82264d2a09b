"""``ggtok count``: the tokens of files, folders and chats."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

import ggtok
from ggtok.base.escape import number
from ggtok.cli import count_report, messages, reading, status
from ggtok.cli.arguments import (
    MODEL_FIRST,
    Command,
    Parser,
    add_json,
    add_model,
    add_patterns,
    load,
    take_model,
    token_count,
)
from ggtok.cli.messages import warn
from ggtok.cli.status import UsageError
from ggtok.corpora.fields import Fields


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_model(parser)
    add = parser.add_argument
    add_patterns(parser)
    add("--no-ignore", action="store_true", help="of folders, what .gitignore names, too")
    add("--binary", action="store_true", help="count files with NUL bytes, too")
    add("--files0-from", metavar="F", help="the paths are in this file, a NUL after each")
    add("--field", metavar="NAME", action="append", help="count this field of JSON lines")
    add("--kind", choices=["text", "jsonl"], help="what files are (default: text without --field)")
    add("--chat", metavar="FILE", help="count the messages or the request in a JSON file")
    add("--tools", metavar="FILE", help="with --chat: a JSON list of tools")
    add("--template", metavar="NAME", help="with --chat: a template of the model's, or a file")
    add("--special", action="store_true", help="add BOS and what else the vocabulary adds")
    add("--parse-special", action="store_true", help="parse the texts of special tokens")
    add("--total", action="store_true", help="print the total alone")
    add("--by", choices=["ext", "dir"], help="print sums by extension or folder")
    add("--tree", action="store_true", help="print folders with their sums")
    add("--csv", action="store_true", help="print CSV")
    add("--sort", action="store_true", help="print the lines with most tokens first")
    add("--top", type=token_count, metavar="N", help="print the N lines with most tokens")
    add("--min", type=token_count, default=0, metavar="N", help="print no line of fewer tokens")
    add(
        "--budget",
        type=token_count,
        metavar="N",
        help="exit with status 1 if the total is above N, which may be written as 8k (8000)",
    )


def run(args: argparse.Namespace) -> int:
    if (args.json, args.csv, args.total, args.tree or args.by is not None).count(True) > 1:
        raise UsageError("--json, --csv, --total, and --tree or --by exclude each other")
    if args.tree and args.by:
        raise UsageError("--tree and --by exclude each other")
    if args.tree and (args.sort or args.top is not None):
        raise UsageError("--tree excludes --sort and --top: its lines are in the order of folders")
    if args.tools is not None and args.chat is None:
        raise UsageError("--tools has no effect without --chat")
    if args.template is not None and args.chat is None:
        raise UsageError("--template has no effect without --chat")
    if args.kind == "text" and args.field is not None:
        raise UsageError("--field has no effect with --kind text")
    if args.top is not None and args.top < 1:
        raise UsageError(f"--top must be at least 1, but is {args.top}")
    take_model(args)
    paths = [*args.words, *_listed(args.files0_from)]
    if not paths and args.chat is None and args.files0_from is None:
        paths = ["-"]
    if paths.count("-") + (args.chat == "-") + (args.tools == "-") > 1:
        raise UsageError("standard input can be read only once")
    files = _files(args, paths)
    report = count_report.Report()
    tok = load(args)
    if args.chat is not None:
        report.add(args.chat, _chat(tok, args), 0)
    _count(tok, args, files, report)
    count_report.write(report, args)
    return _status(args, report)


def _listed(file: str | None) -> list[str]:
    if file is None:
        return []
    names = reading.file(file).split(b"\0")
    if not names[-1]:
        names.pop()
    if b"" in names:
        raise UsageError(f"{file}: an empty name")
    return [os.fsdecode(name) for name in names]


def _files(args: argparse.Namespace, paths: list[str]) -> list[str]:
    from ggtok.cli.folders import Choice

    choice = Choice(args.include, args.exclude, ignore=not args.no_ignore)
    files = list(choice.files(paths))
    if paths and not files:
        warn("no files are in the folders, or all are ignored or excluded")
    return files


def _chat(tok: ggtok.Tokenizer, args: argparse.Namespace) -> int:
    from ggtok.cli.chat import ids_of

    return len(ids_of(tok, args.chat, args.tools, args.template))


def _count(
    tok: ggtok.Tokenizer, args: argparse.Namespace, files: list[str], report: count_report.Report
) -> None:
    from ggtok.cli.counting import Counter

    counter = Counter(
        tok,
        add_special=args.special,
        parse_special=args.parse_special,
        binary=args.binary,
        fields=None if args.field is None and args.kind != "jsonl" else Fields.checked(args.field),
    )
    for counted in _told(counter.count(files), counter, files, args.quiet):
        if counted.error is not None:
            messages.say("error", counted.error)
            report.errors += 1
        elif counted.skipped is not None:
            report.binary.append(counted.path)
        else:
            report.add(counted.path, counted.tokens, counted.bytes)
    if report.binary:
        n = len(report.binary)
        some = ", ".join(report.binary[:3]) + (", ..." if n > 3 else "")
        warn(f"{n} binary {'file' if n == 1 else 'files'} not counted: {some} (--binary does)")


def _told(
    counts: Iterator[count_report.Counted | None],
    counter: count_report.Counter,
    files: list[str],
    quiet: bool,
) -> Iterator[count_report.Counted]:
    """The files' counts; from the second second on, a terminal shows how far they are."""
    from ggtok.cli import progress

    if not progress.shown(quiet):
        yield from (counted for counted in counts if counted is not None)
        return
    begun = time.perf_counter()
    total = 0
    line = None

    def describe(seconds: float) -> str:
        more = f", {number(counter.tokens, 'token')}"
        return progress.of_bytes(counter.bytes, total, seconds, more)

    try:
        for counted in counts:
            seconds = time.perf_counter() - begun
            if seconds > 1:
                if line is None:
                    total = count_report.size_of(files)
                    line = progress.Line(sys.stderr, describe)
                line(seconds)
            if counted is not None:
                yield counted
    finally:
        if line is not None:
            line.clear()


def _status(args: argparse.Namespace, report: count_report.Report) -> int:
    over = args.budget is not None and report.total > args.budget
    if over:
        more = report.total - args.budget
        warn(f"{number(report.total, 'token')}: {more} more than {args.budget}")
    if report.errors:
        return status.ERROR
    return status.FINDING if over else status.OK


COMMAND = Command(
    usage="[MODEL] [PATH]...",
    details="Texts are counted as they stand: nothing is added, and no special tokens are parsed. "
    "Of folders all files are counted that .gitignore doesn't name. .gz, .bz2, .xz and .zst files "
    "are decompressed.",
    words={
        "MODEL": MODEL_FIRST,
        "PATH": "a file, a folder, or - for standard input, which is read if there is none",
    },
    examples=[
        "ggtok count model.gguf src/ --by ext",
        "ggtok count -m user/repo docs/ --include '*.md' --tree --min 1000",
        "git diff | ggtok count model.gguf --budget 8k",
        "ggtok count model.gguf src/ --top 10",
        "ggtok count model.gguf train.jsonl.zst --field text",
        "git ls-files -z | ggtok count model.gguf --files0-from - --total",
        "ggtok count model.gguf --chat request.json",
    ],
    add_arguments=add_arguments,
    run=run,
    finding="the total is above --budget",
)
