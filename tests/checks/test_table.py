"""The tables in docs/doctor.md are up to date, and tokens reported as unreachable never occur."""

from __future__ import annotations

import pydoc_data.topics
import re
from itertools import pairwise

import numpy as np
import pytest

import ggtok
from ggtok.inspect.doctor.codes import KINDS, SERIOUS
from ggtok.inspect.doctor.reach import Ranks, idle_merges
from ggtok.inspect.parity.compare import generate_texts
from ggtok.inspect.parity.texts import CODE, EMOJI, PROSE
from tests.checks import table
from tests.support.patch import GGUF
from tests.support.vocabularies import INP_OUT, OTHERS, REAL, fixture, inp_out, real

# Checking all vocabularies would take too long; the script that writes the table checks the others.
SOME = ("phi-3", "gpt-2", "deepseek-coder", "bert-bge", "baichuan")
UNHEALTHY = {"gpt-neox", "aquila"}  # files that name no pre-tokenizer
UNREACHABLE = ("GGT401", "GGT402", "GGT403", "GGT404")


def test_the_table_of_findings_is_up_to_date() -> None:
    assert table.table_on_page("findings") == table.kinds()


@pytest.mark.parametrize("name", SOME)
def test_the_table_of_vocabularies_is_up_to_date(name: str) -> None:
    assert table.row(name) in table.table_on_page("vocabularies").splitlines()


def test_only_unhealthy_vocabularies_have_serious_findings() -> None:
    rows = table.table_on_page("vocabularies").splitlines()[2:]
    names = [row.split("|")[1].strip() for row in rows]
    assert names == [*REAL, *OTHERS]
    serious = {code for code, kind in KINDS.items() if kind.severity == SERIOUS}
    faulty = {
        n for n, row in zip(names, rows, strict=True) if {*re.findall(r"GGT\d+", row)} & serious
    }
    assert faulty == UNHEALTHY


@pytest.mark.parametrize("name", SOME)
def test_unreachable_tokens_never_occur(name: str) -> None:
    tok = ggtok.load(real(name))
    unreachable = {id for f in table.findings(name) if f.code in UNREACHABLE for id in f.ids}
    texts = [text.encode() for text in pydoc_data.topics.topics.values()]
    texts += ["".join(part).encode() for part in (PROSE, CODE, EMOJI)]
    texts += [text for other in INP_OUT for text in inp_out(other)[0]]
    texts += generate_texts(tok, 1000, 5)
    ids, _ = tok.encode_batch_arrays(texts)
    assert unreachable & set(np.unique(ids).tolist()) == set()
    assert len(np.unique(ids)) > 1000


def last_merge(text: str, ranks: Ranks) -> tuple[str, str] | None:
    """Merges the characters of a text, in the simplest way. Returns the last merge if the result is
    the whole text, or else None."""
    symbols, last = list(text), None
    while pairs := [pair for pair in pairwise(symbols) if pair in ranks]:
        last = min(pairs, key=ranks.__getitem__)
        at = list(pairwise(symbols)).index(last)
        symbols[at : at + 2] = ["".join(last)]
    return last if len(symbols) == 1 else None


@pytest.mark.parametrize("name", ["bpe-llama3", "bpe-odd", "bpe-gpt2"])
def test_idle_merges_are_those_that_never_come_last(name: str) -> None:
    """The fast search finds the same merges as merging each token's characters."""
    ranks: dict[tuple[str, str], int] = {}
    for rank, text in enumerate(GGUF.read(fixture(name)).strings("tokenizer.ggml.merges")):
        left, _, right = text.decode("utf-8", "surrogateescape").partition(" ")
        if left and right:
            ranks.setdefault((left, right), rank)
    # The file's merges; the same merges in an order that makes some idle; and additional merges,
    # whose parts don't exist.
    reversed_end = dict(zip(ranks, [*range(50), *reversed(range(50, len(ranks)))], strict=True))
    more = {**ranks, ("zzz", "qq"): len(ranks), ("t", "h e"): len(ranks) + 1}
    for merges in (ranks, reversed_end, more):
        plain = {parts for parts in merges if last_merge("".join(parts), merges) != parts}
        assert set(idle_merges(merges)) == plain
