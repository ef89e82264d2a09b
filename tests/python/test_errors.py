"""Every error for truncated and malformed files, and for wrong arguments.

Each malformed file is a row: its bytes, and the key and offset that the error must name. No bytes
cause a crash.
"""

from __future__ import annotations

import os
import pickle
import random
import struct
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok import adapters
from tests.support.patch import GGUF, TYPES
from tests.support.vocabularies import fixture

# ---- malformed files ----


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def kv(key: bytes, kind: str, body: bytes) -> bytes:
    return string(key) + struct.pack("<I", TYPES.index(kind)) + body


def arr(key: bytes, kind: str | int, n: int, body: bytes) -> bytes:
    number = TYPES.index(kind) if isinstance(kind, str) else kind
    return kv(key, "arr", struct.pack("<IQ", number, n) + body)


def file(*kvs: bytes, n: int | None = None, version: int = 3, tensors: int = 0) -> bytes:
    count = len(kvs) if n is None else n
    return b"GGUF" + struct.pack("<IQQ", version, tensors, count) + b"".join(kvs)


HEADER = 24
FIRST_KEY = HEADER + 8  # the offset at which the first key begins
U32 = kv(b"a.key", "u32", struct.pack("<I", 1))
FIRST_VALUE = FIRST_KEY + 5 + 4  # the offset of the first value if its key has five bytes
SECOND_KEY = FIRST_VALUE + 4 + 8  # the offset of the key after a first value of four bytes

# The file's bytes, and the error's key and offset (None: the error has none).
MALFORMED: dict[str, tuple[bytes, str | None, int | None]] = {
    "empty": (b"", None, 0),
    "three bytes": (b"GGU", None, 0),
    "another format": (b"PK\3\4" + bytes(100), None, 0),
    "a number reversed": (b"FUGG" + bytes(100), None, 0),
    "header cut in the version": (b"GGUF\3\0", None, 6),
    "header cut in the counts": (b"GGUF" + struct.pack("<IQ", 3, 0), None, 16),
    "version 0": (file(version=0), None, 4),
    "version 1": (file(version=1), None, 4),
    "version 4": (file(version=4), None, 4),
    "more keys than bytes": (file(U32, n=1000), None, 16),
    "2^64 - 1 keys": (file(U32, n=2**64 - 1), None, 16),
    "the file ends before a key": (
        file(kv(b"a.key", "str", string(bytes(50))), bytes(3), n=2),
        None,
        FIRST_VALUE + 58,
    ),
    "the file ends inside a key": (file(struct.pack("<Q", 90) + bytes(20), n=1), None, HEADER),
    "a key of 2^63 bytes": (file(struct.pack("<Q", 2**63) + bytes(50)), None, HEADER),
    "an empty key": (file(kv(b"", "u32", bytes(4)), bytes(20), n=1), None, HEADER),
    "a key twice": (file(U32, U32), "a.key", SECOND_KEY),
    "no such value type": (
        file(string(b"a.key") + struct.pack("<I", 13) + bytes(8)),
        "a.key",
        FIRST_VALUE - 4,
    ),
    "value type of 2^32 - 1": (
        file(string(b"a.key") + struct.pack("<I", 2**32 - 1) + bytes(8)),
        "a.key",
        FIRST_VALUE - 4,
    ),
    "the file ends inside a number": (
        file(kv(b"a.key", "u64", bytes(3))),
        "a.key",
        FIRST_VALUE,
    ),
    "the file ends inside a string": (
        file(kv(b"a.key", "str", struct.pack("<Q", 5) + b"abcd")),
        "a.key",
        FIRST_VALUE,
    ),
    "a string of 2^64 - 1 bytes": (
        file(kv(b"a.key", "str", struct.pack("<Q", 2**64 - 1) + b"abcd")),
        "a.key",
        FIRST_VALUE,
    ),
    "the file ends inside an array's head": (
        file(kv(b"a.key", "arr", bytes(7))),
        "a.key",
        FIRST_VALUE,
    ),
    "no such element type": (file(arr(b"a.key", 77, 1, bytes(8))), "a.key", FIRST_VALUE),
    "an array of arrays": (file(arr(b"a.key", "arr", 1, bytes(20))), "a.key", FIRST_VALUE),
    "more elements than bytes": (
        file(arr(b"a.key", "u32", 100, bytes(8))),
        "a.key",
        FIRST_VALUE + 4,
    ),
    "2^62 elements of 4 bytes": (  # their size in bytes is 0 modulo 2^64
        file(arr(b"a.key", "u32", 2**62, bytes(8))),
        "a.key",
        FIRST_VALUE + 4,
    ),
    "more strings than bytes": (
        file(arr(b"a.key", "str", 2**60, string(b"x"))),
        "a.key",
        FIRST_VALUE + 4,
    ),
    "the file ends inside an array's string": (
        file(arr(b"a.key", "str", 2, string(b"x") + struct.pack("<Q", 9) + b"y")),
        "a.key",
        FIRST_VALUE + 12 + 9,
    ),
    "an array's string of 2^64 - 8 bytes": (
        file(arr(b"a.key", "str", 1, struct.pack("<Q", 2**64 - 8) + b"y")),
        "a.key",
        FIRST_VALUE + 12,
    ),
}


