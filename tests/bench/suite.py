"""Shared by all benchmark groups: vocabularies, processes, checks that ids agree, and rounds."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.convert import Files, convert
from tests.bench.corpora import MB, Corpus, cut, size
from tests.bench.peers import OURS, PEERS, REFERENCE
from tests.bench.process import PeerFailureError, Process
from tests.bench.results import SPEED, TIMES, Cell, Row
from tests.support.vocabularies import OTHERS, REAL, fixture, fixture_names, real

OTHER_IDS = "other ids"
NOT_OFFERED = "not possible"
# Vocabularies that are measured in detail. With the others, ggtok is compared only with llama.cpp.
DETAILED = ("llama-bpe", "qwen2", "gpt-2", "llama-spm")


@dataclass
class Options:
    vocabs: list[str]  # if empty, each group chooses its own
    peers: list[str]
    rounds: int
    full: bool
    corpora: list[Corpus]  # files from --corpus
    at_least: int = 20_000_000  # minimum nanoseconds of a sample of repeated calls

    @property
    def slow_bytes(self) -> int:
        """The number of bytes that llama.cpp encodes: fewer than the other tokenizers, since it is
        slow. It has no cache, so its speed doesn't depend on the size."""
        return MB // 4 if self.full else MB // 16


def installed() -> tuple[list[str], list[str]]:
    """Returns the names of the installed tokenizers, and the names of the missing ones."""
    here: list[str] = []
    missing: list[str] = []
    for name, peer in PEERS.items():
        module = "xllamacpp" if name == REFERENCE else peer.module
        (here if importlib.util.find_spec(module) else missing).append(name)
    return here, missing


