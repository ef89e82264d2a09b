"""Malformed sources cause a clear error in bounded time and memory, whatever their bytes."""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ggtok
from ggtok.vocabularies.convert import (
    draft,
    originals,
    sentencepiece_model,
    source_files,
    token_lists,
    vocab_files,
)
from ggtok.vocabularies.convert.ranks import last_merge, recover_merges
from ggtok.vocabularies.convert.sentencepiece_model import (
    SentencePiece,
    SentencePieceModel,
    read_model,
    write_model,
)
from tests.making.convert import sources

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


def changed(*path: Any, value: Any) -> dict[str, Any]:
    document = sources.bpe()
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


JSON: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "not valid JSON: line 1, column 2"),
    "no object": ("[]", "must be a JSON object, but is an array"),
    "not UTF-8": (b'{"a": "\xff"}', "not UTF-8"),
    "nested": ("[" * 100000, "nested too deeply"),
    "NaN": ('{"a": NaN}', "NaN is not a JSON number"),
    "digits": ('{"a": ' + "1" * 5000 + "}", "not valid JSON"),
    "no model": ("{}", "model: is null, should be an object"),
    "a model of another kind": (
        changed("model", value={"type": "WordLevel"}),
        "doesn't support 'WordLevel'",
    ),
    "a negative id": (changed("model", "vocab", "a", value=-1), "-1 is not a token id"),
    "a huge id": (changed("model", "vocab", "a", value=1 << 40), "is not a token id"),
    "an id that is text": (changed("model", "vocab", "a", value="x"), "is a string, should be an"),
    "an id twice": (changed("model", "vocab", "a", value=5), "have the same id 5"),
    "a lone surrogate": (changed("model", "vocab", "\ud800", value=2000), "lone surrogate"),
    "a long token": (changed("model", "vocab", "a" * 70000, value=2000), "too long for a token"),
    "no merges": (changed("model", "merges", value=None), "model.merges: is null"),
    "a merge of one": (changed("model", "merges", value=["a"]), "'a' is not a pair of tokens"),
    "a merge of three": (changed("model", "merges", value=["a b c"]), "is not a pair of tokens"),
    "a merge of numbers": (changed("model", "merges", value=[[1, 2]]), "is not a pair of tokens"),
    "a merge of nothing": (
        changed("model", "merges", value=[["", "a"]]),
        "is not a pair of tokens",
    ),
    "a circle of merges": (
        changed("model", "merges", value=[["ab", "c"], ["a", "bc"], ["abc", "abc"]]),
        "'ab', of 'ab' and 'c', is not a token",
    ),
    "few tokens and a huge id": (
        changed("model", "vocab", "qqq", value=(1 << 21) - 1),
        "2097152 ids are too many for 901 tokens",
    ),
    "an unknown merge": (changed("model", "merges", value=["a zzzz"]), "'zzzz', of 'a' and"),
    "marks of words": (changed("model", "end_of_word_suffix", value="</w>"), "no such marks"),
    "an unknown token that is none": (
        changed("model", "unk_token", value=["a"]),
        "model.unk_token: is an array, should be a string",
    ),
    "added twice": (changed("added_tokens", 1, "content", value="<|endoftext|>"), "occurs twice"),
    "added without id": (
        changed("added_tokens", 1, "id", value=None),
        "added_tokens[1].id: is null",
    ),
    "added that is text": (changed("added_tokens", 1, value="x"), "added_tokens[1]: is a string"),
    "a processor": (
        changed("post_processor", value={"type": 3}),
        "post_processor.type: is an integer",
    ),
}


def unigram(*rows: Any, **model: Any) -> dict[str, Any]:
    document = sources.unigram_with_mask()
    document["model"]["vocab"] += rows
    document["model"] |= model
    return document


def without(document: dict[str, Any], *texts: str) -> dict[str, Any]:
    for text in texts:
        del document["model"]["vocab"][text]
    return document