@pytest.mark.parametrize("row", MALFORMED)
def test_errors_locate_malformed_data(row: str, tmp_path: Path) -> None:
    data, key, offset = MALFORMED[row]
    path = tmp_path / "malformed.gguf"
    path.write_bytes(data)
    for source in (data, path):
        with pytest.raises(ggtok.GGUFError) as caught:
            ggtok.load(source)
        assert (caught.value.key, caught.value.offset) == (key, offset), caught.value
        if key:
            assert key in str(caught.value)
        if offset:
            assert str(offset) in str(caught.value)


def _metadata_size(data: bytes) -> int:
    """Returns the end of the last key/value pair, which it finds by truncating the file."""
    size = len(data)
    while size:
        try:
            ggtok.load(data[: size - 1])
        except ggtok.GGUFError:
            return size
        size -= 1
    raise AssertionError("no prefix fails")


@pytest.mark.parametrize("name", ["test", "version-2", "big-endian", "none"])
def test_every_truncation_is_an_error(name: str) -> None:
    data = fixture(name).read_bytes()
    for size in range(_metadata_size(data)):
        with pytest.raises(ggtok.GGUFError) as caught:
            ggtok.load(data[:size])
        assert caught.value.offset is not None
        assert caught.value.offset <= size


@pytest.mark.parametrize("name", ["spm", "bpe-odd", "ugm", "wpm", "rwkv", "plamo2", "bpe-gemma4"])
def test_no_damage_crashes(name: str) -> None:
    """Overwriting random bytes results in an error or in a working tokenizer."""
    chooser = random.Random(name)
    sound = fixture(name).read_bytes()
    loaded = 0
    for _ in range(1500):
        data = bytearray(sound)
        for _ in range(chooser.choice((1, 1, 2, 5))):
            at = chooser.randrange(chooser.choice((24, 400, len(data))))
            data[at] = chooser.choice((0, 1, 0xFF, data[at] ^ 1 << chooser.randrange(8)))
        try:
            tok = ggtok.load(data)
        except ggtok.GGTokError:
            continue
        loaded += 1
        try:
            ids = tok.encode("the kettle\n \u6f22 \U0001f44d <s>", parse_special=True)
            tok.decode(ids)
        except ggtok.GGTokError:
            pass
        for id in range(0, tok.n_tokens, 7):
            tok.token_to_piece(id)
    assert loaded > 200


# ---- arguments ----


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-gpt2"))


N = 757  # the number of tokens in bpe-gpt2
HI = [{"role": "user", "content": "Hi"}]

