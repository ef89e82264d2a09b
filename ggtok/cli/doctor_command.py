"""``ggtok doctor``: finds what is wrong or surprising in a file's tokenizer."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from multiprocessing import get_context

from ggtok.base.escape import number, printable
from ggtok.cli import messages, progress, standard_output
from ggtok.cli.messages import ERROR, FINDING, OK, UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import MODEL, add_model_name, reporting_waits, take_only_model
from ggtok.errors import GGTokError
from ggtok.inspect.doctor.codes import SERIOUS, Finding

Found = list[Finding] | str  # findings, or why the model can't be checked
_MOST_COLUMNS = 120  # longer lines are hard to read


def add_arguments(parser: Parser) -> None:
    add_model_name(parser)
    parser.add_argument(
        "--against",
        metavar="SOURCE",
        help="also compare with the original model: user/repo, a folder, or auto",
    )


def run(args: argparse.Namespace) -> int:
    if len(args.words) > 1 or any(map(_stands_for_many, args.words)):
        if args.model is not None:
            raise UsageError("-m and several models exclude each other")
        return _check_several(_expand_models(args.words), args)
    take_only_model(args)
    with progress.waiting(args.quiet, "checking the vocabulary"):
        found = _findings_of(args.model, args)
    standard_output.write_result(args, [f.as_dict() for f in found], lines(args.model, found))
    return FINDING if _n_serious(found) else OK


def _findings_of(model: str, args: argparse.Namespace) -> list[Finding]:
    from ggtok.inspect.doctor import doctor

    args.model = model
    with reporting_waits(args):
        return doctor(model, against=args.against)


# ---- several models ----


def _stands_for_many(word: str) -> bool:
    return word in _STORES or os.path.isdir(word)


def _ollama() -> Iterator[str]:
    from ggtok.sources import ollama_store

    return (name for _, name, _ in ollama_store.list_store())


def _lmstudio() -> Iterator[str]:
    from ggtok.sources import lmstudio

    return (name for _, name, _ in lmstudio.list_lmstudio())


_STORES: dict[str, Callable[[], Iterator[str]]] = {"ollama:": _ollama, "lmstudio:": _lmstudio}


def _expand_models(words: list[str]) -> list[str]:
    """Returns the models that the words name, each once."""
    models: dict[str, None] = {}
    for word in words:
        if word in _STORES:
            names = sorted(_STORES[word]())
        elif os.path.isdir(word):
            from ggtok.sources import listing

            names = sorted(model.name for model in listing.list_models([word]))
        else:
            names = [word]
        if not names:
            raise UsageError(f"no models in {word}")
        models |= dict.fromkeys(names)
    return list(models)


def _check_several(models: list[str], args: argparse.Namespace) -> int:
    """Checks models in several processes, and prints each one's row when it is ready."""
    found: dict[str, Found] = {}
    table = _Table(models)
    if not args.json:
        standard_output.write_line(table.head())
    with progress.waiting(args.quiet, "") as say, _mapper(len(models)) as over:
        say(_state(models, 0))
        for model, each in zip(models, over(partial(_attempt, args=args), models), strict=True):
            found[model] = each
            say(_state(models, len(found)))
            if isinstance(each, str):
                messages.say("error", f"{model}: {each.removeprefix(f'{model}: ')}")
            if not args.json:
                messages.clear_line()
                standard_output.write_line(table.row(model, each))
                standard_output.flush()
    if args.json:
        standard_output.write_json(_values(found), indent=2)
    else:
        n = sum(_n_serious(findings) > 0 for findings in found.values())
        standard_output.write_line(f"{number(len(found), 'model')}; {n} with serious findings")
    if any(isinstance(each, str) for each in found.values()):
        return ERROR
    return FINDING if any(map(_n_serious, found.values())) else OK


def _state(models: list[str], done: int) -> str:
    now = min(done, len(models) - 1)
    return f"{now + 1} of {len(models)}  {printable(models[now])}"


def _attempt(model: str, args: argparse.Namespace) -> Found:
    try:
        return _findings_of(model, args)
    except GGTokError as e:
        return messages.reason(e)


_MOST_WORKERS = 61  # Windows can't wait for more
Mapper = Callable[[Callable[[str], Found], Sequence[str]], Iterable[Found]]


