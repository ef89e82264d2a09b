"""``ggtok train``: trains a vocabulary on text files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ggtok.base.files import check_target
from ggtok.cli import input_texts, progress, standard_output
from ggtok.cli.messages import UsageError, reason
from ggtok.cli.parser import Help, Parser, token_count
from ggtok.cli.shared_options import add_corpus, add_output_options, add_words
from ggtok.corpora.sources import GlobFilter, Search
from ggtok.errors import TemplateError
from ggtok.native import jinja
from ggtok.vocabularies.contents import TrainingReport
from ggtok.vocabularies.corpus import NamedText, files_of
from ggtok.vocabularies.counts import KIND, Progress, WordCounts, count_words
from ggtok.vocabularies.train import train
from ggtok.vocabularies.writers import GGUF

# Options that are passed under the same names to count_words and train, and those only for train.
_COUNTING = (
    *("model", "pre", "documents", "kind", "field", "errors", "max_words", "threads"),
    "progress",
)
_TRAINING = (
    *("rule", "bos", "eos", "unk", "pad", "alphabet", "character_coverage", "split_digits"),
    *("min_frequency", "max_token_length"),
)


def add_arguments(parser: Parser) -> None:
    add_words(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="the file to write: its name ends in .gguf")
    help = "size of the vocabulary, including special tokens"
    add("-n", "--vocab-size", type=token_count, metavar="N", help=help)
    add("--model", choices=["bpe", "spm", "ugm"], default="bpe", help="default: bpe")
    add("--pre", default="llama-bpe", metavar="NAME", help="pre-tokenizer (default: llama-bpe)")
    add(
        "--rule",
        choices=["huggingface", "bytes", "sentencepiece"],
        help="the order of equally frequent pairs (default: by the model)",
    )
    help = "a special token; may be repeated"
    add("--special", action="append", default=[], metavar="TEXT", help=help)
    for name in ("bos", "eos", "unk", "pad"):
        add(f"--{name}", metavar="TEXT", help=f"the {name.upper()} token")
    add("--chat-template", metavar="FILE", help="a file with a chat template")
    add("--alphabet", choices=["bytes", "seen"], default="bytes", help="default: all bytes")
    add("--no-byte-fallback", action="store_true", help="no byte tokens (spm)")
    add("--character-coverage", type=float, default=1.0, metavar="SHARE", help="default: 1 (spm)")
    add("--split-digits", action="store_true", help="never merge digits (spm)")
    help = "merge only pairs that occur at least N times (default: 2)"
    add("--min-frequency", type=token_count, default=2, metavar="N", help=help)
    help = "tokens must be shorter than N bytes (bpe)"
    add("--max-token-length", type=token_count, metavar="N", help=help)
    add("--documents", choices=["lines", "whole"], default="lines", help="default: lines")
    add_corpus(parser)
    add(
        "--max-words",
        type=token_count,
        metavar="N",
        help="bound memory by dropping the rarest words",
    )
    add("--held-out", action="append", metavar="PATH", help="text to measure compression on")
    add("--save-counts", metavar="FILE", help="save the word counts; without -o, do only that")
    add("--counts", action="store_true", help="each PATH contains counts from --save-counts")
    add_output_options(parser)


def run(args: argparse.Namespace) -> None:
    if not args.words:
        raise UsageError("no text: give files, or - for standard input")
    if args.output is None and args.save_counts is None:
        raise UsageError("nothing to write: give -o FILE or --save-counts FILE")
    if args.output is not None and args.vocab_size is None:
        raise UsageError("no vocabulary size: give -n N (--vocab-size N)")
    if args.output is not None and not args.output.endswith(".gguf"):
        raise UsageError(f"{args.output}: the name must end in .gguf")
    _check_outputs(args)
    template = None if args.chat_template is None else _template(args.chat_template)
    with progress.line(args.quiet, _describe_progress) as args.progress:
        report = _train(args, template)
    if args.json:
        if report is not None:
            standard_output.write_json(_as_json(report), indent=2)
        return
    lines = [] if report is None else str(report).split("\n")
    for line in [*lines, *standard_output.lines_of_files(args.save_counts, args.output)]:
        standard_output.write_line(line)


def _check_outputs(args: argparse.Namespace) -> None:
    """Refuses output files that can't be written, before the work begins."""
    inputs = [*args.words, *(args.held_out or ())]
    inputs += [] if args.chat_template is None else [args.chat_template]
    for path, kind in (args.output, GGUF), (args.save_counts, KIND):
        if path is not None:
            check_target(path, kind, inputs=inputs, force=args.force)


