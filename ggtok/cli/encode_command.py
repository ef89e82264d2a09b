"""``ggtok encode``: encodes text files to files of ids."""

from __future__ import annotations

import argparse
import glob
import os
from typing import Any

import ggtok
from ggtok.base.escape import number
from ggtok.cli import progress, standard_output
from ggtok.cli.input_texts import begins_with_conversation, unescape_argument
from ggtok.cli.messages import FINDING, OK, UsageError, hint, say, warn
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import (
    MODEL_FIRST,
    add_corpus,
    add_model,
    add_sampling,
    check_output,
    check_sampling,
    load_model,
    no_words,
    take_model,
)
from ggtok.corpora.summary import EncodeProgress, Summary
from ggtok.errors import DocumentError


def add_arguments(parser: Parser) -> None:
    add_model(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="OUT", help="the file of ids to write")
    formats = ["raw", "megatron", "npy", "arrow"]
    add("--format", choices=formats, help="default: by OUT's extension, or raw (only the ids)")
    types = ["auto", "uint16", "uint32", "int32"]
    add("--dtype", choices=types, default="auto", help="of the ids (default: the smallest)")
    add(
        "--separator",
        metavar="TEXT",
        help=r"the separator of documents in text files, with \n \t \xHH (default: each file is "
        "one document)",
    )
    add_corpus(parser)
    help = "the lines of JSON lines are conversations; also write masks of the assistant's tokens"
    add("--chat", action="store_true", help=help)
    help = "with --chat: the name of one of the model's templates, or a file"
    add("--template", metavar="NAME", help=help)
    help = "with --chat: render as llama-server (default) or as transformers"
    add("--like", choices=["llama.cpp", "transformers"], help=help)
    help = "with --chat: write no masks of the assistant's tokens"
    add("--no-mask", action="store_true", help=help)
    help = "add no BOS or other tokens to documents"
    add("--no-special", "--no-add-special", action="store_true", help=help)
    add("--no-eos", action="store_true", help="don't end each document with EOS")
    add_sampling(parser)
    add("--shards", type=int, metavar="N", help="write N outputs, each of whole files")
    add("--restart", action="store_true", help="start over, and replace the older output")
    add("--force", action="store_true", help="also replace files that 'encode' didn't write")
    add("--verify", metavar="OUT", help="only compare a finished output with its manifest")


def run(args: argparse.Namespace) -> int | None:
    if args.verify is not None:
        return _verify(args)
    take_model(args)
    _check_options(args)
    tok = load_model(args)
    with progress.line(args.quiet, _describe_progress) as line:
        try:
            summary = tok.encode_files(
                args.words,
                args.output,
                chat=_chat_options(tok, args),
                separator=args.separator and unescape_argument(args.separator),
                add_special=not args.no_special,
                eos=not args.no_eos,
                resume=not args.restart,
                progress=line,
                seed=args.seed or 0,
                **{name: getattr(args, name) for name in _PASSED},
            )
        except DocumentError as e:
            if not args.chat:
                _hint_of_field(e, args)
            raise
        except KeyboardInterrupt:
            if not args.quiet:
                say("note", f"interrupted: {_advice(args)}")
            raise
    if summary.resumed and not summary.already_complete:
        ids = number(summary.resumed, "id")
        warn(f"resumed the interrupted run after {ids}; --restart starts over")
    standard_output.write_result(args, summary.as_dict(), _report(summary, args))
    return None


# Options that are passed to encode_files under the same names.
_PASSED = (
    *("format", "dtype", "include", "exclude", "kind", "field", "errors", "threads", "shards"),
    *("force", "dropout", "alpha"),
)


def _check_options(args: argparse.Namespace) -> None:
    if not args.words:
        raise UsageError("no text: give files, folders or globs")
    if args.output is None:
        is_text = not glob.has_magic(args.words[0]) and not os.path.lexists(args.words[0])
        advice = "; to print the ids of a text, use 'ggtok tokenize'" if is_text else ""
        raise UsageError(f"nothing to write: give -o OUT{advice}")
    check_output(args.output)
    if "-" in args.words:
        raise UsageError(
            "can't encode standard input, because resuming a run reads its sources again"
        )
    check_sampling(args)
    if args.separator == "":
        raise UsageError("--separator must not be empty")
    given = {
        **{name: getattr(args, name) is not None for name in ("separator", "field")},
        **{name: getattr(args, name) for name in ("no_special", "no_eos")},
    }
    if args.chat and any(given.values()):
        name = next(name for name in given if given[name]).replace("_", "-")
        raise UsageError(f"--{name} has no effect with --chat: the chat template decides")
    for name in "template", "like", "no_mask":
        if getattr(args, name) not in (None, False) and not args.chat:
            raise UsageError(f"--{name.replace('_', '-')} has no effect without --chat")
    if args.threads < 0:
        raise UsageError(f"--threads must not be negative, but is {args.threads}")


