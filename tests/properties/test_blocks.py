"""A text encoded in blocks has the ids of the whole text, in bounded memory.

Claim blocks.1, Claim blocks.2.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from ggtok.text.batch_encoding import BLOCK, encode_blocks
from tests.properties.given import HELD_WHOLE, NAMES, flags, hostile_texts, some_bytes
from tests.support.vocabularies import OTHERS, PRE_NAMES, REAL, fixture, real

Load = Callable[[str], ggtok.Tokenizer]


def in_blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


def parts(tok: ggtok.Tokenizer, data: bytes, size: int, **flags: bool) -> list[list[int]]:
    blocks = encode_blocks(tok._loaded, in_blocks(data, size), block_bytes=1, **flags)
    return [ids.tolist() for ids in blocks]


def check(tok: ggtok.Tokenizer, data: bytes, size: int, **flags: bool) -> int:
    """Checks that the parts' ids are those of the whole text, and returns the number of parts."""
    found = parts(tok, data, size, **flags)
    assert [id for part in found for id in part] == tok.encode(data, **flags), (data, size, flags)
    return len(found)


@pytest.mark.parametrize("name", NAMES)
@given(data=some_bytes, size=st.integers(1, 9), flags=flags)
def test_blocks_of_any_text(
    load_fixture: Load, name: str, data: bytes, size: int, flags: dict[str, bool]
) -> None:
    check(load_fixture(name), data, size, **flags)


@pytest.mark.full
@pytest.mark.parametrize("name", [*REAL, *OTHERS])
def test_real_vocabularies(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(real(name))
    n_parts = n_bytes = 0
    for i, data in enumerate(hostile_texts(tok, 20, 25)):
        for size, parse_special in ((1, False), (1 + i % 40, True)):
            text = data[:1500]
            n_parts += check(tok, text, size, add_special=bool(i % 2), parse_special=parse_special)
            n_bytes += len(text)
    assert n_parts > n_bytes / 100  # these texts can be cut often, and the cuts are found


@pytest.mark.parametrize("pre", [name for name in PRE_NAMES if name != "whitespace"])
def test_blocks_with_every_pre_tokenizer(pre: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(fixture("bpe-gpt2"), pre=pre)
    for i, data in enumerate(hostile_texts(tok, 21, 12)):
        check(tok, data[:1500], 1 + i % 3, parse_special=bool(i % 2))
    text = (" ".join(PROSE[:4]).replace("\n", " ") + "\n").encode() * 3
    assert check(tok, text, 64) > len(text) / 64 / 4


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HELD_WHOLE])
def test_ordinary_text_can_be_cut(load_fixture: Load, name: str) -> None:
    text = "".join(f"{line}\n" for line in CODE * 3).encode()
    assert check(load_fixture(name), text, 200) > len(text) / 200 / 4


def test_every_vocabulary_can_be_cut_before_special_tokens(load_fixture: Load) -> None:
    tok = load_fixture("bpe-hybriddna")
    control = next(id for id in range(tok.n_tokens) if tok.is_control(id))
    text = (b"a text" + tok.token_text(control)) * 50
    assert check(tok, text, 100, parse_special=True) > 5
    tok = load_fixture("bpe-qwen2")
    assert check(tok, b"<|im_end|>" * 50, 10, parse_special=True) > 40


def test_texts_without_a_cut_are_encoded_at_once(load_fixture: Load) -> None:
    for name in ("test", "bpe-hybriddna"):
        assert check(load_fixture(name), b"two words\n" * 50, 20) == 1
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\S+|\s+"])
    assert check(tok, b"two words\n" * 50, 20) == 1
    assert check(load_fixture("bpe-llama3"), b"a" * 5000, 20) == 1


def test_blocks_of_every_kind(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    want = tok.encode("one two  three\u00e9")
    blocks: list[list[str | bytes | bytearray | memoryview]]
    blocks = [
        ["one t", b"wo  thr", bytearray(b"ee\xc3"), memoryview(b"\xa9")],
        ["one two  three\u00e9"],
    ]
    for given_blocks in [*blocks, ["", *blocks[0], b""]]:
        assert [
            i for part in encode_blocks(tok._loaded, given_blocks) for i in part.tolist()
        ] == want
    assert [part.tolist() for part in encode_blocks(tok._loaded, [])] == [tok.encode("")]
    large = b"kettles and pans " * (5 * BLOCK // 17)
    found = list(encode_blocks(tok._loaded, [large]))
    assert len(found) > 4
    assert [i for part in found for i in part.tolist()] == tok.encode(large)


def test_errors_are_raised(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    with pytest.raises(ggtok.InvalidTypeError, match="text must be str or bytes-like"):
        list(encode_blocks(tok._loaded, [1]))  # type: ignore[list-item]
    with pytest.raises(UnicodeEncodeError):
        list(encode_blocks(tok._loaded, ["\udc80"]))
    none = ggtok.load(fixture("none"))
    with pytest.raises(ggtok.VocabError, match="no vocabulary"):
        list(encode_blocks(none._loaded, ["text"], block_bytes=1))


MEMORY = """
import sys
import ggtok
from ggtok.text.batch_encoding import encode_blocks
from tests.support.memory import peak
tok = ggtok.load(sys.argv[1])
line = b"The kettle sang while 12 pans, one of copper, hung above it.\\n"
block = line * (1 << 14)
want = tok.encode(line * 2, add_special=False)
n = 0
before = None
for ids in encode_blocks(tok._loaded, (block for _ in range(200)), add_special=False):
    n += len(ids)
    before = before or peak()
print(n, tok.count(block, add_special=False) * 200, peak() - before)
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("name", ["bpe-llama3", "spm"])
def test_memory_does_not_grow(name: str) -> None:
    out = subprocess.run(
        [sys.executable, "-c", MEMORY, fixture(name)], capture_output=True, text=True, check=True
    )
    n, once, grown = map(int, out.stdout.split())
    # SPM adds a space before each block that is counted, but to the whole text only once.
    assert n == once or (name == "spm" and abs(n - once) <= 200)
    assert grown < 40 << 10  # kB, for 200 MB of text
