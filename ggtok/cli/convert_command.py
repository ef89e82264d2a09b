"""``ggtok convert``: converts another library's vocabulary for llama.cpp."""

from __future__ import annotations

import argparse

from ggtok.base.escape import number as counted
from ggtok.cli import messages, progress, standard_output
from ggtok.cli.messages import FINDING, OK, UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import add_output_options, add_words
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert import confirm, convert
from ggtok.vocabularies.convert.source_formats import convert_source
from ggtok.vocabularies.writers import select_writer


def add_arguments(parser: Parser) -> None:
    add_words(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="the file to write, such as vocabulary.gguf")
    add("--pre", metavar="NAME", help="use this pre-tokenizer instead of the detected one")
    add("--arch", metavar="NAME", help="the architecture, as in config.json")
    add_output_options(parser, inexact=True)
    n, default = confirm.CHECK_LINES, confirm.LINES
    add("--check", action="store_true", help=f"compare {n} lines, not {default}")


def run(args: argparse.Namespace) -> int:
    if len(args.words) != 1:
        raise UsageError("give one source: a folder or a file")
    if args.output is None and not args.check:
        raise UsageError("nothing to do: give -o FILE or --check")
    (source,) = args.words
    if args.output is not None:
        select_writer(args.output, [source], force=args.force)
    options = {"pre": args.pre, "arch": args.arch}
    with progress.waiting(args.quiet, "checking" if args.check else "converting"):
        if args.check:
            vocabulary = convert_source(source, **options, lines=confirm.CHECK_LINES)
        else:
            vocabulary = convert(source, **options)
    report = vocabulary.report
    assert isinstance(report, ConversionReport)
    refused = args.output is not None and bool(report.faults) and not args.inexact
    written = None if refused else args.output
    if written is not None:
        vocabulary.save(written, inexact=args.inexact, force=args.force)
    lines = [counted(len(vocabulary), "token"), *str(report).split("\n")]
    standard_output.write_result(
        args, _as_json(report, len(vocabulary)), [*lines, *standard_output.lines_of_files(written)]
    )
    if refused:
        messages.say(
            "error",
            f"{args.output}: not written, because ids or tokens differ for no known reason; "
            "--inexact writes it anyway",
        )
    return FINDING if report.faults else OK


def _as_json(report: ConversionReport, tokens: int) -> dict[str, object]:
    names = ("name", "text", "lines", "share", "example")
    return {
        "format": report.format,
        "tokens": tokens,
        "pre": report.pre,
        "judge": report.judge,
        "compared": report.compared,
        "differing": report.differing,
        "differences": [
            {name: getattr(difference, name) for name in names} for difference in report.differences
        ],
        "unexplained": report.unexplained,
        "disagreements": report.disagreements,
        "notes": report.notes,
    }


HELP = Help(
    usage="SOURCE -o OUT.gguf",
    details="The result produces the source's ids as far as llama.cpp's rules allow. The report "
    "lists the remaining differences, and the share of lines that each affects if the source's "
    "own library is installed: transformers for a folder, the file's package for a file.",
    words={
        "SOURCE": "a Hugging Face folder, tokenizer.json, *.model, tekken.json, *.tiktoken, ..."
    },
    examples=[
        "ggtok convert Llama-3.1-8B/ -o llama3.gguf",
        "ggtok convert qwen.tiktoken --pre qwen2 --check",
    ],
    finding="a line or token differs for no known reason; without --inexact, nothing is written",
)