def wordpiece(**model: Any) -> dict[str, Any]:
    document = sources.wordpiece()
    document["model"] |= model
    return document


# Functions that create malformed documents for models other than byte-level BPE, and the errors.
OTHER_KINDS: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "an unknown token that isn't there": (
        lambda: sources.byte_fallback(
            model={**sources.byte_fallback()["model"], "unk_token": "<none>"}
        ),
        "model.unk_token: '<none>' is not a token",
    ),
    "a byte without a token": (
        lambda: without(sources.byte_fallback(), "<0x00>"),
        "no token '<0x00>': llama.cpp needs one for each byte",
    ),
    "words cut at white space": (
        lambda: sources.byte_fallback(pre_tokenizer={"type": "Whitespace"}),
        "pre_tokenizer: Whitespace: llama.cpp's SentencePiece vocabularies don't split",
    ),
    "spaces that stay": (
        lambda: sources.byte_fallback(normalizer=None),
        "normalizer: must replace spaces by U+2581",
    ),
    "what tokenizers refuses": (
        lambda: sources.bpe(decoder={"type": "Nope"}),
        "tokenizers can't load the source: ",
    ),
    "a pair of three": (lambda: unigram(["a", 0.0, 1]), "is not a pair of a text and a score"),
    "a huge score": (lambda: unigram(["q~", 10**400]), "[1]: the number is too large"),
    "a text twice": (
        lambda: unigram(["q~", 0.0], ["q~", 1.0]),
        "have the same text b'q~'",
    ),
    "an unknown id that isn't there": (lambda: unigram(unk_id=9999), "unk_id: 9999 is not a token"),
    "no tokens": (
        lambda: unigram(vocab=[], unk_id=None) | {"added_tokens": []},
        "there are no tokens",
    ),
    "a charsmap that is none": (
        lambda: unigram() | {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "*"}},
        "precompiled_charsmap: is not base64",
    ),
    "a Unigram cut at digits": (
        lambda: unigram() | {"pre_tokenizer": {"type": "Digits"}},
        "pre_tokenizer: Digits: llama.cpp's Unigram vocabularies don't split",
    ),
    "an empty prefix": (
        lambda: wordpiece(continuing_subword_prefix=""),
        "continuing_subword_prefix: is empty",
    ),
    "an unknown word that isn't there": (
        lambda: wordpiece(unk_token="<none>"),
        "model.unk_token: '<none>' is not a token",
    ),
}


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_other_kinds(name: str, tmp_path: Path) -> None:
    document, message = OTHER_KINDS[name]
    with pytest.raises(ggtok.VocabError) as e:
        ggtok.convert(sources.write(tmp_path / "tokenizer.json", document()))
    assert message in str(e.value)


def test_too_many_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sources.write(tmp_path / "tokenizer.json", sources.bpe())
    monkeypatch.setattr(draft, "MAX_TOKENS", 500)
    with pytest.raises(ggtok.VocabError, match="900 tokens are more than 500"):
        ggtok.convert(path)
    monkeypatch.setattr(sentencepiece_model, "MAX_TOKENS", 2)
    with pytest.raises(ggtok.VocabError, match="more than 2 pieces"):
        ggtok.convert(sources.write(tmp_path / "x.model", sources.spm("bpe")))
    monkeypatch.setattr(token_lists, "MAX_TOKENS", 2)
    with pytest.raises(ggtok.VocabError, match="line 3: more than 2 tokens"):
        ggtok.convert(sources.write(tmp_path / "x.jsonl", '["a", 0]\n["b", 0]\n["c", 0]\n'))


def test_long_tokens_take_no_quadratic_time(tmp_path: Path) -> None:
    document = sources.byte_fallback()
    vocab = document["model"]["vocab"]
    vocab |= {"a" * (60000 + i): len(vocab) + i for i in range(3)}
    path = sources.write(tmp_path / "tokenizer.json", document)
    with pytest.raises(ggtok.VocabError, match="too long to examine all their splits"):
        ggtok.convert(path)