@dataclass
class Suite:
    options: Options
    folder: Path
    rows: list[Row] = field(default_factory=list)
    # By vocabulary and tokenizer: the texts whose ids differ from ggtok's, or why there are no ids.
    notes: dict[str, dict[str, str]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)  # versions of other software
    _files: dict[tuple[str, bool], tuple[Files, dict[str, str]]] = field(default_factory=dict)
    _ids: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    _extra: dict[str, Path] = field(default_factory=dict)

    # ---- vocabularies ----

    def add(self, name: str, path: Path) -> None:
        """Registers a vocabulary under a name."""
        self._extra[name] = path

    def gguf(self, name: str) -> Path:
        if name in self._extra:
            return self._extra[name]
        if name in (*REAL, *OTHERS):
            return real(name)
        if name in fixture_names():
            return fixture(name)
        raise SystemExit(f"no such vocabulary: {name}")

    def path(self, peer: str, vocab: str, control: bool = False) -> Path:
        """Returns the file from which a tokenizer loads the vocabulary."""
        kind = PEERS[peer].file
        if kind == "gguf":
            return self.gguf(vocab)
        key = (vocab, control)
        if key not in self._files:
            folder = self.folder / f"{vocab}{'-control' * control}"
            folder.mkdir()
            self._files[key] = convert(self.gguf(vocab), folder, control)
        files, refused = self._files[key]
        if kind in refused:
            raise PeerFailureError(f"{NOT_OFFERED}: {refused[kind]}")
        path: Path = getattr(files, kind)
        return path

    def open(
        self, peer: str, vocab: str, threads: int = 1, control: bool = False, seconds: float = 300
    ) -> Process:
        return Process(peer, str(self.path(peer, vocab, control)), threads, seconds)

    def vocabs(self, *default: str) -> list[str]:
        return self.options.vocabs or list(default)

    # ---- comparison of ids ----

    def agree(
        self,
        vocab: str,
        peers: Iterable[str],
        texts: Mapping[str, Mapping[str, Sequence[str]]],
        control: bool = False,
        seconds: float = 300,
    ) -> dict[str, str]:
        """Compares ids with ggtok's and returns a note for each tokenizer: "" if all are equal;
        otherwise, the texts whose ids differ, or why there are no ids.

        `texts` are {form: {key: texts}}; llama.cpp encodes only the beginning of each list. Ends
        the processes, so that later measurements start without cached text.
        """
        notes: dict[str, str] = {}
        for peer in [OURS, *(p for p in peers if p != OURS)]:
            process = self._check(notes, vocab, peer, texts, control, seconds)
            if process:
                process.close()
        return notes

    @contextlib.contextmanager
    def checked(
        self,
        vocab: str,
        peers: Iterable[str],
        texts: Mapping[str, Mapping[str, Sequence[str]]],
    ) -> Iterator[tuple[dict[str, str], dict[str, Process]]]:
        """Compares ids like agree(), but keeps the process of each tokenizer that can be timed,
        with its cache filled."""
        notes: dict[str, str] = {}
        processes: dict[str, Process] = {}
        with ExitStack() as stack:
            for peer in [OURS, *(p for p in peers if p != OURS)]:
                process = self._check(notes, vocab, peer, texts, False, 300)
                if process:
                    processes[peer] = stack.enter_context(process)
            yield notes, processes

    def _check(
        self,
        notes: dict[str, str],
        vocab: str,
        peer: str,
        texts: Mapping[str, Mapping[str, Sequence[str]]],
        control: bool,
        seconds: float,
    ) -> Process | None:
        """Adds the tokenizer's note and returns its process if it can be timed."""
        process = None
        try:
            if notes.get(OURS):
                raise PeerFailureError("no ids of ggtok's to compare with")
            process = self.open(peer, vocab, control=control, seconds=seconds)
            differences = self._differences(vocab, peer, process, texts)
            notes[peer] = f"{OTHER_IDS}: {differences}" if differences else ""
        except PeerFailureError as error:
            notes[peer] = str(error)
            if process:
                process.close()
            process = None
        if notes[peer]:
            recorded = self.notes.setdefault(vocab, {})
            if notes[peer] not in recorded.get(peer, ""):
                recorded[peer] = (
                    f"{recorded[peer]}; {notes[peer]}" if peer in recorded else notes[peer]
                )
                print(f"{vocab}: {peer}: {notes[peer]}", file=sys.stderr, flush=True)
        return process

    def _differences(
        self,
        vocab: str,
        peer: str,
        process: Process,
        texts: Mapping[str, Mapping[str, Sequence[str]]],
    ) -> str:
        differences = []
        for form, by_key in texts.items():
            for key, all_texts in by_key.items():
                process.put(key, self.for_peer(peer, all_texts))
                ids = process.ids(form, key)
                if peer == OURS:
                    self._ids[vocab, form, key] = ids
                    process.put(key, self.for_peer(REFERENCE, all_texts))
                    self._ids[vocab, form, key + "~"] = process.ids(form, key)
                    continue
                ours = self._ids[vocab, form, key + "~" * (peer == REFERENCE)]
                if ids != ours:
                    differences.append(f"{key}, {form} ({_difference(ids, ours)})")
        return "; ".join(differences)

    def for_peer(self, peer: str, texts: Sequence[str]) -> list[str]:
        """Returns the texts or, for llama.cpp, only their first `slow_bytes`."""
        if peer != REFERENCE:
            return list(texts)
        budget = self.options.slow_bytes
        some: list[str] = []
        for text in texts:
            some += cut(text, budget, 1) or [""]
            budget -= size(some[-1])
            if budget <= 0:
                break
        return some

    # ---- rounds ----

    def measure(
        self,
        row: Row,
        takers: Mapping[str, Callable[[int], float]],
        notes: Mapping[str, str] | None = None,
        rounds: int | None = None,
    ) -> None:
        """Fills a row: each round takes one sample from each tokenizer, in turn.

        Tokenizers with different ids are timed and flagged. Those with other notes aren't timed.
        """
        notes = notes or {}
        for peer, note in notes.items():
            row.cells[peer] = Cell(note=note)
        for peer in takers:
            row.cells.setdefault(peer, Cell())
        dead: set[str] = set()
        for round in range(rounds or self.options.rounds):
            for peer, take in takers.items():
                if peer in dead:
                    continue
                try:
                    row.cells[peer].samples.append(take(round))
                except PeerFailureError as error:
                    dead.add(peer)
                    row.cells[peer].note = str(error)
        self.rows.append(row)
        print(".", end="", file=sys.stderr, flush=True)

    def record(
        self, row: Row, samples: Mapping[str, list[float]], notes: Mapping[str, str]
    ) -> None:
        """Fills a row with samples that were taken together with another row's."""
        for peer, note in notes.items():
            row.cells[peer] = Cell(samples.get(peer, []), note)
        self.rows.append(row)

    def scaling(self, group: str, vocab: str, text: str, case: str, one: Row, two: Row) -> None:
        """Adds a row with the ratios of two rows' best samples."""
        notes = {peer: cell.note for peer, cell in two.cells.items()}
        best = {peer: (one.best(peer), two.best(peer)) for peer in notes}
        quotients = {peer: [b / a] for peer, (a, b) in best.items() if a and b}
        self.record(self.row(group, vocab, text, case, TIMES), quotients, notes)

    @contextlib.contextmanager
    def workers(
        self, vocab: str, notes: Mapping[str, str], threads: int
    ) -> Iterator[dict[str, Process]]:
        """Starts a new process for each tokenizer that can be timed."""
        with ExitStack() as stack:
            processes = {}
            for peer, note in notes.items():
                if timed(note):
                    process = self.open(peer, vocab, threads)
                    processes[peer] = stack.enter_context(process)
            yield processes

    def per_call(
        self, process: Process, peer: str, form: str, key: str, texts: Sequence[str]
    ) -> Callable[[int], float]:
        """Returns a function that measures microseconds per text, for cached texts."""
        some = self.for_peer(peer, texts)
        process.put(key, some)
        at_least = self.options.at_least
        return lambda _: process.sample(form, key, at_least) / len(some) / 1000

    def speed_of(
        self, process: Process, peer: str, form: str, key: str, texts: Sequence[str]
    ) -> Callable[[int], float]:
        """Returns a function that measures MB/s, for cached texts."""
        some = self.for_peer(peer, texts)
        n_bytes = sum(map(size, some))
        process.put(key, some)
        at_least = self.options.at_least
        return lambda _: n_bytes * 1000 / process.sample(form, key, at_least)

    def each(
        self, notes: Mapping[str, str], take: Callable[[str], float]
    ) -> dict[str, Callable[[int], float]]:
        """Returns for each tokenizer that can be timed a function that calls `take` with its
        name."""

        def taker(peer: str) -> Callable[[int], float]:
            return lambda _: take(peer)

        return {peer: taker(peer) for peer, note in notes.items() if timed(note)}

    def row(self, group: str, vocab: str, text: str, case: str, unit: str = SPEED) -> Row:
        return Row(group, vocab, text, case, unit)


def timed(note: str) -> bool:
    return not note or note.startswith(OTHER_IDS)


def _difference(theirs: bytes, ours: bytes) -> str:
    a, b = array("i", theirs), array("i", ours)
    at = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    return f"{len(a)} ids, ggtok {len(b)}, first difference at {at}"
