"""Seeds for fuzzing, made from the fixtures: small files, texts and ids."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from ggtok.inspect.parity.texts import CODE, EMOJI, PROSE
from tests.chat.jinja_grammar import Grammar
from tests.support.patch import GGUF
from tests.support.vocabularies import PRE_NAMES, fixture, fixture_names

TOKENS = "tokenizer.ggml.tokens"
PER_TOKEN = ("tokenizer.ggml.token_type", "tokenizer.ggml.scores")
MERGES = "tokenizer.ggml.merges"
KEEP = 90  # approximate number of tokens in a reduced fixture
USER = 4  # type number of user-defined tokens
WORDS = "the cat sat on  a mat,and went \u00e9t\u00e9 on there for an unbelievably long time"
TEXT = "Hello the cat's 12\n\u00e9\u4f60 <s>"


def gguf_seeds() -> Iterator[bytes]:
    """Yields each fixture, followed by a text. The fixtures are reduced to a few kilobytes, since
    small inputs suit fuzzing best."""
    for name in fixture_names():
        gguf = GGUF.read(fixture(name))
        if TOKENS in gguf:
            _keep_some_tokens(gguf)
        yield gguf.dump() + TEXT.encode()
        if gguf.get("tokenizer.ggml.model") == b"t5":
            enable_ugm_fast_path(gguf)
            yield gguf.dump() + WORDS.encode()


def enable_ugm_fast_path(gguf: GGUF) -> None:
    """Makes UGM use its fast path, which needs a vocabulary that has no charsmap and no
    user-defined tokens, and U+2581 only at the beginning of tokens."""
    tokens = gguf.strings(TOKENS)
    gguf.set(TOKENS, [b"t%d" % i if _blocks_fast_path(t) else t for i, t in enumerate(tokens)])
    gguf.set(PER_TOKEN[0], [1 if kind == USER else kind for kind in gguf.array(PER_TOKEN[0])])
    gguf.remove("tokenizer.ggml.precompiled_charsmap")
    gguf.set("tokenizer.ggml.remove_extra_whitespaces", True)


def _blocks_fast_path(token: bytes) -> bool:
    text = token.decode(errors="replace")
    return "\ufffd" in text or "\u2581" in text[1:]


def _keep_some_tokens(gguf: GGUF) -> None:
    tokens = gguf.strings(TOKENS)
    types = gguf.array(PER_TOKEN[0])
    step = max(1, len(tokens) // (KEEP // 2))
    special = [i for i, kind in enumerate(types) if kind in (2, 3, 4)][:30]
    longer = [i for i, token in enumerate(tokens) if len(token) > 1][: KEEP // 3]
    some = {*special, *longer, *range(0, len(tokens), step), *range(4)}
    ids = sorted(some & {*range(len(tokens))})
    gguf.set(TOKENS, [tokens[i] for i in ids])
    for key in PER_TOKEN:
        if key in gguf:
            values = gguf.array(key)
            gguf.set(key, [values[i] for i in ids])
    if MERGES in gguf:
        gguf.set(MERGES, gguf.strings(MERGES)[:40])


def encode_seeds() -> Iterator[bytes]:
    """Yields a different text for each fixture and pre-tokenizer name (see fuzz_encode.c)."""
    texts = [*PROSE, *CODE, " ".join(EMOJI), "<s>a<|endoftext|> <mask> </s>", " \n\n  x"]
    for which in range(len(fixture_names()) + len(PRE_NAMES)):
        yield bytes([which, which % 8]) + texts[which % len(texts)].encode()[:300]


def session_seeds() -> Iterator[bytes]:
    """Yields some steps for each fixture and pre-tokenizer name (see fuzz_session.c)."""
    rng = random.Random(1)
    texts = [*PROSE, *CODE, " ".join(EMOJI), "<s>a <|endoftext|> <mask> </s> x", TEXT, WORDS]
    for which in range(len(fixture_names()) + len(PRE_NAMES)):
        program = bytearray()
        for _ in range(rng.randrange(2, 6)):
            size = rng.randrange(16) << 4 | rng.choice((0, 4, 8, 10, 11, 12, 13))
            program += bytes([rng.randrange(256), rng.randrange(256), size, rng.randrange(256)])
        text = texts[which % len(texts)].encode()[: rng.randrange(20, 200)]
        yield bytes([which, len(program) // 4, *program]) + text


def detok_seeds() -> Iterator[bytes]:
    """Yields random ids for each fixture (see fuzz_detok.c)."""
    rng = random.Random(1)
    for which, name in enumerate(fixture_names()):
        gguf = GGUF.read(fixture(name))
        n = len(gguf.array(TOKENS)) if TOKENS in gguf else 2
        ids = [rng.randrange(n) for _ in range(20)]
        yield bytes([which, which % 4]) + b"".join(struct.pack("<H", id + 8) for id in ids)


def jinja_seeds() -> Iterator[bytes]:
    """Yields random templates in both dialects (see fuzz_jinja.c)."""
    for seed in range(400):
        source = Grammar(seed, python=bool(seed % 2)).template().encode()
        if len(source) < 700:
            yield bytes([seed % 2]) + source
    yield b'\x02{"x": [1, 2.5, "a", null, {}]}\0{{ x }}'
    yield b'\x03{"x": [1, 2.5, "a", null, {}]}\0{{ x }}'


def chat_seeds() -> Iterator[bytes]:
    """Yields random choices, some for each policy and template (see fuzz_chat.c)."""
    chosen = random.Random(51)
    for which in range(200):
        yield bytes([which % 32, which, which, *chosen.randbytes(30 + which)])


def train_seeds() -> Iterator[bytes]:
    for i, line in enumerate([*PROSE, *CODE]):
        for kind in range(4):
            yield bytes([7 * i & 0xFF, kind | (i & 7) << 2, i & 3]) + (line.encode() + b"\n") * 3


SEEDS = {
    "gguf": gguf_seeds,
    "encode": encode_seeds,
    "detok": detok_seeds,
    "session": session_seeds,
    "jinja": jinja_seeds,
    "chat": chat_seeds,
    "train": train_seeds,
}
