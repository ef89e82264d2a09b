"""``ggtok encode``: files of text to files of ids."""

from __future__ import annotations

import argparse
import glob
import os
import sys

from ggtok.base.escape import number
from ggtok.cli import escapes, status, writing
from ggtok.cli.arguments import (
    MODEL_FIRST,
    Command,
    Parser,
    add_field,
    add_json,
    add_model,
    add_patterns,
    check_output,
    load,
    no_words,
    take_model,
)
from ggtok.cli.messages import say, warn
from ggtok.cli.progress import Line, described, shown, waiting
from ggtok.cli.status import UsageError
from ggtok.corpora.summary import EncodeProgress, Summary


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_model(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="OUT", help="the file of ids to write")
    formats = ["raw", "megatron", "npy", "arrow"]
    add("--format", choices=formats, help="default: by OUT's extension, else raw: plain ids")
    types = ["auto", "uint16", "uint32", "int32"]
    add("--dtype", choices=types, default="auto", help="of the ids (default: what fits)")
    add(
        "--separator",
        metavar="TEXT",
        help=r"what stands between documents in text files, with \n \t \xHH (default: each file "
        "is one)",
    )
    add_patterns(parser)
    add_field(parser)
    add("--no-special", action="store_true", help="add no BOS, nor what else the vocabulary adds")
    add("--no-eos", action="store_true", help="don't end each document with EOS")
    add(
        "--errors",
        choices=["raise", "replace", "skip"],
        default="raise",
        help="what to do about documents that are not UTF-8, empty or missing (default: stop)",
    )
    add("--threads", type=int, default=0, metavar="N", help="default: as many as cores")
    add("--shards", type=int, metavar="N", help="write N outputs, of whole files each")
    add("--restart", action="store_true", help="begin again, and replace the older output")
    add("--force", action="store_true", help="also replace files that 'encode' has not written")
    add("--verify", metavar="OUT", help="only compare a finished output with its manifest")


def run(args: argparse.Namespace) -> int | None:
    if args.verify is not None:
        return _verify(args)
    take_model(args)
    if not args.words:
        raise UsageError("no text: give files, folders or globs")
    if args.output is None:
        no_file = not glob.has_magic(args.words[0]) and not os.path.lexists(args.words[0])
        meant = "; to print the ids of a text, use 'ggtok tokenize'" if no_file else ""
        raise UsageError(f"nothing to write: give -o OUT{meant}")
    check_output(args.output)
    if "-" in args.words:
        raise UsageError(
            "standard input can't be encoded: a run that is stopped reads its sources again"
        )
    if args.separator == "":
        raise UsageError("--separator needs a text, but it is empty")
    if args.threads < 0:
        raise UsageError(f"--threads must not be negative, but is {args.threads}")
    separator = args.separator
    if separator is not None:
        separator = escapes.replace(separator.encode("utf-8", "surrogateescape"))
    line = Line(sys.stderr, describe) if shown(args.quiet) else None
    tok = load(args)
    try:
        summary = tok.encode_files(
            args.words,
            args.output,
            format=args.format,
            dtype=args.dtype,
            include=args.include,
            exclude=args.exclude,
            kind=args.kind,
            separator=separator,
            field=args.field,
            add_special=not args.no_special,
            eos=not args.no_eos,
            errors=args.errors,
            threads=args.threads,
            shards=args.shards,
            resume=not args.restart,
            force=args.force,
            progress=line,
        )
    except KeyboardInterrupt:
        if not args.quiet:
            say("note", "interrupted: run the same command to continue")
        raise
    finally:
        if line is not None:
            line.clear()
    if summary.resumed and not summary.already_complete:
        ids = number(summary.resumed, "id")
        warn(f"went on after {ids} of the interrupted run; --restart begins again")
    if args.json:
        writing.write_json(summary.as_dict(), indent=2)
    else:
        writing.write(_report(summary, args).encode())
    return None


def _verify(args: argparse.Namespace) -> int:
    from ggtok.corpora.shards import verify_all

    no_words(args)
    with waiting(args.quiet, f"reading the files of {args.verify}"):
        counts, files, faults = verify_all(args.verify)
    if args.json:
        writing.write_json({"files": files, "faults": faults}, indent=2)
    elif faults:
        for fault in faults:
            writing.write_line(fault)
    else:
        what = f"{number(counts.ids, 'id')} of {number(counts.documents, 'document')}"
        writing.write_line(f"{args.verify}: complete: {what}, as they were written")
    return status.FINDING if faults else status.OK


def _report(summary: Summary, args: argparse.Namespace) -> str:
    faults = "".join(
        f", {n} {what}"
        for n, what in (
            (summary.invalid_utf8, "not UTF-8"),
            (summary.empty, "empty"),
            (summary.missing, "without the field"),
            (summary.malformed, "malformed"),
        )
        if n
    )
    faults += f" ({summary.skipped} of these skipped)" if summary.skipped else ""
    name, *others = summary.files
    if args.shards is not None:
        name, others = f"{args.output} in {number(args.shards, 'shard')}", [name, *others]
    name += " is already complete" if summary.already_complete else ""
    return (
        f"{name}: {number(summary.ids, 'id')} ({summary.dtype}) of "
        f"{number(summary.documents, 'document')}, {writing.size(summary.bytes)} in "
        f"{number(summary.sources, 'file')}{faults}\n" + "".join(f"{other}\n" for other in others)
    )


def describe(p: EncodeProgress) -> str:
    """Progress in words."""
    share = min(p.read / p.total, 1.0) if p.total else 1.0
    seconds = max(p.seconds, 1e-9)
    now = p.read - p.read_before
    left = (p.total - p.read) * seconds / now if now > 0 else 0.0
    speed = (p.bytes - p.bytes_before) / seconds / 1e6
    rest = f"{writing.size(p.bytes)}, {speed:.0f} MB/s, {number(p.ids, 'id')}"
    return described(share, left, rest)


COMMAND = Command(
    usage="[MODEL] PATH... -o OUT",
    details="Documents are text files, or parts of them, JSON lines, and rows of Parquet and Arrow "
    "files; .gz, .bz2, .xz and .zst are read. An interrupted run goes on when the same command is "
    "given again; OUT appears when it is complete.",
    words={"MODEL": MODEL_FIRST, "PATH": "a file, a folder or a glob"},
    examples=[
        "ggtok encode model.gguf corpus/ -o corpus.bin",
        r"ggtok encode model.gguf book.txt -o book.npy --separator '\n\n'",
        "ggtok encode model.gguf '**/*.jsonl.zst' -o web --format megatron --errors skip",
        "ggtok encode --verify corpus.bin",
        "ggtok encode model.gguf shards/*.parquet -o ids.arrow --field content",
    ],
    add_arguments=add_arguments,
    run=run,
    finding="with --verify, the output isn't what was written",
)
