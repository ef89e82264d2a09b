"""``ggtok list``: the models on this machine."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict

from ggtok.base.escape import shown
from ggtok.cli import progress, writing
from ggtok.cli.arguments import Command, Parser, add_json, add_words
from ggtok.cli.messages import warn
from ggtok.cli.status import UsageError
from ggtok.sources import listing


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_words(parser)


def run(args: argparse.Namespace) -> None:
    for folder in args.words:
        if not os.path.isdir(folder):
            why = "is not a folder" if os.path.lexists(folder) else "doesn't exist"
            raise UsageError(f"{folder or repr(folder)} {why}")
    survey = listing.Survey()
    with progress.waiting(args.quiet, "looking for models"):
        models = list(listing.models(args.words, survey))
    if args.json:
        writing.write_json([asdict(model) for model in models], indent=2)
    else:
        _write(models)
    for line in survey.lines(len(models)):
        warn(line)


def _write(models: list[listing.Model]) -> None:
    rows = [("SOURCE", "NAME", "SIZE", "TYPE", "PRE", "TOKENS")]
    rows += [
        (
            m.source,
            shown(m.name),
            "-" if m.size is None else writing.size(m.size),
            m.vocab_type or "-",
            shown(m.pre or "-"),
            f"({shown(m.error or '')})" if m.error or m.n_tokens is None else str(m.n_tokens),
        )
        for m in models
    ]
    writing.write_table(rows, right=(2,))


COMMAND = Command(
    usage="[FOLDER]...",
    details="Without folders, those in the caches of the Hugging Face Hub and of llama.cpp, in "
    "Ollama's store and in LM Studio's folders are listed.",
    words={"FOLDER": "list the GGUF files in this folder"},
    examples=["ggtok list", "ggtok list ~/models --json"],
    add_arguments=add_arguments,
    run=run,
)
