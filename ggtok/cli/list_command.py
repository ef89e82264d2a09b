"""``ggtok list``: lists the models on this machine."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict

from ggtok.base.escape import printable
from ggtok.cli import progress, standard_output
from ggtok.cli.messages import UsageError, warn
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import add_words
from ggtok.sources import listing


def add_arguments(parser: Parser) -> None:
    add_words(parser)


def run(args: argparse.Namespace) -> None:
    for folder in args.words:
        if not os.path.isdir(folder):
            problem = "is not a folder" if os.path.lexists(folder) else "doesn't exist"
            raise UsageError(f"{folder or repr(folder)} {problem}")
    survey = listing.Survey()
    with progress.waiting(args.quiet, "looking for models"):
        models = list(listing.list_models(args.words, survey))
    rows = [("SOURCE", "NAME", "SIZE", "TYPE", "PRE", "TOKENS"), *map(_row, models)]
    standard_output.write_result(
        args, list(map(asdict, models)), standard_output.table(rows, right=(2,))
    )
    for line in survey.lines(len(models)):
        warn(line)


def _row(m: listing.ListedModel) -> tuple[str, ...]:
    return (
        m.source,
        printable(m.name),
        "-" if m.size is None else standard_output.size(m.size),
        m.vocab_type or "-",
        printable(m.pre or "-"),
        f"({printable(m.error or '')})" if m.error or m.n_tokens is None else str(m.n_tokens),
    )


HELP = Help(
    usage="[FOLDER]...",
    details="Without folders, lists the models in the caches of the Hugging Face Hub and of "
    "llama.cpp, in Ollama's store and in LM Studio's folders.",
    words={"FOLDER": "list the GGUF files in this folder"},
    examples=["ggtok list", "ggtok list ~/models --json"],
)
