"""The groups for uncached text: `fresh`, `corpora` and `batch`.

Each sample is taken in a new process, which first writes to a gigabyte of memory. Otherwise, a
virtual machine might have to get memory back from its host, and the first tokenizer that needs it
would seem slow.

fresh    MB/s of 1 MB in documents of 4 KB, after other text of various sizes has been encoded,
         because the size determines whether a cache has to grow during the 1 MB.
corpora  MB/s of a text of up to 64 MB that the process encodes once: document by document, and in
         one call on one thread and on two.
batch    MB/s of 16 MB in one call, first and repeated, on one thread and on two, and the ratio of
         two threads to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.corpora import MB, Corpus, code, documents, mixed, prose, size
from tests.bench.peers import DOCS, ONE, REFERENCE
from tests.bench.process import cores
from tests.bench.results import Row
from tests.bench.suite import DETAILED, Suite

_STARTS = (MB // 2, MB, 2 * MB)
_LARGEST = 64 * MB
# Encoded first in each process, so that imports in the first call (NumPy) aren't timed.
_FIRST_CALL = ["a"]


def _peers(suite: Suite) -> list[str]:
    return [peer for peer in suite.options.peers if peer != REFERENCE]


def _orders(suite: Suite) -> Iterator[tuple[Corpus, Corpus]]:
    """Yields pairs: the text to encode first, and the text to time."""
    yield code(), prose()
    yield prose(), code()
    for corpus in suite.options.corpora:
        yield code(), corpus


def fresh(suite: Suite) -> None:
    for vocab in suite.vocabs(*DETAILED[:2]):
        for before, corpus in _orders(suite):
            texts = documents(corpus.head(MB))
            notes = suite.agree(vocab, _peers(suite), {ONE: {corpus.name: texts}})
            for n in _STARTS:
                case = f"fresh, {DOCS} one by one, after {n / MB:.1f} MB of {before.name}"
                row = suite.row("fresh", vocab, corpus.name, case)
                _one_by_one(suite, row, notes, documents(before.head(n)), texts)


def corpora(suite: Suite) -> None:
    for vocab in suite.vocabs(*DETAILED[:2]):
        for corpus in suite.options.corpora or [mixed([])]:
            texts = documents(corpus.head(_LARGEST))
            notes = suite.agree(vocab, _peers(suite), {DOCS: {corpus.name: texts}})
            case = f"first, {sum(map(size, texts)) / MB:.0f} MB, {DOCS}"
            row = suite.row("corpora", vocab, corpus.name, f"{case} one by one")
            _one_by_one(suite, row, notes, [], texts)
            for n in _threads():
                row = suite.row("corpora", vocab, corpus.name, f"{case}, {n} threads")
                _in_one_call(suite, row, notes, texts, n, 0)


def batch(suite: Suite) -> None:
    corpus = mixed(suite.options.corpora)
    texts = documents(corpus.text)
    for vocab in suite.vocabs(*DETAILED[:2]):
        notes = suite.agree(vocab, _peers(suite), {DOCS: {"mixed": texts}})
        for passes, kind in enumerate(("first", "again")):
            case = f"{kind}, {size(corpus.text) / MB:.0f} MB, {DOCS}"
            rows = [suite.row("batch", vocab, "mixed", f"{case}, {n} threads") for n in _threads()]
            for n, row in zip(_threads(), rows, strict=True):
                _in_one_call(suite, row, notes, texts, n, passes)
            if len(rows) == 2:
                suite.scaling("batch", vocab, "mixed", f"{case}, 2 threads by 1", *rows)


def _threads() -> list[int]:
    return [n for n in (1, 2) if len(cores(n)) == n]


def _one_by_one(
    suite: Suite, row: Row, notes: dict[str, str], start: Sequence[str], texts: Sequence[str]
) -> None:
    def take(peer: str) -> float:
        with suite.open(peer, row.vocab) as process:
            process.touch()
            process.put("start", start or _FIRST_CALL)
            process.once(ONE, "start")
            process.put("texts", texts)
            return sum(map(size, texts)) * 1000 / process.once(ONE, "texts")

    suite.measure(row, suite.each(notes, take), notes)


def _in_one_call(
    suite: Suite, row: Row, notes: dict[str, str], texts: Sequence[str], threads: int, passes: int
) -> None:
    """Times one call, after `passes` identical calls."""

    def take(peer: str) -> float:
        with suite.open(peer, row.vocab, threads=threads) as process:
            process.touch()
            process.put("start", _FIRST_CALL)
            process.once(DOCS, "start")
            process.put("texts", texts)
            for _ in range(passes):
                process.once(DOCS, "texts")
            return sum(map(size, texts)) * 1000 / process.once(DOCS, "texts")

    suite.measure(row, suite.each(notes, take), notes)
