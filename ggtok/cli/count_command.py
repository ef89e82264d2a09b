"""``ggtok count``: counts the tokens in files, folders and chats."""

from __future__ import annotations

import argparse
import csv
import io
import os
from collections import Counter as Sums
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import ggtok
from ggtok.base.escape import number, printable
from ggtok.cli import input_texts, messages, progress, standard_output
from ggtok.cli.messages import UsageError, hint, warn
from ggtok.cli.parser import Help, Parser, token_count
from ggtok.cli.shared_options import (
    MODEL_FIRST,
    add_media,
    add_model,
    add_patterns,
    load_model,
    take_model,
)
from ggtok.corpora.documents import Fields
from ggtok.corpora.sources import compression_of

if TYPE_CHECKING:
    from ggtok.cli.counting import Counted, FileCounter

_CONTEXT = "context"  # for --budget: the model's context length
Row = TypeVar("Row", bound=tuple[Any, ...])


def add_arguments(parser: Parser) -> None:
    add_model(parser)
    add = parser.add_argument
    add("-p", "--prompt", metavar="TEXT", help="count this text, besides any files")
    add_patterns(parser)
    add("--no-ignore", action="store_true", help="in folders, also files that .gitignore excludes")
    add("--binary", action="store_true", help="also count files with NUL bytes")
    add("--files0-from", metavar="F", help="read the paths from this file, each ended by NUL")
    add("--field", metavar="NAME", action="append", help="count this field of JSON lines")
    help = "the format of files (default: text, or jsonl with --field)"
    add("--kind", choices=["text", "jsonl"], help=help)
    help = "count the messages or the request in a JSON file, or JSON lines of conversations"
    add("--chat", metavar="FILE", help=help)
    help = "what to do about faulty conversations in JSON lines (default: stop)"
    add("--errors", choices=["raise", "skip"], help=help)
    add("--tools", metavar="FILE", help="with --chat: a JSON list of tools")
    help = "with --chat: the name of one of the model's templates, or a file"
    add("--template", metavar="NAME", help=help)
    add_media(parser, "with --chat: ")
    help = "also count BOS and other added tokens"
    add("--special", "--add-special", action="store_true", help=help)
    add("--parse-special", action="store_true", help="parse the texts of special tokens")
    add("--total", action="store_true", help="print only the total")
    add("--by", choices=["ext", "dir"], help="print sums by extension or folder")
    add("--tree", action="store_true", help="print folders with their sums")
    add("--csv", action="store_true", help="print CSV")
    add("--sort", action="store_true", help="print the lines with most tokens first")
    add("--top", type=token_count, metavar="N", help="print the N lines with most tokens")
    help = "omit lines with fewer tokens"
    add("--min", type=token_count, default=0, metavar="N", help=help)
    help = "exit with status 1 if the total is above N, such as 8k (8000), or the model's context"
    add("--budget", type=_budget, metavar="N|context", help=help)


def run(args: argparse.Namespace) -> int:
    _check_options(args)
    take_model(args)
    paths = [*args.words, *_read_path_list(args.files0_from)]
    if not paths and args.chat is None and args.files0_from is None and args.prompt is None:
        paths = ["-"]
    if paths.count("-") + (args.chat == "-") + (args.tools == "-") > 1:
        raise UsageError("standard input can be read only once")
    files = _files(args, paths)
    report = CountReport()
    tok = load_model(args)
    if args.budget == _CONTEXT:
        args.budget = tok.context_length
        if args.budget is None:
            raise UsageError("--budget context: the file has no context length; give a number")
    if args.prompt is not None:
        text = os.fsencode(args.prompt)
        n = tok.count(text, add_special=args.special, parse_special=args.parse_special)
        report.add("-p", n, len(text))
    if args.chat is not None:
        from ggtok.cli.conversation_counts import count_conversation_file

        with progress.waiting(args.quiet, f"counting {input_texts.name_of(args.chat)}"):
            found = count_conversation_file(tok, args.chat, args)
        report.uncounted_parts = found.uncounted
        report.add(args.chat, found.tokens, found.bytes)
        if found.skipped:
            warn(f"{args.chat}: {number(found.skipped, 'faulty conversation')} skipped")
    _count(tok, args, files, report)
    _hint_of_conversations(args)
    _write(report, args)
    over = args.budget is not None and report.total > args.budget
    if over:
        more = report.total - args.budget
        warn(f"{number(report.total, 'token')}: {more} more than {args.budget}")
    if report.errors:
        return messages.ERROR
    return messages.FINDING if over else messages.OK