@pytest.mark.parametrize("name", JSON)
def test_tokenizer_json(name: str, tmp_path: Path) -> None:
    data, message = JSON[name]
    path = sources.write(tmp_path / "tokenizer.json", data)
    with pytest.raises(ggtok.VocabError) as e:
        ggtok.convert(path)
    assert message in str(e.value) and str(e.value).count(str(path)) == 1


def test_a_faulty_file_in_the_folder(tmp_path: Path) -> None:
    sources.write(tmp_path / "tokenizer.json", sources.bpe())
    path = sources.write(tmp_path / "config.json", "[]")
    with pytest.raises(ggtok.VocabError) as e:
        ggtok.convert(tmp_path)
    assert str(e.value).startswith(f"{path}: must be a JSON object, but is an array")


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    with open(path, "wb") as file:
        file.truncate(source_files.MAX_BYTES + 1)  # a sparse file
    with pytest.raises(ggtok.VocabError, match="too large for a vocabulary"):
        ggtok.convert(path)
    monkeypatch.setattr(source_files, "MAX_VALUES", 1000)
    with pytest.raises(ggtok.VocabError, match="more than 1000 values"):
        ggtok.convert(sources.write(path, sources.bpe()))


WIDE = {
    "arrays": b"[],",
    "objects": b'{"a":0},',
    "other keys": b'{"%d":0},',
    "objects in objects": b'{"a":{"b":0}},',
    "texts": b'"%d",',
}


