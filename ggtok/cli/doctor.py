"""``ggtok doctor``: what is wrong or surprising in a file's tokenizer."""

from __future__ import annotations

import argparse
import textwrap

from ggtok.base.escape import shown
from ggtok.cli import progress, writing
from ggtok.cli.arguments import (
    MODEL,
    Command,
    Parser,
    add_json,
    add_words,
    take_only_model,
    telling,
)
from ggtok.cli.status import FINDING, OK


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_words(parser)
    parser.add_argument(
        "-m", "--model", metavar="MODEL", help="the model, in place of the argument"
    )


def run(args: argparse.Namespace) -> int:
    take_only_model(args)
    from ggtok.inspect.doctor import doctor
    from ggtok.inspect.doctor.codes import SERIOUS

    with progress.waiting(args.quiet, "checking the vocabulary"), telling(args):
        found = doctor(args.model)
    if args.json:
        writing.write_json([finding.as_dict() for finding in found], indent=2)
    else:
        for finding in found:
            writing.write_line(f"{finding.code} {finding.severity}: {finding.title}")
            for text in finding.detail, finding.means, f"To do: {finding.advice}":
                for line in textwrap.wrap(shown(text), 96, break_on_hyphens=False):
                    writing.write_line(f"  {line}")
        if not found:
            writing.write_line("nothing found")
    return FINDING if any(finding.severity == SERIOUS for finding in found) else OK


COMMAND = Command(
    usage="MODEL",
    details="Each finding has a code, which docs/doctor.md explains, and is serious (ids, or where "
    "generations end, are probably not what the model was trained with) or a remark.",
    words={"MODEL": MODEL},
    examples=[
        "ggtok doctor model.gguf",
        "ggtok doctor hf://user/repo/file.gguf",
        "ggtok doctor model.gguf --json",
    ],
    add_arguments=add_arguments,
    run=run,
    finding="a finding is serious",
)