def _hint_of_conversations(args: argparse.Namespace) -> None:
    """Says how to count a named file of conversations, which was counted with its JSON."""
    for path in args.words if args.field is None and args.kind is None else ():
        name = path.lower().removesuffix(compression_of(path))
        is_lines = name.endswith((".jsonl", ".ndjson")) and os.path.isfile(path)
        if is_lines and input_texts.begins_with_conversation(path):
            hint(f"{path} is counted as text; --chat {path} counts its conversations")
            return


def _budget(word: str) -> int | str:
    try:
        return word if word == _CONTEXT else token_count(word)
    except ValueError:
        raise UsageError(f"--budget must be a number or 'context', not {word!r}") from None


def _check_options(args: argparse.Namespace) -> None:
    if (args.json, args.csv, args.total, args.tree or args.by is not None).count(True) > 1:
        raise UsageError("--json, --csv, --total, and --tree or --by exclude each other")
    if args.tree and args.by:
        raise UsageError("--tree and --by exclude each other")
    if args.tree and (args.sort or args.top is not None):
        raise UsageError("--tree excludes --sort and --top: its lines are in the order of folders")
    for name in "errors", "tools", "template", "image_tokens", "media_marker":
        if getattr(args, name) is not None and args.chat is None:
            raise UsageError(f"--{name.replace('_', '-')} has no effect without --chat")
    if args.kind == "text" and args.field is not None:
        raise UsageError("--field has no effect with --kind text")
    if args.top is not None and args.top < 1:
        raise UsageError(f"--top must be at least 1, but is {args.top}")


def _read_path_list(file: str | None) -> list[str]:
    """Returns the paths listed in the file of --files0-from."""
    if file is None:
        return []
    names = input_texts.file(file).split(b"\0")
    if not names[-1]:
        names.pop()
    if b"" in names:
        raise UsageError(f"{file}: contains an empty name")
    return [os.fsdecode(name) for name in names]


def _files(args: argparse.Namespace, paths: list[str]) -> list[str]:
    from ggtok.cli.counting import FolderFilter

    choice = FolderFilter(args.include, args.exclude, ignore=not args.no_ignore)
    files = list(choice.files(paths))
    if paths and not files:
        warn("the folders contain no files, or all are ignored or excluded")
    return files


def _count(
    tok: ggtok.Tokenizer, args: argparse.Namespace, files: list[str], report: CountReport
) -> None:
    from ggtok.cli.counting import FileCounter

    counter = FileCounter(
        tok,
        add_special=args.special,
        parse_special=args.parse_special,
        binary=args.binary,
        fields=None if args.field is None and args.kind != "jsonl" else Fields.checked(args.field),
    )
    skipped: dict[str, list[str]] = {"binary": [], "encoding": [], "table": []}
    for counted in _with_progress(counter, files, args.quiet):
        if counted.error is not None:
            messages.say("error", counted.error)
            if not os.path.lexists(counted.path) and counted.path in args.words:
                hint(f"to count {counted.path!r} itself, use -p")
            report.errors += 1
        elif counted.skipped is not None:
            report.binary.append(counted.path)
            skipped[counted.skipped].append(counted.path)
        else:
            report.add(counted.path, counted.tokens, counted.bytes)
    for kind, paths, advice in (
        ("binary", skipped["binary"], "--binary counts them"),
        ("UTF-16 or UTF-32", skipped["encoding"], "'iconv -f UTF-16 -t UTF-8' converts them"),
        ("Parquet or Arrow", skipped["table"], "'ggtok encode' reads them"),
    ):
        messages.warn_of_files(kind, paths, "not counted", advice)


def _with_progress(counter: FileCounter, files: list[str], quiet: bool) -> Iterator[Counted]:
    """Yields the count for each file, and shows a progress line."""
    total: int | None = None

    def describe(seconds: float) -> str:
        nonlocal total
        total = _size_of(files) if total is None else total
        more = f", {number(counter.tokens, 'token')}"
        return progress.of_bytes(counter.bytes, total, seconds, more)

    with progress.line(quiet, describe) as show:
        for seconds, counted in progress.time_items(counter.count(files)):
            if show is not None and seconds > progress.SILENT:
                show(seconds)
            if counted is not None:
                yield counted


def _size_of(files: list[str]) -> int:
    """Returns the total size of the files whose size is known, or 0 if a file is compressed."""
    total = 0
    for path in files:
        if compression_of(path):
            return 0
        try:
            total += os.stat(path).st_size
        except OSError:
            continue
    return total


# ---- output ----