def _mapper(n: int) -> AbstractContextManager[Mapper]:
    """Returns a context with a function like ``map``, which uses a process for each core."""
    workers = min(n, os.cpu_count() or 1, _MOST_WORKERS)
    if workers < 2:
        return nullcontext(map)
    return _Pool(workers)


class _Pool(AbstractContextManager[Mapper]):
    def __init__(self, workers: int) -> None:
        self._workers = workers

    def _start(self, workers: int) -> ProcessPoolExecutor:
        self._pool = ProcessPoolExecutor(
            workers,
            get_context("spawn"),
            initializer=signal.signal,  # at Ctrl-C, workers end without a traceback
            initargs=(signal.SIGINT, signal.SIG_DFL),
        )
        return self._pool

    def __enter__(self) -> Mapper:
        return self._map

    def _map(self, check: Callable[[str], Found], models: Sequence[str]) -> Iterator[Found]:
        """Like ``map``. A model whose process dies is checked again in a process of its own."""
        pool = self._start(self._workers)
        futures = [pool.submit(check, model) for model in models]
        for i, model in enumerate(models):
            try:
                found = futures[i].result()
            except BrokenProcessPool:
                found = self._alone(check, model)
                pool = self._start(self._workers)
                futures[i + 1 :] = [
                    future
                    if future.done() and not future.exception()
                    else pool.submit(check, models[at])
                    for at, future in enumerate(futures[i + 1 :], i + 1)
                ]
            yield found

    def _alone(self, check: Callable[[str], Found], model: str) -> Found:
        try:
            with self._start(1) as pool:
                return pool.submit(check, model).result()
        except BrokenProcessPool:
            return "the process that checked it died; was it killed, or out of memory?"

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)


def _n_serious(found: Found) -> int:
    return sum(f.severity == SERIOUS for f in found if isinstance(f, Finding))


def _by_severity(found: list[Finding]) -> list[Finding]:
    return sorted(found, key=lambda f: (f.severity != SERIOUS, f.code))


def _values(found: dict[str, Found]) -> list[dict[str, object]]:
    return [
        {"model": standard_output.utf8(model), "error": each}
        if isinstance(each, str)
        else {"model": standard_output.utf8(model), "findings": [f.as_dict() for f in each]}
        for model, each in found.items()
    ]


class _Table:
    """A table whose rows are printed one by one."""

    def __init__(self, models: list[str]) -> None:
        self._width = max(len("MODEL"), *(len(printable(model)) for model in models))

    def head(self) -> str:
        return self._line("MODEL", "SERIOUS", "REMARKS", "CODES (serious ones first)")

    def row(self, model: str, found: Found) -> str:
        if isinstance(found, str):
            return self._line(printable(model), "-", "-", "(error)")
        serious = _n_serious(found)
        codes = " ".join(dict.fromkeys(f.code for f in _by_severity(found)))
        return self._line(printable(model), str(serious), str(len(found) - serious), codes or "-")

    def _line(self, model: str, serious: str, remarks: str, codes: str) -> str:
        return f"{model:<{self._width}}  {serious:>7}  {remarks:>7}  {codes}"


# ---- one model ----


def lines(model: str, found: list[Finding]) -> list[str]:
    """Returns findings as text, serious ones first, wrapped to the terminal's width."""
    width = min(max(40, shutil.get_terminal_size((100, 0)).columns), _MOST_COLUMNS) - 2
    result = []
    for finding in _by_severity(found):
        result.append(f"{finding.code} {finding.severity}: {finding.title}")
        texts = [*finding.detail.split("\n"), finding.means, f"To do: {finding.advice}"]
        if finding.source:
            texts[0] = f"file | {finding.source}: {texts[0]}"
        for text in texts:
            wrapped = textwrap.wrap(printable(text), width, break_on_hyphens=False)
            result += [f"  {line}" for line in wrapped]
        for what, command in (
            ("Correct it", finding.command),
            ("Probably corrects it", finding.likely_command),
        ):
            if command:  # in one line, to be copied
                command = command.replace("MODEL", shlex.quote(model), 1)
                result.append(f"  {what}: {printable(command)}")
    return result or ["nothing found"]


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