@pytest.mark.parametrize("name", WIDE)
def test_memory_of_wide_json(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value takes at most 200 bytes; the real limit for values is 64 times that in this
    test."""
    n = source_files.MAX_VALUES >> 6
    monkeypatch.setattr(source_files, "MAX_VALUES", n)
    unit = WIDE[name]
    rows = [unit % i if b"%d" in unit else unit for i in range(n)]

    def document(count: int) -> bytes:
        return b'{"a":[' + b"".join(rows[:count]) + b"0]}"

    each = sum(map(unit.count, (b",", b"{", b"[")))
    data = document(n // each - 2)
    with pytest.raises(ggtok.VocabError, match=f"more than {n} values"):
        source_files.parse_object(document(n // each + 1), "x")
    tracemalloc.start()
    try:
        assert source_files.parse_object(data, "x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 * n


LONG = {
    "x.tiktoken": (b"\n" * (1 << 19) + b"a", "line 524289: not a token"),
    "x.jsonl": (b"\n" * (1 << 18) + b"1", "line 262145: is an integer"),
    "x.txt": (b"\n" * (1 << 19) + b"1", "line 524289: not an id"),
    "x.model": (b"\n\4\n\2ab" * (1 << 13) + b"\n", "an integer is cut off"),
}


@pytest.mark.parametrize("name", LONG)
def test_memory_of_long_files(name: str, tmp_path: Path) -> None:
    """Reading takes little more memory than the file, because lines aren't kept, and blocks are
    small."""
    data, message = LONG[name]
    path = sources.write(tmp_path / name, data)
    tracemalloc.start()
    try:
        with pytest.raises(ggtok.VocabError, match=message):
            ggtok.convert(path, pre="qwen2")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (30 if name == "x.model" else 7) * len(data) + (1 << 18)


def test_too_many_merges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocab_files, "MAX_TOKENS", 1000)
    sources.write(tmp_path / "merges.txt", "a b\n" * 1001)
    with pytest.raises(ggtok.VocabError, match="more than 1000 merges"):
        ggtok.convert(sources.write(tmp_path / "vocab.json", "{}"))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
def test_a_file_without_a_size() -> None:
    assert b"Threads:" in source_files.read_bytes("/proc/self/status")


def test_missing_sources(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        ggtok.convert(tmp_path / "tokenizer.json")
    with pytest.raises(FileNotFoundError, match="has no tokenizer"):
        ggtok.convert(tmp_path)
    with pytest.raises(
        ggtok.InvalidValueError, match="unknown format: neither its contents nor its name"
    ):
        ggtok.convert(sources.write(tmp_path / "x.bin", b""))
    with pytest.raises(ggtok.InvalidValueError, match=r"x.gguf: already a vocabulary for llama"):
        ggtok.convert(sources.write(tmp_path / "x.gguf", b"GGUF"))
    with pytest.raises(ggtok.InvalidValueError, match="unknown format"):
        ggtok.convert(sources.write(tmp_path / "y.gguf", b"text"))
    with pytest.raises(ggtok.InvalidTypeError, match="source must be str or a path"):
        ggtok.convert(3)  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidTypeError, match="pre must be str"):
        ggtok.convert(tmp_path, pre=3)  # type: ignore[arg-type]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "tokenizer.json")
        with pytest.raises(ggtok.FileError, match="not a regular file"):
            ggtok.convert(tmp_path / "tokenizer.json")


def row(token: bytes, rank: object) -> bytes:
    return base64.b64encode(token) + b" %s\n" % str(rank).encode()


TIKTOKEN = {
    "empty": (b"", "there are no tokens"),
    "no rank": (b"YQ==\n", "line 1: not a token in base64"),
    "no base64": (b"a*b 1\n", "not base64"),
    "a large rank": (row(b"a", 1 << 24), "the rank is too large"),
    "an endless rank": (row(b"a", 1 << 90), "not a token in base64"),
    "an empty token": (b" 1\n", "0 bytes"),
    "a hole in the ranks": (row(b"a", 0) + row(b"b", 2_000_000), "2000001 ids are too many for 2"),
    "a token twice": (row(b"a", 1) + row(b"a", 2), "has rank 1 too"),
    "a rank twice": (row(b"a", 1) + row(b"b", 1), "line 1 has rank 1 too"),
}


@pytest.mark.parametrize("name", TIKTOKEN)
def test_tiktoken(name: str, tmp_path: Path) -> None:
    data, message = TIKTOKEN[name]
    with pytest.raises(ggtok.VocabError) as e:
        ggtok.convert(sources.write(tmp_path / "x.tiktoken", data), pre="qwen2")
    assert message in str(e.value)


RWKV = {
    "code": (b"1 __import__('os') 1\n", "not a string or bytes literal"),
    "no length": (b"1 'a'\n", "not an id, a literal and a length"),
    "another length": (b"1 'a' 2\n", "has 1 bytes, but the line says 2"),
    "an empty token": (b"1 '' 0\n", "the token is empty"),
    "an escape": (b"1 '\\xZZ' 1\n", "is not a literal"),
    "an id twice": (b"1 'a' 1\n1 'b' 1\n", "the id 1 occurs twice"),
    "not UTF-8": (b"\xff", "not UTF-8 at byte 0"),
}


@pytest.mark.parametrize("name", RWKV)
def test_rwkv(name: str, tmp_path: Path) -> None:
    data, message = RWKV[name]
    with pytest.raises(ggtok.VocabError) as e:
        ggtok.convert(sources.write(tmp_path / "rwkv.txt", data))
    assert message in str(e.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocab": []}, "tokens, but vocab has 0"),
        ({"special_tokens": [{"rank": 1, "token_str": "x"}]}, "special tokens aren't in order"),
        ({"special_tokens": [{"rank": i, "token_str": str(i)} for i in range(31)]}, "more than 30"),
    ],
)
def test_tekken(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = sources.write(tmp_path / "tekken.json", sources.tekken(**change))
    with pytest.raises(ggtok.VocabError, match=message):
        ggtok.convert(path)


def test_tekken_rows(tmp_path: Path) -> None:
    for key, value, message in (
        ("rank", 7, "ranks must be in order"),
        ("token_bytes", "*", "is not base64"),
        ("token_bytes", "", "empty or a duplicate"),
    ):
        document = sources.tekken()
        document["vocab"][3][key] = value
        with pytest.raises(ggtok.VocabError, match=message):
            ggtok.convert(sources.write(tmp_path / "tekken.json", document))


def test_plamo(tmp_path: Path) -> None:
    for line, message in (
        ("[1]", "must have a text and a score"),
        ('["a", []]', "should be a number"),
    ):
        with pytest.raises(ggtok.VocabError, match=message):
            ggtok.convert(sources.write(tmp_path / "x.jsonl", line))


# ---- the child process that runs the source's package ----

REPLACES = {
    "longer and longer": [({"String": "e"}, "e" * 1000)] * 2,
    "a search that takes exponential time": [({"Regex": "(x+x+)+y"}, "")],
}


@pytest.mark.parametrize("name", REPLACES)
def test_normalizers_take_bounded_time_and_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(originals, "SECONDS", 2)
    monkeypatch.setattr(originals, "MEMORY", 1 << 30)
    steps = [
        {"type": "Replace", "pattern": pattern, "content": content}
        for pattern, content in REPLACES[name]
    ]
    document = sources.bpe(normalizer={"type": "Sequence", "normalizers": steps})
    vocab = document["model"]["vocab"]
    vocab |= {"x" * (50 + i): len(vocab) + i for i in range(100)}
    v = ggtok.convert(sources.write(tmp_path / "tokenizer.json", document))
    assert "tokenizers can't encode text with this source within 2 seconds" in str(v.report)
    assert "not compared" in str(v.report)
    assert v.tokenizer().decode(v.tokenizer().encode("hello")) == "hello"


def test_a_package_that_crashes_or_writes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    package = originals.Package("tiktoken")
    ranks = {bytes([i]): i for i in range(256)}
    source = {"pattern": ".", "ranks": ranks, "special": {}}
    encode = package.read(source)
    assert encode is not None and encode(["ab", ""]) == [[97, 98], []]
    other = package.read({**source, "pattern": "[^a]"})
    assert other is not None and (other(["ab"]), encode(["ab"])) == ([[98]], [[97, 98]])
    assert package._child is not None
    package._child.kill()
    with pytest.raises(originals.TooMuch, match="it exceeded a limit or crashed"):
        encode(["ab"])
    assert encode(["ab"]) == [[97, 98]]  # in a new child process
    with pytest.raises(ggtok.VocabError, match="tiktoken can't load the source: "):
        package.read({**source, "pattern": "("})
    monkeypatch.setattr(originals, "MAX_ANSWER", 100)
    small = originals.Package("tiktoken").read(source)
    with pytest.raises(originals.TooMuch, match="too many ids"):
        small(["a" * 100])  # type: ignore[misc]


def test_limits_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for platform, kinds in (
        ("linux", {resource.RLIMIT_CPU: 7, resource.RLIMIT_CORE: 0, resource.RLIMIT_AS: 9}),
        ("darwin", {resource.RLIMIT_CPU: 7, resource.RLIMIT_CORE: 0}),
    ):
        limits: dict[int, int] = {}

        def set_limit(kind: int, most: tuple[int, int], to: dict[int, int] = limits) -> None:
            to[kind] = most[0]

        monkeypatch.setattr("sys.platform", platform)
        monkeypatch.setattr(resource, "setrlimit", set_limit)
        originals._limit(7, 9)
        assert limits == kinds
    monkeypatch.setitem(sys.modules, "resource", None)
    originals._limit(7, 9)


def test_no_package_runs_without_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen program would start itself instead of Python."""
    monkeypatch.setattr("sys.executable", os.path.join(os.sep, "no", "such", "python"))
    with pytest.raises(originals.TooMuch, match="can't run in a child process: No such file"):
        originals.Package("tokenizers").read("{}")
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert originals.Package("tokenizers").read("{}") is None


# ---- SentencePiece's protocol buffer ----


@settings(max_examples=2000, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_model_or_an_error(data: bytes) -> None:
    try:
        model = read_model(data)
    except ggtok.VocabError:
        return
    assert model.pieces


pieces = st.builds(
    SentencePiece,
    st.binary(max_size=8),
    st.floats(width=32, allow_nan=False),
    st.integers(-(1 << 31), (1 << 31) - 1),
)
models = st.builds(
    SentencePieceModel, pieces=st.lists(pieces, min_size=1, max_size=4), charsmap=st.binary()
)


@settings(max_examples=500, deadline=None)
@given(model=models, data=st.data())
def test_models_round_trip_and_survive_changes(
    model: SentencePieceModel, data: st.DataObject
) -> None:
    written = write_model(model)
    assert read_model(written) == model
    at = data.draw(st.integers(0, len(written) - 1))
    byte = data.draw(st.integers(0, 255))
    for broken in (written[:at], written[:at] + bytes([byte]) + written[at + 1 :]):
        with contextlib.suppress(ggtok.VocabError):
            assert read_model(broken).pieces


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\n\x03\n\x01a" + b"\n\x02\x10\x01", "a score is not a float"),
        (b"\n\x02\x08\x01", "a field is a number, not a text"),
        (b"\n\x03\n\x01a" + b"\x12\x03\xc2\x02\x00", "is not an integer"),
        (b"\n\x03\n\x01a" + b"\x1a\x02\x1a\x00", "is not an integer"),
    ],
)
def test_fields_of_another_kind(data: bytes, message: str) -> None:
    with pytest.raises(ggtok.VocabError, match=message):
        read_model(data)