class CountReport:
    """The command's result.

    Attributes:
        files: the path, tokens and bytes of each file.
        binary: the paths of skipped files.
        errors: the number of files that couldn't be read.
        uncounted_parts: how many images, audio and video of the chat weren't counted.
        total: the number of tokens in all files.
    """

    def __init__(self) -> None:
        self.files: list[tuple[str, int, int]] = []
        self.binary: list[str] = []
        self.errors = 0
        self.uncounted_parts = 0
        self.total = 0

    def add(self, path: str, tokens: int, size: int) -> None:
        self.files.append((standard_output.utf8(path), tokens, size))
        self.total += tokens


def _write(report: CountReport, args: argparse.Namespace) -> None:
    files = _select_rows(report.files, args, tokens=1)
    if args.total:
        standard_output.write(b"%d\n" % report.total)
    elif args.json:
        _write_json(report, files, args)
    elif args.csv:
        _write_csv(files)
    elif args.tree:
        _write_lines(_tree(report, args.min), report)
    elif args.by is not None:
        rows = [(n, name) for name, n in _sums(report, args.by)]
        _write_lines(_select_rows(rows, args, tokens=0), report)
    else:
        _write_lines([(n, printable(p)) for p, n, _ in files], report)


def _select_rows(rows: list[Row], args: argparse.Namespace, tokens: int) -> list[Row]:
    """Returns the rows that --min, --sort and --top select. `tokens` is the index of the column
    with the number of tokens."""
    rows = [row for row in rows if row[tokens] >= args.min]
    if args.sort or args.top is not None:
        rows.sort(key=lambda row: -row[tokens])
    return rows[: args.top]


def _write_lines(rows: list[tuple[int, str]], report: CountReport) -> None:
    if len(report.files) != 1:
        rows.append((report.total, "total"))
    width = max((len(str(n)) for n, _ in rows), default=0)
    for n, name in rows:
        standard_output.write_line(f"{n:>{width}}  {name}")


def _sums(report: CountReport, by: str) -> list[tuple[str, int]]:
    """Sums the tokens by extension or folder, and sorts the sums, largest first."""
    sums: Sums[str] = Sums()
    for path, n, _ in report.files:
        if by == "ext":
            name = os.path.splitext(os.path.basename(path))[1] or "(none)"
        else:
            name = os.path.dirname(path) or "."
        sums[printable(name)] += n
    return sums.most_common()


def _write_json(
    report: CountReport, files: list[tuple[str, int, int]], args: argparse.Namespace
) -> None:
    value = {
        "total": report.total,
        "files": [{"path": path, "tokens": n, "bytes": size} for path, n, size in files],
        "binary": report.binary,
    }
    if report.uncounted_parts:
        value["uncounted_parts"] = report.uncounted_parts
    if args.budget is not None:
        value["over_budget"] = report.total > args.budget
    standard_output.write_json(value, indent=2)


def _write_csv(files: list[tuple[str, int, int]]) -> None:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("path", "tokens", "bytes"))
    rows.writerows(files)
    standard_output.write(text.getvalue().encode("utf-8", "surrogateescape"))


class _Folder:
    def __init__(self) -> None:
        self.tokens = 0
        self.folders: dict[str, _Folder] = {}
        self.files: list[tuple[str, int]] = []


def _tree(report: CountReport, least: int) -> list[tuple[int, str]]:
    """Returns the number of tokens and the name, indented by depth, of each folder and file."""
    top = _Folder()
    for path, n, _ in report.files:
        *folders, name = path.split("/")
        at = top
        for folder in folders:
            at = at.folders.setdefault(folder, _Folder())
            at.tokens += n
        at.files.append((name, n))
    rows: list[tuple[int, str]] = []
    waiting: list[tuple[int, str, _Folder | int]] = [(-1, "", top)]  # a stack: paths may be deep
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
            rows.append((n, "  " * depth + printable(name)))
    return rows


HELP = Help(
    usage="[MODEL] [PATH]...",
    details="Counts texts as plain text, without added tokens. Of folders, counts all files that "
    ".gitignore doesn't exclude. .gz, .bz2, .xz and .zst files are decompressed.",
    words={
        "MODEL": MODEL_FIRST,
        "PATH": "a file, a folder, a glob, or - for standard input (the default)",
    },
    examples=[
        "ggtok count model.gguf src/ --by ext",
        "ggtok count -m user/repo docs/ --include '*.md' --tree --min 1000",
        "git diff | ggtok count model.gguf --budget 8k",
        "ggtok count model.gguf src/ --top 10",
        "ggtok count model.gguf train.jsonl.zst --field text",
        "git ls-files -z | ggtok count model.gguf --files0-from - --total",
        "ggtok count model.gguf --chat request.json --budget context",
        "ggtok count model.gguf --chat train.jsonl.gz",
        "ggtok count model.gguf -p 'Hello, world!'",
    ],
    finding="the total is above --budget",
)