def _chat_options(tok: ggtok.Tokenizer, args: argparse.Namespace) -> bool | dict[str, Any]:
    if not args.chat:
        return False
    from ggtok.cli.chat_command import template_of

    options: dict[str, Any] = {"template": template_of(tok, args)[0], "like": args.like}
    if args.no_mask:
        options["mask"] = False
    return {name: value for name, value in options.items() if value is not None} or True


def _hint_of_field(error: DocumentError, args: argparse.Namespace) -> None:
    """Says how to encode a file whose records lack the field, or aren't objects."""
    if error.kind in ("missing", "malformed") and begins_with_conversation(error.path):
        hint("to encode lines that are conversations, use --chat")
    elif error.kind == "missing" and args.field is None:
        hint("to encode a field of another name, use --field NAME")


def _advice(args: argparse.Namespace) -> str:
    """Returns what to do after an interruption. A run without a checkpoint leaves no journal."""
    from ggtok.corpora.shards import shard_names

    outs = [args.output] if args.shards is None else shard_names(args.output, args.shards)
    kept = [f"{out}.journal" for out in outs]
    kept += [f"{out}.manifest.json" for out in outs[:-1]]  # the manifests of complete shards
    if any(map(os.path.lexists, kept)):
        return "run the same command to continue"
    return "nothing was kept, because there was no checkpoint yet; the same command starts over"


def _verify(args: argparse.Namespace) -> int:
    from ggtok.corpora.shards import verify_all

    no_words(args)
    with progress.waiting(args.quiet, f"reading the files of {args.verify}"):
        counts, files, faults = verify_all(args.verify)
    what = f"{number(counts.ids, 'id')} of {number(counts.documents, 'document')}"
    complete = f"{args.verify}: complete and undamaged: {what}"
    standard_output.write_result(args, {"files": files, "faults": faults}, faults or [complete])
    return FINDING if faults else OK


def _report(summary: Summary, args: argparse.Namespace) -> list[str]:
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
    documents, files = number(summary.documents, "document"), number(summary.sources, "file")
    return [
        f"{name}: {number(summary.ids, 'id')} ({summary.dtype}) of {documents}, "
        f"{standard_output.size(summary.bytes)} in {files}{faults}",
        *others,
    ]


def _describe_progress(p: EncodeProgress) -> str:
    share = min(p.read / p.total, 1.0) if p.total else 1.0
    seconds = max(p.seconds, 1e-9)
    now = p.read - p.read_before
    left = (p.total - p.read) * seconds / now if now > 0 else 0.0
    speed = (p.bytes - p.bytes_before) / seconds / 1e6
    rest = f"{standard_output.size(p.bytes)}, {speed:.0f} MB/s, {number(p.ids, 'id')}"
    return progress.bar(share, left, rest)


HELP = Help(
    usage="[MODEL] PATH... -o OUT",
    details="Documents are text files or parts of them, JSON lines, and rows of Parquet and Arrow "
    "files; .gz, .bz2, .xz and .zst files are decompressed. To resume an interrupted run, give "
    "the same command again; OUT appears when it is complete.",
    words={"MODEL": MODEL_FIRST, "PATH": "a file, a folder or a glob"},
    examples=[
        "ggtok encode model.gguf corpus/ -o corpus.bin",
        r"ggtok encode model.gguf book.txt -o book.npy --separator '\n\n'",
        "ggtok encode model.gguf '**/*.jsonl.zst' -o web --format megatron --errors skip",
        "ggtok encode model.gguf train.jsonl.gz -o train.npy --chat",
        "ggtok encode --verify corpus.bin",
        "ggtok encode model.gguf shards/*.parquet -o ids.arrow --field content",
        "ggtok encode model.gguf corpus/ -o epoch2.bin --dropout 0.1 --seed 2",
    ],
    finding="with --verify, the output is damaged",
)