def _template(path: str) -> str:
    """Reads the chat template in a file, and checks that it compiles."""
    data = input_texts.file(path)
    try:
        text = data.decode()
        jinja.compile(text, "llama.cpp")
    except UnicodeDecodeError as e:
        raise UsageError(f"{path}: not UTF-8 at byte {e.start}") from None
    except TemplateError as e:
        raise UsageError(f"{path}: {reason(e)}") from None
    return text


def _train(args: argparse.Namespace, template: str | None) -> TrainingReport | None:
    options = {name: getattr(args, name) for name in _COUNTING}
    sources: object = _merged_counts(args.words) if args.counts else _sources(args, args.words)
    if not args.counts and args.save_counts is not None:
        sources = count_words(sources, **options)
    if args.save_counts is not None and isinstance(sources, WordCounts):
        sources.save(args.save_counts, force=args.force)
    if args.output is None:
        return None
    vocabulary = train(
        sources,
        args.vocab_size,
        special_tokens=args.special,
        chat_template=template,
        byte_fallback=not args.no_byte_fallback,
        held_out=None if args.held_out is None else _sources(args, args.held_out),
        **options,
        **{name: getattr(args, name) for name in _TRAINING},
    )
    vocabulary.save(args.output, force=args.force)
    report = vocabulary.report
    assert isinstance(report, TrainingReport)
    return report


def _as_json(report: TrainingReport) -> dict[str, object]:
    return {
        **report.__dict__,
        "bytes_per_token": report.bytes_per_token,
        "held_out_bytes_per_token": report.held_out_bytes_per_token,
    }


def _sources(args: argparse.Namespace, words: Sequence[str]) -> list[object]:
    """Returns the files that the words name, except the command's outputs."""
    own = [os.path.abspath(path) for path in (args.output, args.save_counts) if path is not None]
    search = Search(own, GlobFilter(args.include, args.exclude), args.kind)
    sources: list[object] = []
    for word in words:
        if word == "-":
            sources.append(NamedText(input_texts.STDIN, _standard_input()))
        else:
            sources += map(Path, files_of(word, search))
    return sources


def _standard_input() -> Iterator[bytes]:
    with input_texts.blocks("-") as blocks:
        yield from blocks


def _merged_counts(paths: list[str]) -> WordCounts:
    first, *others = map(WordCounts.load, paths)
    first.merge(*others)
    return first


def _describe_progress(p: Progress) -> str:
    seconds = max(p.seconds, 1e-9)
    if p.phase == "count":
        return f"counting words: {p.bytes / 1e6:.0f} MB, {p.bytes / seconds / 1e6:.0f} MB/s"
    left = (p.of - p.tokens) * seconds / max(p.tokens, 1)
    return (
        f"merging: {p.tokens} of {p.of} tokens, {p.tokens / seconds:.0f}/s, "
        f"{left:.0f} s left, pair count {p.count}"
    )


HELP = Help(
    usage="PATH... -o OUT.gguf --vocab-size N",
    details="Trains byte-level BPE, SentencePiece's BPE or Unigram, with the merges that Hugging "
    "Face's trainer or sentencepiece would make. ggtok and llama.cpp load the GGUF file.",
    words={
        "PATH": "a file, a folder or a glob: UTF-8 text, JSON lines, Parquet or Arrow files, also "
        "as .gz, .bz2, .xz or .zst; - for standard input"
    },
    examples=[
        "ggtok train corpus/*.txt -o own.gguf --vocab-size 32000",
        "ggtok train a.txt -o own.gguf -n 8000 --pre qwen2 --special '<|im_end|>'",
        "ggtok train a.txt -o own.gguf -n 8000 --model spm --split-digits",
        "ggtok train shards/*.jsonl.zst --field content -o own.gguf -n 32000",
        "ggtok train a.txt --save-counts a.counts",
        "ggtok train --counts a.counts b.counts -o own.gguf -n 50000",
    ],
)
