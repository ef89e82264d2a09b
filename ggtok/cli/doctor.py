"""``ggtok doctor``: finds what is wrong or surprising in a file's tokenizer."""

from __future__ import annotations

import argparse
import os
import shlex
import textwrap
from collections.abc import Callable, Iterator

from ggtok.base.escape import number, shown
from ggtok.cli import messages, progress, writing
from ggtok.cli.arguments import MODEL, add_model_name, reporting_waits, take_only_model
from ggtok.cli.messages import ERROR, FINDING, OK, UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.errors import GGTokError
from ggtok.inspect.doctor.codes import SERIOUS, Finding

Found = list[Finding] | GGTokError


def add_arguments(parser: Parser) -> None:
    add_model_name(parser)
    parser.add_argument(
        "--against",
        metavar="SOURCE",
        help="also compare with the original model: user/repo, a folder, or auto",
    )


def run(args: argparse.Namespace) -> int:
    several = len(args.words) > 1 or any(map(_stands_for_many, args.words))
    if several and args.model is not None:
        raise UsageError("-m and several models exclude each other")
    if not several:
        take_only_model(args)
    found: dict[str, Found] = {}
    with progress.waiting(args.quiet, "checking the vocabulary") as say:
        for model in _expanded(args.words) if several else [args.model]:
            if several:
                say(f"checking {shown(model)}")
            found[model] = _checked(model, args, raising=not several)
    for model, findings in found.items():
        if isinstance(findings, GGTokError):
            reason = messages.reason(findings).removeprefix(f"{model}: ")
            messages.say("error", f"{model}: {reason}")
    if several:
        writing.write_result(args, _values(found), _table(found))
    else:
        [findings] = found.values()
        assert not isinstance(findings, GGTokError)
        writing.write_result(args, [f.as_dict() for f in findings], _lines(args.model, findings))
    if any(isinstance(findings, GGTokError) for findings in found.values()):
        return ERROR
    return FINDING if any(map(_n_serious, found.values())) else OK


def _checked(model: str, args: argparse.Namespace, *, raising: bool) -> Found:
    from ggtok.inspect.doctor import doctor

    args.model = model
    try:
        with reporting_waits(args):
            return doctor(model, against=args.against)
    except GGTokError as e:
        if raising:
            raise
        return e


# ---- several models ----


def _stands_for_many(word: str) -> bool:
    return word in _STORES or os.path.isdir(word)


def _ollama() -> Iterator[str]:
    from ggtok.sources import ollama

    return (name for _, name, _ in ollama.models())


def _lmstudio() -> Iterator[str]:
    from ggtok.sources import lmstudio

    return (name for _, name, _ in lmstudio.models())


_STORES: dict[str, Callable[[], Iterator[str]]] = {"ollama:": _ollama, "lmstudio:": _lmstudio}


def _expanded(words: list[str]) -> list[str]:
    """Returns the models that the words name, each once."""
    models: dict[str, None] = {}
    for word in words:
        if word in _STORES:
            names = sorted(_STORES[word]())
        elif os.path.isdir(word):
            from ggtok.sources import listing

            names = sorted(model.name for model in listing.models([word]))
        else:
            names = [word]
        if not names:
            raise UsageError(f"no models in {word}")
        models |= dict.fromkeys(names)
    return list(models)


def _n_serious(findings: Found) -> int:
    if isinstance(findings, GGTokError):
        return 0
    return sum(finding.severity == SERIOUS for finding in findings)


def _values(found: dict[str, Found]) -> list[dict[str, object]]:
    return [
        {"model": writing.utf8(model), "error": str(findings)}
        if isinstance(findings, GGTokError)
        else {"model": writing.utf8(model), "findings": [f.as_dict() for f in findings]}
        for model, findings in found.items()
    ]


def _table(found: dict[str, Found]) -> list[str]:
    rows = [("MODEL", "SERIOUS", "REMARKS", "CODES (serious ones first)")]
    for model, findings in found.items():
        if isinstance(findings, GGTokError):
            rows.append((shown(model), "-", "-", "(error)"))
            continue
        serious = _n_serious(findings)
        codes = dict.fromkeys(
            f.code for f in sorted(findings, key=lambda f: (f.severity != SERIOUS, f.code))
        )
        rows.append(
            (shown(model), str(serious), str(len(findings) - serious), " ".join(codes) or "-")
        )
    n = sum(_n_serious(findings) > 0 for findings in found.values())
    summary = f"{number(len(found), 'model')}; {n} with serious findings"
    return [*writing.table(rows, right=(1, 2)), summary]


# ---- one model ----


def _lines(model: str, found: list[Finding]) -> list[str]:
    lines = []
    for finding in found:
        lines.append(f"{finding.code} {finding.severity}: {finding.title}")
        texts = [*finding.detail.split("\n"), finding.means, f"To do: {finding.advice}"]
        if finding.source:
            texts[0] = f"file | {finding.source}: {texts[0]}"
        for text in texts:
            wrapped = textwrap.wrap(shown(text), 96, break_on_hyphens=False)
            lines += [f"  {line}" for line in wrapped]
        if finding.command:  # in one line, to be copied
            command = finding.command.replace("MODEL", shlex.quote(model), 1)
            lines.append(f"  Correct it: {shown(command)}")
    return lines or ["nothing found"]


HELP = Help(
    usage="MODEL...",
    details="Each finding has a code, which docs/doctor.md explains. It is serious (ids, or the "
    "ends of generations, probably differ from those in training) or a remark. Several models, or "
    "a folder, give a table.",
    words={"MODEL": f"{MODEL}; a folder; 'ollama:' or 'lmstudio:' for all models there"},
    examples=[
        "ggtok doctor model.gguf",
        "ggtok doctor hf://user/repo/file.gguf",
        "ggtok doctor model.gguf --against user/repo",
        "ggtok doctor ~/models ollama:",
    ],
    finding="a finding is serious",
)