Call = Callable[[ggtok.Tokenizer], object]
ARGUMENTS: dict[str, tuple[Call, type[Exception], str]] = {
    # text
    "encode: no text": (lambda t: t.encode(None), TypeError, "NoneType"),  # type: ignore[arg-type]
    "encode: a number": (lambda t: t.encode(5), TypeError, "int"),  # type: ignore[arg-type]
    "encode: a list": (lambda t: t.encode(["a"]), TypeError, "list"),  # type: ignore[arg-type]
    "encode: every other byte": (
        lambda t: t.encode(memoryview(b"abcd")[::2]),
        TypeError,
        "contiguous",
    ),
    "encode: lone surrogate": (lambda t: t.encode("ab\ud800c"), UnicodeEncodeError, "U\\+D800.*2"),
    "encode_array": (lambda t: t.encode_array(3.5), TypeError, "float"),  # type: ignore[arg-type]
    "encode_array: surrogate": (lambda t: t.encode_array("\udfff"), ValueError, "U\\+DFFF.* 0"),
    "count": (lambda t: t.count(None), TypeError, "NoneType"),  # type: ignore[arg-type]
    "count: surrogate": (lambda t: t.count("\U0001f44d\udc80"), ValueError, "U\\+DC80.* 1"),
    "batch: one str": (lambda t: t.encode_batch("abc"), TypeError, "str"),
    "batch: one bytes": (lambda t: t.encode_batch(b"abc"), TypeError, "bytes"),  # type: ignore[arg-type]
    "batch: no iterable": (lambda t: t.encode_batch(7), TypeError, "int"),  # type: ignore[arg-type]
    "batch: a bad item": (lambda t: t.encode_batch(["a", None]), TypeError, "NoneType"),  # type: ignore[list-item]
    "batch: surrogate": (lambda t: t.encode_batch(["a", "b\ud801"]), ValueError, "U\\+D801.* 1"),
    "batch: threads < 0": (lambda t: t.encode_batch(["a"], threads=-1), ValueError, "-1"),
    "batch: threads a float": (
        lambda t: t.encode_batch(["a"], threads=1.5),  # type: ignore[arg-type]
        TypeError,
        "float",
    ),
    "count_batch: a bad item": (lambda t: t.count_batch([1]), TypeError, "int"),  # type: ignore[list-item]
    "batch arrays: a bad item": (lambda t: t.encode_batch_arrays([1]), TypeError, "int"),  # type: ignore[list-item]
    "text_to_token": (lambda t: t.text_to_token(1), TypeError, "int"),  # type: ignore[arg-type]
    # ids
    "decode: n_tokens": (lambda t: t.decode([0, N]), IndexError, r"ids\[1\].*757"),
    "decode: -1": (lambda t: t.decode([-1]), IndexError, r"ids\[0\].*-1"),
    "decode: 2^31": (lambda t: t.decode([1, 2, 2**31]), IndexError, r"ids\[2\]"),
    "decode: -2^70": (lambda t: t.decode([-(2**70)]), IndexError, r"ids\[0\]"),
    "decode: array": (lambda t: t.decode(np.array([3, N], np.int32)), IndexError, r"ids\[1\]"),
    "decode: int64 array": (lambda t: t.decode(np.array([2**40])), IndexError, r"ids\[0\]"),
    "decode: 2-d": (lambda t: t.decode(np.zeros((2, 2), np.int32)), ValueError, "dimension"),
    "decode: floats": (lambda t: t.decode([1.0]), TypeError, r"ids\[0\].*float"),  # type: ignore[list-item]
    "decode: float array": (lambda t: t.decode(np.array([1.0])), TypeError, "float"),
    "decode: an array of arrays": (
        lambda t: t.decode([1, np.zeros(2, np.int32)]),  # type: ignore[list-item]
        TypeError,
        r"ids\[1\].*ndarray",
    ),
    "decode: a str": (lambda t: t.decode("12"), TypeError, "str"),  # type: ignore[arg-type]
    "decode: an int": (lambda t: t.decode(5), TypeError, "int"),  # type: ignore[arg-type]
    "decode: None": (lambda t: t.decode(None), TypeError, "NoneType"),  # type: ignore[arg-type]
    "decode: strict": (
        lambda t: t.decode(t.encode(b"\xe2\x82\xac")[:1], errors="strict"),
        UnicodeDecodeError,
        "utf-8",
    ),
    "decode: no such handler": (
        lambda t: t.decode(t.encode("\u20ac")[:1], errors="bogus"),
        ValueError,
        "bogus",
    ),
    "decode_bytes": (lambda t: t.decode_bytes([N]), IndexError, "757"),
    "decode_batch": (lambda t: t.decode_batch([[1], [2, N]]), IndexError, r"lists\[1\]: ids\[1\]"),
    "decode_batch: one list": (lambda t: t.decode_batch([1]), TypeError, r"lists\[0\]: ids"),  # type: ignore[list-item]
    "decode_batch: an int": (lambda t: t.decode_batch(5), TypeError, "lists must be"),  # type: ignore[arg-type]
    "decode_batch: strict": (
        lambda t: t.decode_batch([t.encode(b"\xe2\x82\xac")[:1]], errors="strict"),
        UnicodeDecodeError,
        "utf-8",
    ),
    # one token
    "piece: n_tokens": (lambda t: t.token_to_piece(N), IndexError, "757"),
    "piece: -1": (lambda t: t.token_to_piece(-1), IndexError, "-1"),
    "piece: a str": (lambda t: t.token_to_piece("a"), TypeError, "str"),  # type: ignore[arg-type]
    "piece: lstrip < 0": (lambda t: t.token_to_piece(1, lstrip=-1), ValueError, "lstrip"),
    "text: n_tokens": (lambda t: t.token_text(N), IndexError, "757"),
    "score: 2^40": (lambda t: t.token_score(2**40), IndexError, "1099511627776"),
    "attr: -2": (lambda t: t.token_attr(-2), IndexError, "-2"),
    "attr: None": (lambda t: t.token_attr(None), TypeError, "NoneType"),  # type: ignore[arg-type]
    "is_control: n_tokens": (lambda t: t.is_control(N), IndexError, "757"),
    "is_eog: a str": (lambda t: t.is_eog("a"), TypeError, "str"),  # type: ignore[arg-type]
    # load
    "load: None": (lambda t: ggtok.load(None), TypeError, "NoneType"),  # type: ignore[arg-type]
    "load: a number": (lambda t: ggtok.load(3), TypeError, "int"),  # type: ignore[arg-type]
    "load: NUL in the path": (lambda t: ggtok.load("a\0b"), ValueError, "NUL"),
    "load: pre outside BPE": (lambda t: ggtok.load(fixture("spm"), pre="gpt-2"), ValueError, "BPE"),
    "load: pre a number": (lambda t: ggtok.load(fixture("bpe-gpt2"), pre=3), TypeError, "int"),  # type: ignore[arg-type]
    "load: a text file": (lambda t: with_file(ggtok.load, "r"), TypeError, "opened for bytes"),
    "load: a closed file": (lambda t: ggtok.load(closed()), ValueError, "bpe-gpt2.*closed"),
    "load: a tokenizer": (lambda t: ggtok.load(t), TypeError, "not Tokenizer"),  # type: ignore[arg-type]
    "Tokenizer(path)": (lambda t: ggtok.Tokenizer(fixture("spm")), TypeError, r"ggtok\.load"),
    "Tokenizer()": (lambda t: ggtok.Tokenizer(pre="gpt-2"), TypeError, r"ggtok\.load"),
    "StreamDecoder": (lambda t: ggtok.StreamDecoder(t), TypeError, "stream_decoder"),
    "StreamEncoder": (lambda t: ggtok.StreamEncoder(t._loaded), TypeError, "stream_encoder"),
    "WordCounts": (lambda t: ggtok.WordCounts(), TypeError, r"ggtok\.count_words"),
    # other functions that take a file
    "vocabulary: a tokenizer": (lambda t: ggtok.vocabulary(t), TypeError, "not Tokenizer"),  # type: ignore[arg-type]
    "vocabulary: None": (lambda t: ggtok.vocabulary(None), TypeError, "not NoneType"),  # type: ignore[arg-type]
    "vocabulary: a text file": (
        lambda t: with_file(ggtok.vocabulary, "r"),
        TypeError,
        "opened for bytes",
    ),
    "doctor: a tokenizer": (lambda t: ggtok.doctor(t), TypeError, "not Tokenizer"),  # type: ignore[arg-type]
    "doctor: a file": (lambda t: with_file(ggtok.doctor, "rb"), TypeError, "not BufferedReader"),
    # adapters
    "also_special: an int": (
        lambda t: adapters.llguidance_tokenizer(t, also_special=5),  # type: ignore[arg-type]
        TypeError,
        "also_special must be a collection of ids, not int",
    ),
    "also_special: an int, xgrammar": (
        lambda t: adapters.xgrammar_tokenizer_info(t, also_special=5),  # type: ignore[arg-type]
        TypeError,
        "also_special must be a collection of ids, not int",
    ),
    "also_special: texts": (
        lambda t: adapters.outlines_vocabulary(t, also_special=["<s>"]),  # type: ignore[list-item]
        TypeError,
        "an id of also_special must be an integer, not str",
    ),
    "also_special: no tokenizer": (
        lambda t: adapters.outlines_vocabulary(5, also_special=[1]),  # type: ignore[arg-type]
        TypeError,
        r"tok must be a ggtok\.Tokenizer",
    ),
    "detokenize: an int": (
        lambda t: adapters.LlamaCppTokenizer(t).detokenize(5),  # type: ignore[arg-type]
        TypeError,
        "tokens must be",
    ),
    "LlamaCppTokenizer.encode": (
        lambda t: adapters.LlamaCppTokenizer(t).encode(b"a"),  # type: ignore[arg-type]
        TypeError,
        "text must be str, not bytes",
    ),
    # chats
    "chat: kwargs": (
        lambda t: t.count_chat(HI, chat_template_kwargs=5),  # type: ignore[arg-type]
        TypeError,
        "chat_template_kwargs must be a mapping, not int",
    ),
    "chat: clock": (
        lambda t: t.count_chat(HI, clock=5, template="{{ 1 }}"),  # type: ignore[arg-type]
        TypeError,
        "clock must be a function, not int",
    ),
    "chat: what a clock returns": (
        lambda t: t.count_chat(HI, clock=lambda: 5, template="{{ strftime_now('%Y') }}"),
        TypeError,
        "clock must return a datetime, not int",
    ),
    "chats: threads": (
        lambda t: t.encode_chat_batch([HI], threads="2"),  # type: ignore[arg-type]
        TypeError,
        "threads must be an integer, not str",
    ),
    "chats: threads < 0": (lambda t: t.encode_chat_batch([HI], threads=-1), ValueError, "-1"),
}