def test_models_that_llamacpp_cannot_be(tmp_path: Path) -> None:
    good = sources.spm("bpe")
    for change, message in (
        ({"model_type": 3}, "model_type: llama.cpp doesn't support word"),
        ({"whitespace_as_suffix": True}, "treat_whitespace_as_suffix"),
        ({"escape_whitespaces": False}, "escape_whitespaces"),
    ):
        model = read_model(good)
        vars(model).update(change)
        path = sources.write(tmp_path / "x.model", write_model(model))
        with pytest.raises(ggtok.VocabError, match=message):
            ggtok.convert(path)
    for piece, message in (
        (SentencePiece(b"\xff", 0.0, 1), "not UTF-8"),
        (SentencePiece(b"a", 0.0, 9), "type 9"),
        (read_model(good).pieces[301], "have the same text"),
    ):
        model = read_model(good)
        model.pieces[300] = piece
        with pytest.raises(ggtok.VocabError, match=message):
            ggtok.convert(sources.write(tmp_path / "x.model", write_model(model)))


# ---- ranks ----


def naive(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes] | None:
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        joint = [
            (ranks[a + b], i)
            for i, (a, b) in enumerate(itertools.pairwise(parts))
            if a + b in ranks
        ]
        if not joint:
            return None
        _, i = min(joint)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return (parts[0], parts[1]) if len(parts) == 2 else None


@settings(max_examples=500, deadline=None)
@given(st.lists(st.text("ab", min_size=2, max_size=7), unique=True, max_size=20))
def test_the_last_merge_is_that_of_the_naive_rule(texts: list[str]) -> None:
    ranks = {b"a": 0, b"b": 1} | {text.encode(): 2 + i for i, text in enumerate(texts)}
    for token in ranks:
        if len(token) > 1:
            assert last_merge(token, ranks) == naive(token, ranks)


def test_a_long_token_takes_no_quadratic_time() -> None:
    n = 1 << 16
    ranks = {b"a": 0} | {b"a" * (1 << i): i for i in range(1, 17)}
    merges, unreachable = recover_merges(ranks)
    assert len(merges) == 16 and not unreachable and len(merges[-1][0]) == n // 2
