"""One function for each group of measurements.

encode   MB/s. warm: cached text. fresh: uncached text, after other text of the
         same corpus. first: the first 16 MB that a new process encodes.
load     ms. new: in a new process. again: once more in the same process. The file is in the
         page cache. The other tokenizers read their own formats (peers.py).
prompts  us per call, for 64 cached prompts in turn.
memory   MB by which a new process grows during import and load, and then during 16 MB of text.
worst    ms for texts of 1 MB on which some tokenizers are slow, each in a new process, and again.
threads  MB/s of documents on one and on two threads, and the ratio.
models   MB/s with vocabularies of every type: one WPM, one UGM, grown.py's and the fixtures.
chat     us per conversation, from messages to ids and to text (chat.py).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.bench import long_words
from tests.bench.corpora import MB, Corpus, chinese, code, cut, documents, mixed, prose, size
from tests.bench.grown import GROWN, grow
from tests.bench.peers import DOCS, DOCS_LISTS, ONE, ONE_LIST, OURS, REFERENCE
from tests.bench.process import Process, cores
from tests.bench.results import Row
from tests.bench.suite import DETAILED, Suite
from tests.bench.worker import SPECIAL
from tests.support.patch import GGUF
from tests.support.vocabularies import OTHERS, REAL, UGM, WPM, fixture_names

ALL = (*DETAILED, *(name for name in (*REAL, *OTHERS) if name not in DETAILED))
_PROMPTS = 64
_WORST_SECONDS = 30.0
_NOT_TEXT = ("none", "big-endian", "version-2")  # fixtures that can't be measured


def _texts(suite: Suite) -> list[Corpus]:
    return [prose(), code(), *suite.options.corpora]


def _others(suite: Suite) -> list[str]:
    return [peer for peer in suite.options.peers if peer != REFERENCE]


# ---- encode ----


def encode(suite: Suite) -> None:
    for vocab in suite.vocabs(*ALL):
        detailed = suite.options.full or bool(suite.options.vocabs) or vocab in DETAILED[:1]
        some = detailed or vocab in DETAILED
        # ggtok and llama.cpp are measured with every vocabulary, the other tokenizers only with
        # those in DETAILED, unless --full or --vocab is given.
        peers = suite.options.peers if some else [OURS, REFERENCE]
        wide = suite.options.full or bool(suite.options.vocabs or suite.options.corpora)
        corpora = _texts(suite) if detailed and wide else [prose()]
        _encode_vocab(suite, vocab, peers, corpora, detailed)


def _encode_vocab(
    suite: Suite, vocab: str, peers: Sequence[str], corpora: Sequence[Corpus], detailed: bool
) -> None:
    peers = [peer for peer in peers if peer in suite.options.peers]
    heads = {corpus.name: [corpus.head(MB)] for corpus in corpora}
    docs = {name + " docs": documents(text) for name, [text] in heads.items()}
    check = {ONE: heads, ONE_LIST: heads, DOCS: docs, DOCS_LISTS: docs}
    if not detailed:
        check = {ONE: heads}
    with suite.checked(vocab, peers, check) as (notes, processes):
        for form in check:
            for key, texts in check[form].items():
                row = suite.row("encode", vocab, key.removesuffix(" docs"), f"warm, {form}")
                takers = {
                    peer: suite.speed_of(process, peer, form, key, texts)
                    for peer, process in processes.items()
                }
                suite.measure(row, takers, notes)
    if detailed:
        for corpus in corpora:
            _fresh(suite, "encode", vocab, corpus, [p for p in peers if p != REFERENCE])
        _first(suite, vocab, [p for p in peers if p != REFERENCE])


def _fresh(suite: Suite, group: str, vocab: str, corpus: Corpus, peers: Sequence[str]) -> None:
    """Times chunks of 1 MB (or a third of a smaller corpus), after one chunk that isn't timed."""
    n = min(MB, size(corpus.text) // 3)
    chunks = cut(corpus.text, n, suite.options.rounds + 1)
    chunks = [chunk for chunk in chunks if size(chunk) > n // 2]
    notes = suite.agree(vocab, peers, {ONE: {f"{corpus.name} fresh": chunks}})
    running: dict[str, tuple[Process, Iterator[str]]] = {}

    def take(peer: str) -> float:
        chunk = next(running[peer][1], None) if peer in running else None
        if chunk is None:  # there is no process, or it has encoded all chunks
            if peer in running:
                running.pop(peer)[0].close()
            process = suite.open(peer, vocab)
            running[peer] = process, iter(chunks[1:])
            process.put("before", chunks[:1])
            process.once(ONE, "before")
            chunk = next(running[peer][1])
        process = running[peer][0]
        process.put("fresh", [chunk])
        return size(chunk) * 1000 / process.once(ONE, "fresh")

    row = suite.row(group, vocab, corpus.name, f"fresh, {n / MB:.1f} MB, {ONE}")
    try:
        suite.measure(row, suite.each(notes, take), notes)
    finally:
        for process, _ in running.values():
            process.close()


def _first(suite: Suite, vocab: str, peers: Sequence[str]) -> None:
    text = mixed(suite.options.corpora).text
    for form, texts in ((ONE, [text]), (DOCS, documents(text))):
        if form == DOCS and not suite.options.full:
            continue
        notes = suite.agree(vocab, peers, {form: {"mixed": texts}})

        def take(peer: str, form: str = form, texts: list[str] = texts) -> float:
            with suite.open(peer, vocab) as process:
                process.put("first", texts)
                return size(text) * 1000 / process.once(form, "first")

        row = suite.row("encode", vocab, "mixed", f"first, {size(text) / MB:.0f} MB, {form}")
        suite.measure(row, suite.each(notes, take), notes)


# ---- load, memory ----


def load(suite: Suite) -> None:
    for vocab in suite.vocabs(*(ALL if suite.options.full else DETAILED)):
        notes = suite.agree(vocab, suite.options.peers, {ONE: {"prose": [prose().head(MB // 10)]}})
        reloads: dict[str, list[float]] = {}

        def take(peer: str, reloads: dict[str, list[float]] = reloads, vocab: str = vocab) -> float:
            with suite.open(peer, vocab) as process:
                new = process.load_ns
                path = str(suite.path(peer, vocab))
                reloads.setdefault(peer, []).append(process.load(path) / 1e6)
            return new / 1e6

        suite.measure(suite.row("load", vocab, "", "new", "ms"), suite.each(notes, take), notes)
        suite.record(suite.row("load", vocab, "", "again", "ms"), reloads, notes)


def memory(suite: Suite) -> None:
    text = mixed(suite.options.corpora).text
    for vocab in suite.vocabs(*(DETAILED if suite.options.full else DETAILED[:1])):
        notes = suite.agree(vocab, suite.options.peers, {ONE: {"prose": [prose().head(MB // 10)]}})
        grown: dict[str, list[float]] = {}

        def take(peer: str, grown: dict[str, list[float]] = grown, vocab: str = vocab) -> float:
            with Process(peer) as process:
                start = process.rss()
                process.load(str(suite.path(peer, vocab)))
                loaded = process.rss()
                if peer != REFERENCE:  # llama.cpp is too slow for so much text
                    process.put("text", [text])
                    before = process.rss()
                    process.once(ONE, "text")
                    grown.setdefault(peer, []).append((process.rss() - before) / MB)
            return (loaded - start) / MB

        megabytes = suite.gguf(vocab).stat().st_size / MB
        row = suite.row("memory", vocab, f"a file of {megabytes:.1f} MB", "after load", "MB")
        suite.measure(row, suite.each(notes, take), notes, rounds=min(3, suite.options.rounds))
        row = suite.row("memory", vocab, f"{size(text) / MB:.0f} MB", "more after encoding", "MB")
        suite.record(row, grown, notes)


# ---- prompts ----


def prompts(suite: Suite) -> None:
    kinds = (("60 bytes", 60), ("2 kB", 2000))
    for vocab in suite.vocabs(*(DETAILED if suite.options.full else DETAILED[:1])):
        named = {kind: _prompts(n) for kind, n in kinds}
        check = {ONE: named, ONE_LIST: named}
        with suite.checked(vocab, suite.options.peers, check) as (notes, processes):
            for form in (ONE_LIST, ONE):
                for kind, texts in named.items():
                    row = suite.row("prompts", vocab, kind, form, "us")
                    takers = {
                        peer: suite.per_call(process, peer, form, kind, texts)
                        for peer, process in processes.items()
                    }
                    suite.measure(row, takers, notes)


def _prompts(n: int) -> list[str]:
    """Returns pieces of prose of at most n bytes, evenly spaced."""
    text = prose().text
    step = len(text) // (_PROMPTS + 1)
    return [cut(text[at : at + n], n, 1)[0] for at in range(0, step * _PROMPTS, step)]


# ---- worst cases ----


def worst(suite: Suite) -> None:
    peers = suite.options.peers if suite.options.full else _others(suite)
    for vocab in suite.vocabs(*(DETAILED if suite.options.full else DETAILED[:1])):
        for name, text in long_words.texts().items():
            _worst(suite, vocab, peers, name, text)
        token = _control_token(suite, vocab)
        if token:
            text = token * 100_000
            _worst(suite, vocab, peers, f"100,000 times {token}", text, control=True)


def _control_token(suite: Suite, vocab: str) -> str:
    """Returns the text of the vocabulary's end-of-sequence token, if it is a control token."""
    gguf = GGUF.read(suite.gguf(vocab))
    key = "tokenizer.ggml.eos_token_id"
    id = gguf.get(key) if key in gguf else None
    types = gguf.array("tokenizer.ggml.token_type")
    if not isinstance(id, int) or types[id] != 3:
        return ""
    return gguf.strings("tokenizer.ggml.tokens")[id].decode()


def _worst(
    suite: Suite, vocab: str, peers: Sequence[str], name: str, text: str, control: bool = False
) -> None:
    form = SPECIAL if control else ONE
    texts = {form: {name: [text]}}
    notes = suite.agree(vocab, peers, texts, control=control, seconds=_WORST_SECONDS)
    again: dict[str, list[float]] = {}

    def take(peer: str) -> float:
        with suite.open(peer, vocab, control=control, seconds=_WORST_SECONDS) as process:
            some = suite.for_peer(peer, [text])
            process.put("worst", some)
            # llama.cpp encodes only the beginning of the text. Its time grows at least linearly, so
            # the extrapolation is a lower bound.
            factor = size(text) / sum(map(size, some)) / 1e6
            first = process.once(form, "worst") * factor
            if peer != REFERENCE:
                again.setdefault(peer, []).append(process.once(form, "worst") * factor)
            return first

    row = suite.row("worst", vocab, name, "new process", "ms")
    suite.measure(row, suite.each(notes, take), notes, rounds=min(3, suite.options.rounds))
    suite.record(suite.row("worst", vocab, name, "again", "ms"), again, notes)


# ---- threads ----


def threads(suite: Suite) -> None:
    texts = documents(mixed(suite.options.corpora).head(8 * MB))
    case = f"warm, {DOCS}"
    for vocab in suite.vocabs(*(DETAILED if suite.options.full else DETAILED[:1])):
        notes = suite.agree(vocab, _others(suite), {DOCS: {"mixed": texts}})
        rows = []
        for n in (1, 2):
            if n > max(1, len(cores(n))):
                continue
            with suite.workers(vocab, notes, threads=n) as processes:
                takers = {
                    peer: suite.speed_of(process, peer, DOCS, "mixed", texts)
                    for peer, process in processes.items()
                }
                row = suite.row("threads", vocab, "mixed", f"{case}, {n} thread{'s' * (n > 1)}")
                suite.measure(row, takers, notes)
                rows.append(row)
        if len(rows) == 2:
            suite.scaling("threads", vocab, "mixed", "2 threads by 1", *rows)


# ---- models ----


def models(suite: Suite) -> None:
    fixtures = [name for name in fixture_names() if name not in _NOT_TEXT]
    for name, path in grow(suite.folder).items():
        suite.add(name, path)
    for vocab in suite.vocabs(WPM, UGM, *GROWN, *fixtures):
        is_real = vocab in (*REAL, *OTHERS)
        peers = suite.options.peers if is_real else [OURS, REFERENCE]
        peers = [peer for peer in peers if peer in suite.options.peers]
        corpora = [prose(), chinese(suite.options.corpora)]
        if suite.options.full and is_real:
            corpora = _texts(suite)
        if vocab == "bpe-hybriddna":
            corpora.append(_dna())
        heads = {corpus.name: [corpus.head(MB)] for corpus in corpora}
        with suite.checked(vocab, peers, {ONE: heads}) as (notes, processes):
            for key, texts in heads.items():
                row: Row = suite.row("models", vocab, key, f"warm, {ONE}")
                takers = {
                    peer: suite.speed_of(process, peer, ONE, key, texts)
                    for peer, process in processes.items()
                }
                suite.measure(row, takers, notes)
        if is_real:
            _fresh(suite, "models", vocab, prose(), [p for p in peers if p != REFERENCE])


def _dna() -> Corpus:
    chooser = random.Random(1)
    parts = ("".join(chooser.choice("ACGT") for _ in range(2000)) for _ in range(100))
    return Corpus("dna", "\n".join(f"<dna>{part}</dna>" for part in parts))
