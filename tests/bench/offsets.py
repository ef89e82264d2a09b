"""Compares the time for ids with offsets with the time for ids alone.

offsets  us per call for cached texts: an array of ids, then ids with offsets.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.corpora import chinese, cut, prose
from tests.bench.peers import OFFSETS, ONE, PEERS
from tests.bench.suite import DETAILED, Suite
from tests.support.vocabularies import UGM, WPM

_CASES = (("60 bytes", 60), ("4 kB", 4096), ("64 kB", 65536))


def offsets(suite: Suite) -> None:
    peers = [peer for peer in suite.options.peers if PEERS[peer].offsets]
    more = (*DETAILED, WPM, UGM, "gemma-4") if suite.options.full else (DETAILED[0], WPM, UGM)
    for vocab in suite.vocabs(*more):
        named = {kind: _texts(prose().text, n) for kind, n in _CASES}
        named["4 kB of Chinese"] = _texts(chinese(suite.options.corpora).text, 4096)
        with suite.checked(vocab, peers, {ONE: named, OFFSETS: named}) as (notes, processes):
            for kind, texts in named.items():
                for form in (ONE, OFFSETS):
                    row = suite.row("offsets", vocab, kind, form, "us")
                    takers = {
                        peer: suite.per_call(process, peer, form, kind, texts)
                        for peer, process in processes.items()
                    }
                    suite.measure(row, takers, notes)


def _texts(text: str, n: int) -> Sequence[str]:
    """Returns a few pieces of prose of about n bytes each."""
    return cut(text, n, 8)[:8]
