"""``ggtok doctor``: what is wrong or surprising in a file's tokenizer."""

from __future__ import annotations

import argparse
import shlex
import textwrap

from ggtok.base.escape import shown
from ggtok.cli import progress, writing
from ggtok.cli.arguments import MODEL, add_model_name, reporting_waits, take_only_model
from ggtok.cli.messages import FINDING, OK
from ggtok.cli.parser import Help, Parser


def add_arguments(parser: Parser) -> None:
    add_model_name(parser)


def run(args: argparse.Namespace) -> int:
    take_only_model(args)
    from ggtok.inspect.doctor import doctor
    from ggtok.inspect.doctor.codes import SERIOUS

    with progress.waiting(args.quiet, "checking the vocabulary"), reporting_waits(args):
        found = doctor(args.model)
    lines = []
    for finding in found:
        lines.append(f"{finding.code} {finding.severity}: {finding.title}")
        texts = [*finding.detail.split("\n"), finding.means, f"To do: {finding.advice}"]
        if finding.command:
            texts.append(f"Correct it: {finding.command.replace('MODEL', shlex.quote(args.model))}")
        for text in texts:
            wrapped = textwrap.wrap(shown(text), 96, break_on_hyphens=False)
            lines += [f"  {line}" for line in wrapped]
    dicts = [finding.as_dict() for finding in found]
    writing.write_result(args, dicts, lines or ["nothing found"])
    return FINDING if any(finding.severity == SERIOUS for finding in found) else OK


HELP = Help(
    usage="MODEL",
    details="Each finding has a code, which docs/doctor.md explains. It is serious (ids, or the "
    "ends of generations, probably differ from those in training) or a remark.",
    words={"MODEL": MODEL},
    examples=[
        "ggtok doctor model.gguf",
        "ggtok doctor hf://user/repo/file.gguf",
        "ggtok doctor model.gguf --json",
    ],
    finding="a finding is serious",
)
