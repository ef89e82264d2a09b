"""``ggtok diff``: in what two vocabularies differ, and whether one may draft for the other."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ggtok.base.escape import shown
from ggtok.cli import progress, reading, writing
from ggtok.cli.arguments import Command, Parser, add_json, add_words, telling
from ggtok.cli.status import FINDING, OK, UsageError

_SHOWN = 5  # examples of each kind


def add_arguments(parser: Parser) -> None:
    add_json(parser)
    add_words(parser)
    add = parser.add_argument
    add("--text", metavar="FILE", help="compare the ids of each line of this file, too")
    add("--draft", action="store_true", help="tell only whether B may draft for A")


def run(args: argparse.Namespace) -> int:
    if len(args.words) != 2:
        raise UsageError("give two models")
    if args.draft and args.text is not None:
        raise UsageError("--draft and --text exclude each other")
    from ggtok.cli import sides

    with progress.waiting(args.quiet, "reading the vocabularies"):
        a, b = (_side(name, args) for name in args.words)
    if isinstance(a, sides.Original):
        raise UsageError(f"{args.words[0]}: the first must be a GGUF file or a model's name")
    if args.draft:
        if isinstance(b, sides.Original):
            raise UsageError(f"{args.words[1]}: llama.cpp drafts only with a GGUF model")
        return _draft(a, b, args)
    text = None if args.text is None else reading.file(args.text)
    with progress.waiting(args.quiet, "comparing the vocabularies") as say:
        found = sides.compare(a, b)
        if text is not None:
            say("comparing the ids of the lines")
            found["text"] = sides.compare_lines(a, b, text)
    if args.json:
        writing.write_json(found, indent=2)
    else:
        for line in _lines(found, a, b):
            writing.write_line(line)
    return FINDING if sides.any_difference(found) else OK


def _side(name: str, args: argparse.Namespace) -> Any:
    from ggtok.cli import sides

    if name.endswith(".json") and os.path.isfile(name):
        return sides.Original(name)
    args.model = name
    with telling(args):
        return sides.Model(name)


def _draft(a: Any, b: Any, args: argparse.Namespace) -> int:
    from ggtok.cli import sides

    why = sides.why_no_draft(a, b)
    if args.json:
        writing.write_json({"may_draft": why is None, "reason": why}, indent=2)
    else:
        name, other = shown(args.words[1]), shown(args.words[0])
        verdict = "may" if why is None else "can't"
        writing.write_line(f"{name} {verdict} draft for {other}{f': {why}' if why else ''}")
    return OK if why is None else FINDING


def _lines(found: dict[str, Any], a: Any, b: Any) -> list[str]:
    """The differences for people."""
    lines = [
        f"{name:<24}{_value(values[0])} | {_value(values[1])}"
        for name, values in found["values"].items()
    ]
    for what, side in ("only in A", a), ("only in B", b):
        rows = found["tokens"][what]
        lines += _list(f"tokens {what}", [f"{id:>7}  {_token(side, text)}" for id, text in rows])
    moved = [f"{i:>7} | {j:<7}  {_token(a, t)}" for i, j, t in found["tokens"]["moved"]]
    lines += _list("tokens with other ids", moved)
    types = [f"{i:>7}  {_token(a, t)}: {x} | {y}" for i, t, x, y in found["tokens"]["types"]]
    lines += _list("tokens of other types", types)
    if found["tokens"]["scores"]:
        lines.append(f"tokens of other scores: {found['tokens']['scores']}")
    for what, rows in found["merges"].items():
        side = b if what == "only in B" else a
        merges = [f"{rank:>7}  {_merge(side, text)}" for rank, text in rows]
        lines += _list(f"merges {what}", merges)
    text = found.get("text")
    if text is not None:
        rows = [
            line
            for row in text["different"]
            for line in (f"line {row['line']}", f"  A {row['A']}", f"  B {row['B']}")
        ]
        n = len(text["different"])
        lines.append(f"lines with other ids: {n} of {text['lines']}")
        lines += [f"  {row}" for row in rows[: 3 * _SHOWN]]
    return lines or ["no difference"]


def _token(side: Any, text: str) -> str:
    return f"'{shown(side.readable(text))}'"


def _merge(side: Any, text: str) -> str:
    left, _, right = text.partition(" ")
    return f"{_token(side, left)} + {_token(side, right)}"


def _value(value: object) -> str:
    text = "-" if value is None else shown(str(value))
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text)} characters)"


def _list(title: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    more = len(rows) - _SHOWN
    return [
        f"{title}: {len(rows)}",
        *(f"  {row}" for row in rows[:_SHOWN]),
        *([f"  ... and {more} more"] if more > 0 else []),
    ]


COMMAND = Command(
    usage="A B",
    details="Compared are types, flags, special ids, tokens, merges and chat templates, and with "
    "--text the ids of a file's lines. B may be a tokenizer.json, which the package tokenizers "
    "reads; of it, tokens, ids and, in BPE, merges are compared. The exit status is 1 if there "
    "is any difference, or with --draft if B can't draft.",
    words={"A": "a GGUF file, or a model's name (see 'ggtok --help')", "B": "the same"},
    examples=[
        "ggtok diff old.gguf new.gguf",
        "ggtok diff model.gguf tokenizer.json --text corpus.txt",
        "ggtok diff large.gguf small.gguf --draft",
    ],
    add_arguments=add_arguments,
    run=run,
    finding="there is a difference; with --draft, B can't draft",
)
