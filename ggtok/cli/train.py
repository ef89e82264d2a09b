"""``ggtok train``: a vocabulary of one's own, from files of text."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ggtok.base.files import check
from ggtok.cli import reading, writing
from ggtok.cli.arguments import (
    Command,
    Parser,
    add_field,
    add_force,
    add_json,
    add_patterns,
    add_words,
)
from ggtok.cli.progress import Line, shown
from ggtok.cli.status import UsageError
from ggtok.corpora.patterns import Choice
from ggtok.corpora.sources import Search
from ggtok.errors import file_error
from ggtok.vocabularies.contents import TrainingReport
from ggtok.vocabularies.corpus import Named, files_of
from ggtok.vocabularies.counts import KIND, Progress, WordCounts, count_words
from ggtok.vocabularies.train import train
from ggtok.vocabularies.writers import GGUF


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_words(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="the file to write: its name ends in .gguf")
    add(
        "-n",
        "--vocab-size",
        type=int,
        metavar="N",
        help="size of the vocabulary, special tokens included",
    )
    add("--model", choices=["bpe", "spm", "ugm"], default="bpe", help="default: bpe")
    add("--pre", default="llama-bpe", metavar="NAME", help="pre-tokenizer (default: llama-bpe)")
    add(
        "--rule",
        choices=["huggingface", "bytes", "sentencepiece"],
        help="which of equally frequent pairs comes first (default: by the model)",
    )
    add(
        "--special",
        action="append",
        default=[],
        metavar="TEXT",
        help="a special token; may be given several times",
    )
    for name in ("bos", "eos", "unk", "pad"):
        add(f"--{name}", metavar="TEXT", help=f"the {name.upper()} token")
    add("--chat-template", metavar="FILE", help="a file with a chat template")
    add("--alphabet", choices=["bytes", "seen"], default="bytes", help="default: all bytes")
    add("--no-byte-fallback", action="store_true", help="no byte tokens (spm)")
    add("--character-coverage", type=float, default=1.0, metavar="SHARE", help="default: 1 (spm)")
    add("--split-digits", action="store_true", help="never merge digits (spm)")
    add(
        "--min-frequency",
        type=int,
        default=2,
        metavar="N",
        help="merge only pairs that occur so often (2)",
    )
    add(
        "--max-token-length",
        type=int,
        metavar="N",
        help="tokens must be shorter than this, in bytes (bpe)",
    )
    add("--documents", choices=["lines", "whole"], default="lines", help="default: lines")
    add_patterns(parser)
    add_field(parser)
    add(
        "--errors",
        choices=["raise", "replace", "skip"],
        default="raise",
        help="what to do about documents that are not UTF-8, empty or missing (default: stop)",
    )
    add("--max-words", type=int, metavar="N", help="bound memory by dropping the rarest words")
    add("--held-out", action="append", metavar="PATH", help="text to measure compression on")
    add("--threads", type=int, default=0, metavar="N", help="default: as many as cores")
    add("--save-counts", metavar="FILE", help="save the word counts; without -o, nothing else")
    add("--counts", action="store_true", help="each PATH holds counts written by --save-counts")
    add_force(parser)


def run(args: argparse.Namespace) -> None:
    if not args.words:
        raise UsageError("no text: give files, or - for standard input")
    if args.output is None and args.save_counts is None:
        raise UsageError("nothing to write: give -o FILE or --save-counts FILE")
    if args.output is not None and args.vocab_size is None:
        raise UsageError("no size: give --vocab-size N")
    if args.output is not None and not args.output.endswith(".gguf"):
        raise UsageError(f"{args.output}: the name must end in .gguf")
    _check_outputs(args)
    line = Line(sys.stderr, _describe) if shown(args.quiet) else None
    try:
        report = _train(args, line)
    finally:
        if line is not None:
            line.clear()
    if args.json:
        if report is not None:
            writing.write_json(_as_json(report), indent=2)
        return
    if report is not None:
        writing.write(f"{report}\n".encode())
    for path in (args.save_counts, args.output):
        if path is not None:
            writing.write_made(path)


def _check_outputs(args: argparse.Namespace) -> None:
    """Refuses what couldn't be written before the work is done."""
    inputs = [*args.words, *(args.held_out or ())]
    inputs += [] if args.chat_template is None else [args.chat_template]
    if args.output is not None:
        check(args.output, GGUF, inputs=inputs, force=args.force)
    if args.save_counts is not None:
        check(args.save_counts, KIND, inputs=inputs, force=args.force)


