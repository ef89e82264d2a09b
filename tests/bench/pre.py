"""The group `pre`: every pre-tokenizer name on gpt-2's vocabulary, compared with llama.cpp.

Times English and Chinese: cached (warm), and in a new process (first). llama.cpp encodes less text,
since it is slow.
"""

from __future__ import annotations

from tests.bench.corpora import MB, chinese, prose, size
from tests.bench.peers import ONE, OURS, REFERENCE
from tests.bench.suite import Suite
from tests.support.patch import GGUF
from tests.support.vocabularies import PRE_NAMES, real


def pre(suite: Suite) -> None:
    corpora = (prose(), chinese(suite.options.corpora))
    heads = {corpus.name: [corpus.head(MB)] for corpus in corpora}
    for name in PRE_NAMES:
        vocab = f"gpt-2, pre={name}"
        gguf = GGUF.read(real("gpt-2"))
        gguf.set("tokenizer.ggml.pre", name)
        if name == "whitespace":  # llama.cpp aborts on this name with model gpt2
            gguf.set("tokenizer.ggml.model", "whitespace")
        suite.add(vocab, gguf.write(suite.folder / f"pre-{name}.gguf"))
        peers = [peer for peer in (OURS, REFERENCE) if peer in suite.options.peers]
        with suite.checked(vocab, peers, {ONE: heads}) as (notes, processes):
            for key, texts in heads.items():
                takers = {
                    peer: suite.speed_of(process, peer, ONE, key, texts)
                    for peer, process in processes.items()
                }
                suite.measure(suite.row("pre", vocab, key, f"warm, {ONE}"), takers, notes)
        for key, [text] in heads.items():

            def take(_: int, vocab: str = vocab, text: str = text) -> float:
                with suite.open(OURS, vocab) as process:
                    process.put("first", [text])
                    return size(text) * 1000 / process.once(ONE, "first")

            row = suite.row("pre", vocab, key, f"first, {ONE}")
            theirs = suite.rows[-len(heads)].cells.get(REFERENCE)
            if theirs:  # llama.cpp has no cache, so its warm samples count here, too
                row.cells[REFERENCE] = theirs
            suite.measure(row, {OURS: take}, rounds=min(3, suite.options.rounds))
