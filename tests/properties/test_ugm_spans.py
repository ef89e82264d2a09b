"""UGM encodes the spans between white spaces separately, but only under certain conditions.

Each row has a vocabulary that violates one of these conditions, or barely satisfies it, and texts
whose ids would be wrong if a violation were ignored.

Claim ugm.2.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import ggtok
from fixtures.build import charsmap
from ggtok.text.batch_encoding import encode_blocks
from tests.parity import Result, compare_texts
from tests.support import spans as oracle
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF
from tests.support.samples import times
from tests.support.vocabularies import UGM, fixture, real

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
WHITE = {"\t": " ", "\n": " ", "\r": " "}
HALF = {"\u00bd": "1\u20442"}
SPACED = ["\u2581", "\u2581a", "\u2581b", "a", "b", "ab", "\u2581ab", "1", "2"]


class Row(NamedTuple):
    texts: Sequence[str]
    rules: Mapping[str, str] = WHITE
    tokens: Sequence[str] = SPACED
    user: Sequence[str] = ()
    unknown: str = "<unk>"


ROWS = {
    "spaces and ends of lines": Row(["a b\nab", " a  b\t\r\nab ", "a\u00a0b", "\n", "ab " * 300]),
    "no charsmap": Row(["a b\nab", "a\t b"], rules={}),
    "a user-defined token that holds a space": Row(
        ["a \u00bdb", "a \u00bd", "b a \u00bdb a", "a  \u00bd"],
        WHITE | HALF,
        user=["a \u00bd\u00bd"],
    ),
    "a user-defined token that begins with a newline": Row(
        ["a\n\u00bdb", "\n\u00bd", "a \n\u00bd"], WHITE | HALF, user=["\n\u00bd\u00bd"]
    ),
    "a sequence that holds a space": Row(["a b", "ab a b", "a  b", "a b b"], WHITE | {"a b": "ab"}),
    "a sequence that ends with a space": Row(["a b", "a a b", "ba "], WHITE | {"a ": "b"}),
    "a sequence that begins with a space": Row(["a b", " b", "b  b"], WHITE | {" b": "a"}),
    "a sequence of newlines": Row(["a\n\nb", "a\nb", "\n\n\n"], WHITE | {"\n\n": "ab"}),
    "a sequence that begins with a newline": Row(["a\nb", "\nb", "b\nab"], WHITE | {"\nb": "a"}),
    "a space that is replaced": Row(["a b", " a", "a  b "], WHITE | {" ": "b"}),
    "newlines that are not spaces": Row(["a\nb", "a\n b\r"], {"\n": "ab", "\t": " "}),
    "a token that holds a space": Row(["a b", "b a b a"], tokens=[*SPACED, "a\u2581b"]),
    "no token for the mark": Row(["a xb", "ax xb x", "x x x"], tokens=["\u2581a", "a", "b"]),
    "an unknown token like a word": Row(
        ["ax b", "ax a", "x a x a", "a a"], tokens=["\u2581", "a", "b"], unknown="\u2581a"
    ),
    "unknown characters at both ends": Row(["xax xbx", "x x", "xx  xx"]),
    # Surrogates in these texts represent malformed bytes. As they begin a user-defined token, they
    # stay unchanged.
    "bad bytes that begin a user-defined token": Row(
        [
            "a\udce5 b",
            "\udce5 b",
            "a \udce5\udcad b ab",
            "\udce5 \udce5  b",
            "b \udce5",
            "a" * 5000 + "\udce5 b",
            "a\udce5   bbbbbb",
            "a\udce5 \n\t bbbbbb",
            "a\udce5\u200b bbbbbb",
            "ab a\udce5\u200b\u200b  b" + "\u200b" * 100 + " ab",
        ],
        WHITE | {"\u200b": ""},
        user=["\u5b57a"],
    ),
}


def test_replacements_are_bounded() -> None:
    """A replacement may have up to 32 times the length of the replaced text (in NFKC: 11 times).
    Longer ones raise an error when they are used."""
    gguf = GGUF.read(fixture("ugm"))
    rules = {"b": "x" * 32, "c": "x" * 33, "\u00e9": "x" * 64, "\u00ea": "x" * 65, "d": "x" * 10**6}
    gguf.set("tokenizer.ggml.precompiled_charsmap", list(charsmap(rules)), "u8")
    tok = ggtok.load(gguf.dump())
    for text, n in (("b" * 100, 3200), ("\u00e9", 64), ("a b", 33)):
        assert 0 < tok.count(text, add_special=False) <= n + 2
    for text in ("c", "a \u00ea", "d" * 500, "b d"):
        with pytest.raises(
            ggtok.VocabError, match="more than 32 times as long as what it replaces"
        ):
            tok.encode(text)
    assert tok.encode("a b")


def test_real_replacements_are_within_the_bound() -> None:
    """The test tries each code point. NFKC has its longest replacement, 33 bytes for 3, for
    U+FDFA."""
    tok = ggtok.load(real(UGM))
    cpts = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    for i in range(0, len(cpts), 1 << 16):
        assert tok.count(" ".join(map(chr, cpts[i : i + (1 << 16)])))


@pytest.mark.parametrize("name", ROWS)
def test_against_llama_cpp(name: str, llama: LlamaCpp, tmp_path: Path) -> None:
    row = ROWS[name]
    gguf = GGUF.read(fixture("ugm"))
    tokens = ["<pad>", "</s>", row.unknown, *row.user, *row.tokens]
    own = NORMAL if row.unknown.startswith("\u2581") else UNKNOWN
    types = [CONTROL, CONTROL, own, *[USER_DEFINED] * len(row.user), *[NORMAL] * len(row.tokens)]
    gguf.set("tokenizer.ggml.tokens", [text.encode() for text in tokens])
    gguf.set("tokenizer.ggml.token_type", types, "i32")
    gguf.set("tokenizer.ggml.scores", [-float(len(text)) for text in tokens], "f32")
    if row.rules:
        gguf.set(
            "tokenizer.ggml.precompiled_charsmap",
            list(charsmap(dict(row.rules), strict=True)),
            "u8",
        )
    else:
        gguf.remove("tokenizer.ggml.precompiled_charsmap")
    path = gguf.write(tmp_path / "spans.gguf")
    vocab, tok = llama.load(path), ggtok.load(path)
    result = Result(name)
    texts = [text.encode("utf-8", "surrogateescape") for text in row.texts]
    compare_texts(vocab, tok, texts + texts[::-1], result)  # the second time from the cache
    vocab.free()
    assert not result.differences, "\n".join(result.shown)
    assert result.comparisons
    for text in texts:
        blocks = encode_blocks(tok._loaded, [text, b""], add_special=False, block_bytes=len(text))
        ids = [id for block in blocks for id in block.tolist()]
        assert ids == tok.encode(text, add_special=False), text


def test_cuts_after_a_character_of_which_a_user_defined_token_keeps_one_byte() -> None:
    """The user-defined token \u00e9! keeps the first byte of \u00e0, but not the second, so the
    space belongs to an incomplete character."""
    text = "avons march\u00e9 jusqu'\u00e0 la mer ".encode()
    tok = ggtok.load(fixture("ugm-nfc"))  # not yet used
    blocks = encode_blocks(
        tok._loaded, [text[i : i + 1] for i in range(len(text))], add_special=False, block_bytes=1
    )
    ids = [id for block in blocks for id in block.tolist()]
    assert ids == tok.encode(text, add_special=False)


@pytest.mark.parametrize("attribute", [UNKNOWN, NORMAL])
def test_unknown_text_whose_characters_begin_tokens(attribute: int) -> None:
    """Some tokens begin with `x` and `y`, which aren't tokens themselves, so a character alone
    doesn't show whether unknown text ends before it. The unknown token's text may also occur."""
    gguf = GGUF.read(fixture("ugm"))
    tokens = ["<pad>", "</s>", "yy", "\u2581", "\u2581a", "a", "ab", "xa", "xab", "1", "\u20442"]
    types = [CONTROL, CONTROL, attribute, *[NORMAL] * 8]
    gguf.set("tokenizer.ggml.tokens", [text.encode() for text in tokens])
    gguf.set("tokenizer.ggml.token_type", types, "i32")
    gguf.set("tokenizer.ggml.scores", [-float(len(text)) for text in tokens], "f32")
    rules = WHITE | HALF | {"\u200b": "", "\u00a8": " y"}
    gguf.set("tokenizer.ggml.precompiled_charsmap", list(charsmap(rules, strict=True)), "u8")
    tok = ggtok.load(gguf.dump())
    parts = ["a", "b", "x", "y", "yy", "ab", "xab", " ", "\n", "\u00bd", "\u200b", "\u00a8", "1"]
    random_parts = random.Random(1)
    sure = 0
    for _ in range(times(300, of=3000)):
        text = "".join(random_parts.choices(parts, k=random_parts.randint(1, 12))).encode()
        ids, spans = tok.encode_with_offsets(text, add_special=False)
        assert ids == tok.encode(text, add_special=False)
        found = [(begin, end) for begin, end in spans.tolist()]
        for a, b, ways in oracle.expected(tok, text, ids, parse_special=False):
            assert found[a:b] in ways or len(ways) == oracle.ENOUGH, (text, ids, found, ways[:3])
            sure += len(ways) == 1
    assert sure > 50