def _train(args: argparse.Namespace, line: Line | None) -> TrainingReport | None:
    template = None if args.chat_template is None else _read(args.chat_template)
    sources: object = _merged(args.words) if args.counts else _sources(args, args.words)
    if not args.counts and args.save_counts is not None:
        sources = count_words(
            sources,
            model=args.model,
            pre=args.pre,
            documents=args.documents,
            kind=args.kind,
            field=args.field,
            errors=args.errors,
            max_words=args.max_words,
            threads=args.threads,
            progress=line,
        )
    if args.save_counts is not None and isinstance(sources, WordCounts):
        sources.save(args.save_counts, force=args.force)
    if args.output is None:
        return None
    vocabulary = train(
        sources,
        args.vocab_size,
        model=args.model,
        pre=args.pre,
        rule=args.rule,
        special_tokens=args.special,
        bos=args.bos,
        eos=args.eos,
        unk=args.unk,
        pad=args.pad,
        chat_template=template,
        alphabet=args.alphabet,
        byte_fallback=not args.no_byte_fallback,
        character_coverage=args.character_coverage,
        split_digits=args.split_digits,
        min_frequency=args.min_frequency,
        max_token_length=args.max_token_length,
        documents=args.documents,
        kind=args.kind,
        field=args.field,
        errors=args.errors,
        max_words=args.max_words,
        held_out=None if args.held_out is None else _sources(args, args.held_out),
        threads=args.threads,
        progress=line,
    )
    vocabulary.save(args.output, force=args.force)
    report = vocabulary.report
    assert isinstance(report, TrainingReport)
    return report


def _as_json(report: TrainingReport) -> dict[str, object]:
    """The report, for --json."""
    data: dict[str, object] = json.loads(json.dumps(report.__dict__))
    data["bytes_per_token"] = report.bytes_per_token
    data["held_out_bytes_per_token"] = report.held_out_bytes_per_token
    return data


def _sources(args: argparse.Namespace, words: Sequence[str]) -> list[object]:
    """The files that the words name, but for what the command writes."""
    own = [os.path.abspath(path) for path in (args.output, args.save_counts) if path is not None]
    search = Search(own, Choice(args.include, args.exclude), args.kind)
    sources: list[object] = []
    for word in words:
        if word == "-":
            sources.append(Named("standard input", _standard_input()))
        else:
            sources += map(Path, files_of(word, search))
    return sources


def _standard_input() -> Iterator[bytes]:
    with reading.blocks("-") as blocks:
        yield from blocks


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None
    except UnicodeDecodeError as e:
        raise UsageError(f"{path}: not UTF-8 at byte {e.start}") from None


def _merged(paths: list[str]) -> WordCounts:
    first, *others = [WordCounts.load(path) for path in paths]
    first.merge(*others)
    return first


def _describe(p: Progress) -> str:
    """Progress in words."""
    seconds = max(p.seconds, 1e-9)
    if p.phase == "count":
        return f"counting words: {p.bytes / 1e6:.0f} MB, {p.bytes / seconds / 1e6:.0f} MB/s"
    left = (p.of - p.tokens) * seconds / max(p.tokens, 1)
    return (
        f"merging: {p.tokens} of {p.of} tokens, {p.tokens / seconds:.0f}/s, "
        f"{left:.0f} s left, pair count {p.count}"
    )


COMMAND = Command(
    usage="PATH... -o OUT.gguf --vocab-size N",
    details="Byte-level BPE or SentencePiece's BPE, with the merges that Hugging Face's trainer or "
    "sentencepiece would make, in a GGUF file that ggtok and llama.cpp load.",
    words={
        "PATH": "a file, a folder or a glob: UTF-8 text, JSON lines, Parquet or Arrow files, .gz, "
        ".bz2, .xz, .zst; - for standard input"
    },
    examples=[
        "ggtok train corpus/*.txt -o own.gguf --vocab-size 32000",
        "ggtok train a.txt -o own.gguf -n 8000 --pre qwen2 --special '<|im_end|>'",
        "ggtok train a.txt -o own.gguf -n 8000 --model spm --split-digits",
        "ggtok train shards/*.jsonl.zst --field content -o own.gguf -n 32000",
        "ggtok train a.txt --save-counts a.counts",
        "ggtok train --counts a.counts b.counts -o own.gguf -n 50000",
    ],
    add_arguments=add_arguments,
    run=run,
)
