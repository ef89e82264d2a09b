"""``ggtok convert``: another library's vocabulary, for llama.cpp."""

from __future__ import annotations

import argparse
import json

from ggtok.base.escape import number as counted
from ggtok.cli import messages, progress, writing
from ggtok.cli.arguments import Command, Parser, add_force, add_inexact, add_json, add_words
from ggtok.cli.status import FINDING, OK, UsageError
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert import confirm, convert
from ggtok.vocabularies.convert.formats import converted
from ggtok.vocabularies.writers import checked


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_words(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="the file to write, such as vocabulary.gguf")
    add("--pre", metavar="NAME", help="this pre-tokenizer instead of the one found")
    add("--arch", metavar="NAME", help="the architecture, as config.json names it")
    add_inexact(parser)
    add_force(parser)
    add(
        "--check",
        action="store_true",
        help=f"compare {confirm.CHECK_LINES} lines, not {confirm.LINES}",
    )


def run(args: argparse.Namespace) -> int:
    if len(args.words) != 1:
        raise UsageError("give one source: a folder or a file")
    if args.output is None and not args.check:
        raise UsageError("nothing to do: give -o FILE or --check")
    (source,) = args.words
    if args.output is not None:
        checked(args.output, [source], force=args.force)
    options = {"pre": args.pre, "arch": args.arch}
    with progress.waiting(args.quiet, "checking" if args.check else "converting"):
        if args.check:
            vocabulary = converted(source, **options, lines=confirm.CHECK_LINES)
        else:
            vocabulary = convert(source, **options)
    report = vocabulary.report
    assert isinstance(report, ConversionReport)
    refused = args.output is not None and bool(report.unexplained) and not args.inexact
    if args.output is not None and not refused:
        vocabulary.save(args.output, inexact=args.inexact, force=args.force)
    if args.json:
        writing.write_json(_as_json(report, len(vocabulary)), indent=2)
    else:
        writing.write(f"{counted(len(vocabulary), 'token')}\n{report}\n".encode())
        if args.output is not None and not refused:
            writing.write_made(args.output)
    if refused:
        messages.say(
            "error",
            f"{args.output}: not written, since lines differ for no known reason; --inexact "
            "writes it all the same",
        )
    return FINDING if report.unexplained else OK


def _as_json(report: ConversionReport, tokens: int) -> dict[str, object]:
    rows = [
        {"name": d.name, "text": d.text, "lines": d.lines, "share": d.share, "example": d.example}
        for d in report.differences
    ]
    data = {
        "format": report.format,
        "tokens": tokens,
        "pre": report.pre,
        "judge": report.judge,
        "compared": report.compared,
        "differing": report.differing,
        "differences": rows,
        "unexplained": list(report.unexplained),
        "notes": list(report.notes),
    }
    plain: dict[str, object] = json.loads(json.dumps(data))
    return plain


COMMAND = Command(
    usage="SOURCE -o OUT.gguf",
    details="The result gives the source's ids as far as llama.cpp's rules allow; what they force "
    "to differ is printed, with the share of lines that it concerns where what loads the source "
    "is installed: transformers for a folder, else the file's own package.",
    words={
        "SOURCE": "a Hugging Face folder, tokenizer.json, *.model, tekken.json, *.tiktoken, ..."
    },
    examples=[
        "ggtok convert Llama-3.1-8B/ -o llama3.gguf",
        "ggtok convert qwen.tiktoken --pre qwen2 --check",
    ],
    add_arguments=add_arguments,
    run=run,
    finding="a line differs for no known reason; nothing is written then without --inexact",
)