def with_file(call: Callable[[Any], object], mode: str) -> object:
    with fixture("bpe-gpt2").open(mode) as file:
        return call(file)


def closed() -> Any:
    with fixture("bpe-gpt2").open("rb") as file:
        return file


@pytest.mark.parametrize("row", ARGUMENTS)
def test_errors_name_wrong_arguments(row: str, tok: ggtok.Tokenizer) -> None:
    call, builtin, message = ARGUMENTS[row]
    with pytest.raises(builtin, match=message) as caught:
        call(tok)
    assert isinstance(caught.value, ggtok.GGTokError)
    # A failed call has no lasting effect.
    assert tok.decode(tok.encode("still works")) == "still works"


def test_lone_surrogate_position(tok: ggtok.Tokenizer) -> None:
    text = "\U0001f44d\u00e9" * 10 + "\udc80tail"
    with pytest.raises(ggtok.TextEncodeError) as caught:
        tok.encode(text)
    assert caught.value.start == 20
    assert "20" in str(caught.value)
    # The same text as UTF-8 bytes is accepted.
    assert tok.encode(text.encode("utf-8", "surrogatepass"))


def test_valid_ids_are_no_error(tok: ggtok.Tokenizer) -> None:
    ids = tok.encode("a few ids")
    for same in (
        tuple(ids),
        iter(ids),
        array("i", ids),
        array("q", ids),
        np.array(ids, np.int64),
        np.array(ids, np.uint16),
        np.repeat(np.array(ids, np.int32), 2)[::2],
    ):
        assert tok.decode(same) == "a few ids"
    assert tok.decode([]) == ""
    assert not tok.is_eog(-1)
    assert not tok.is_eog(10**30)
    assert tok.token_to_piece(np.int64(3)) == tok.token_to_piece(3)


# ---- files ----


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "none.gguf"
    with pytest.raises(FileNotFoundError) as caught:
        ggtok.load(path)
    assert isinstance(caught.value, ggtok.GGTokError)
    assert os.fspath(caught.value.filename) == str(path)


def test_a_folder_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 (the exception depends on the system)
        ggtok.load(tmp_path)
    assert isinstance(caught.value, ggtok.GGTokError)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_file_without_permission_cannot_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "locked.gguf"
    path.write_bytes(fixture("test").read_bytes())
    path.chmod(0)
    root = os.geteuid() == 0  # root may read everything, so become another user for a moment
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionError) as caught:
            ggtok.load(path)
    finally:
        if root:
            os.seteuid(0)
    assert isinstance(caught.value, ggtok.GGTokError)


def test_unknown_pre_tokenizer() -> None:
    with pytest.raises(ggtok.UnknownPreTokenizerError, match="qwen2") as caught:
        ggtok.load(fixture("bpe-gpt2"), pre="qwen-2")
    assert isinstance(caught.value, ggtok.VocabError)
    assert caught.value.name == "qwen-2"


@pytest.mark.parametrize("name", ["it's", "'", "a' (key 'b", "q'' (key 'tokenizer.ggml.pre')"])
def test_the_name_of_an_unknown_pre_tokenizer_in_a_file(name: str) -> None:
    """The name may contain quotes."""
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("tokenizer.ggml.pre", name)
    with pytest.raises(ggtok.UnknownPreTokenizerError) as caught:
        ggtok.load(gguf.dump())
    assert caught.value.name == name


def test_no_vocabulary_to_encode_with() -> None:
    tok = ggtok.load(fixture("none"))
    with pytest.raises(ggtok.VocabError):
        tok.encode("a")
    with pytest.raises(IndexError):
        tok.token_text(0)


def test_a_bos_outside_the_vocabulary() -> None:
    """The reference aborts on such a file."""
    gguf = GGUF.read(fixture("bpe-gemma4"))
    gguf.remove("tokenizer.ggml.bos_token_id")
    tok = ggtok.load(gguf.dump())
    with pytest.raises(ggtok.VocabError, match=r"(?i)bos"):
        tok.encode("a")
    assert tok.encode("a", add_special=False)


def test_errors_can_be_pickled() -> None:
    with pytest.raises(ggtok.GGUFError) as caught:
        ggtok.load(MALFORMED["a key twice"][0])
    copy: Any = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is ggtok.GGUFError
    assert (str(copy), copy.key, copy.offset) == (str(caught.value), "a.key", SECOND_KEY)
    copy = pickle.loads(pickle.dumps(ggtok.DocumentError("x: bad", path="x", kind="malformed")))
    assert type(copy) is ggtok.DocumentError
    assert (str(copy), copy.path, copy.kind) == ("x: bad", "x", "malformed")


def test_control_characters_of_a_file_are_escaped_in_messages(tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("tokenizer.ggml.model", "\x1b]0;x\x07\x1b[2J")
    gguf.write(tmp_path / "escape.gguf")
    with pytest.raises(ggtok.VocabError) as caught:
        ggtok.load(tmp_path / "escape.gguf")
    assert str(caught.value).isprintable()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")
def test_a_pipe_is_reported_as_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        ggtok.load(tmp_path / "pipe")


def test_an_impossible_path() -> None:
    with pytest.raises(ggtok.InvalidValueError):
        ggtok.load("\ud800")


CALLS: dict[str, Callable[[ggtok.Tokenizer], object]] = {
    "encode": lambda tok: tok.encode("a"),
    "encode a view": lambda tok: tok.encode(memoryview(b"a")),
    "encode_array": lambda tok: tok.encode_array("a"),
    "encode_batch": lambda tok: tok.encode_batch(["a"]),
    "encode_batch of views": lambda tok: tok.encode_batch([memoryview(b"a")]),
    "encode_batch_arrays": lambda tok: tok.encode_batch_arrays(["a"]),
    "count": lambda tok: tok.count("a"),
    "count_batch": lambda tok: tok.count_batch(["a"]),
    "token_text": lambda tok: tok.token_text(5),
    "token_score": lambda tok: tok.token_score(5),
    "token_attr": lambda tok: tok.token_attr(5),
    "token_to_piece": lambda tok: tok.token_to_piece(5),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_file_with_ids_but_no_vocabulary(call: str) -> None:
    gguf = GGUF.read(fixture("none"))
    gguf.set("llama.vocab_size", 10)
    tok = ggtok.load(gguf.dump())
    with pytest.raises(ggtok.VocabError, match="no vocabulary"):
        CALLS[call](tok)


class Odd:
    """An integer whose value can't be obtained."""

    def __index__(self) -> int:
        raise TypeError("odd")


def test_ids_that_raise() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    with pytest.raises(ggtok.InvalidTypeError, match=r"ids\[1\] must be an integer, not Odd"):
        tok.decode([1, Odd()])


def test_pre_with_a_nul() -> None:
    with pytest.raises(ggtok.InvalidValueError, match="NUL"):
        ggtok.load(fixture("bpe-gpt2"), pre="gpt-2\0")


@pytest.mark.parametrize("errors", ["no-such-handler", "xmlcharrefreplace", "a\0"])
def test_unknown_error_handlers_are_rejected(errors: str) -> None:
    tok = ggtok.load(fixture("spm-bytes"))
    byte = tok.text_to_token("<0xFF>")
    assert byte is not None
    with pytest.raises(ggtok.InvalidValueError, match="errors"):
        tok.decode([byte], errors=errors)
