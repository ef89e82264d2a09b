"""Vocabulary: decoding, saving, reading and shrinking."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from ggtok.vocabularies import writers
from ggtok.vocabularies.spelling import BYTE, NORMAL, decode_text
from tests.support.vocabularies import fixture, fixture_names

TEXT = "\n".join([*PROSE, *CODE])


def vocabulary(**fields: object) -> ggtok.Vocabulary:
    basis = {
        "model": "gpt2",
        "pre": "gpt-2",
        "texts": [b"a", b"b", b"ab", b"<s>"],
        "types": [1, 1, 1, 3],
        "merge_texts": [(b"a", b"b")],
        "special_ids": {"bos": 3, "eos": 3},
        "flags": {"add_bos": False},
    }
    return ggtok.Vocabulary(**{**basis, **fields})  # type: ignore[arg-type]


def test_import_ggtok_does_not_import_vocabularies() -> None:
    names = {"numpy", "gguf", "ggtok.vocabularies"}
    code = f"import ggtok, sys; print(sorted({names} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert {"train", "vocabulary", "Vocabulary"} <= {*dir(ggtok)}
    with pytest.raises(AttributeError, match="no attribute 'trane'"):
        _ = ggtok.trane


# ---- reading ----


@pytest.mark.parametrize("name", [name for name in fixture_names() if name not in ("none", "test")])
def test_a_files_vocabulary_written_again(name: str, tmp_path: Path) -> None:
    """For every kind of file, the copy has the same ids and tokens."""
    path = fixture(name)
    v = ggtok.vocabulary(path)
    tok = ggtok.load(path)
    copy = tmp_path / "copy.gguf"
    v.save(copy)
    again = ggtok.load(copy)
    assert again.n_tokens == tok.n_tokens == len(v)
    assert again.model == tok.model and again.pre == tok.pre
    for id in range(tok.n_tokens):
        assert again.token_text(id) == tok.token_text(id)
        assert again.token_attr(id) == tok.token_attr(id)
        scores = again.token_score(id), tok.token_score(id)
        assert scores[0] == scores[1] or all(score != score for score in scores)
    assert again.eog_ids == tok.eog_ids and again._loaded.flags == tok._loaded.flags
    assert again.chat_templates == tok.chat_templates
    for text in PROSE[::9]:
        assert again.encode(text) == tok.encode(text)
    u = ggtok.vocabulary(copy)
    assert (u.texts, u.types, u.merge_texts) == (v.texts, v.types, v.merge_texts)
    assert (u.special_ids, u.flags, u.keys) == (v.special_ids, v.flags, v.keys)
    if tok.model in ("gpt2", "llama", "t5", "gemma4") and name not in ("bpe-odd", "big-endian"):
        for id in range(0, len(v), 7):
            if v.types[id] == NORMAL:
                assert v.tokens[id] == tok.token_to_piece(id)
    elif tok.model in ("bert", "rwkv"):
        assert v.tokens == [tok.token_to_piece(id) for id in range(len(v))]


def test_from_bytes_and_open_files(tmp_path: Path) -> None:
    path = fixture("bpe-gpt2")
    expected = ggtok.vocabulary(path).texts
    assert ggtok.vocabulary(Path(path).read_bytes()).texts == expected
    assert ggtok.vocabulary(memoryview(Path(path).read_bytes())).texts == expected
    with open(path, "rb") as file:
        assert ggtok.vocabulary(file).texts == expected
    with pytest.raises(ggtok.FileError):
        ggtok.vocabulary(tmp_path / "missing.gguf")
    with pytest.raises(ggtok.GGUFError):
        ggtok.vocabulary(b"no file")
    with pytest.raises(ggtok.VocabError, match="no tokens"):
        ggtok.vocabulary(fixture("none"))


def test_by_the_name_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is a local file, or fetched bytes."""
    from ggtok import sources

    data = Path(fixture("bpe-gpt2")).read_bytes()
    path = tmp_path / "some.gguf"
    path.write_bytes(data)
    source = sources.Source(kind="ollama", name="x", path=str(path))
    for found in (sources.Found(source, None), sources.Found(source, data)):
        monkeypatch.setattr(sources, "find_model", lambda name, found=found: found)
        assert len(ggtok.vocabulary("ollama:some")) == ggtok.load(path).n_tokens


def test_a_file_of_a_split_model(tmp_path: Path) -> None:
    first = tmp_path / "m-00001-of-00002.gguf"
    first.write_bytes(Path(fixture("bpe-gpt2")).read_bytes())
    second = tmp_path / "m-00002-of-00002.gguf"
    second.write_bytes(b"")
    assert len(ggtok.vocabulary(second)) == ggtok.load(first).n_tokens


# ---- decoding ----


def test_decoded_texts() -> None:
    assert decode_text("Ġthe".encode(), NORMAL, "characters") == b" the"
    assert (
        decode_text("日".encode(), NORMAL, "characters") == "日".encode()
    )  # isn't in the byte map
    assert decode_text(b"\xff", NORMAL, "characters") == b"\xff"
    assert decode_text("▁the".encode(), NORMAL, "marks") == b" the"
    assert decode_text("▁the".encode(), 3, "marks") == "▁the".encode()
    assert decode_text(b"<0x0A>", BYTE, "marks") == b"\n"
    assert decode_text(b"<0xZZ>", BYTE, "marks") == b"<0xZZ>"


def test_a_tokenizer_with_patterns() -> None:
    v = ggtok.train("aa ab aa ab", 260, pre_patterns=[r"\S+|\s+"])
    assert v.pre is None and v.pre_patterns == (r"\S+|\s+",)
    tok = v.tokenizer()
    assert tok.decode(tok.encode("ab aa")) == "ab aa"
    with pytest.raises(ggtok.VocabError, match="can't contain pre_patterns"):
        v.gguf()


# ---- saving ----


def test_all_keys_are_written() -> None:
    v = vocabulary(
        special_ids={"bos": 3, "eos": 3, "unk": 0, "sep": 1, "pad": 2, "eot": 3, "mask": 3},
        flags={"add_bos": True, "add_eos": False, "add_sep": True, "add_space_prefix": False},
        chat_template="{{ x }}",
        chat_templates={"tools": "{{ y }}"},
        scores=[0.0, 1.0, 2.0, 3.0],
        keys={
            "general.name": "own",
            "tokenizer.ggml.token_type_count": 2,
            "tokenizer.ggml.some_flag": True,
            "tokenizer.ggml.some_share": 0.5,
            "tokenizer.ggml.suppress_tokens": [1, 2],
            "tokenizer.ggml.precompiled_charsmap": b"\x00\x01",
        },
    )
    tok = ggtok.load(v.gguf())
    assert (tok.bos_id, tok.eos_id, tok.unk_id, tok.sep_id, tok.pad_id) == (3, 3, 0, 1, 2)
    assert tok.add_bos and not tok.add_eos and tok.add_sep
    assert tok.chat_templates["tools"] == "{{ y }}" and tok.chat_template == "{{ x }}"
    assert tok.metadata["general.name"] == "own"
    assert tok.suppress_tokens == (1, 2)
    u = ggtok.vocabulary(v.gguf())
    assert u.keys == v.keys
    assert u.chat_templates == {"tools": "{{ y }}"} and u.chat_template == "{{ x }}"
    assert list(u.scores or ()) == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"texts": [b"a", b"b", b"a", b"<s>"]}, "tokens 0 and 2 have the same text"),
        ({"texts": [b"a", b"b", b"", b"<s>"]}, "token 2 is empty"),
        ({"texts": [b"a", b"b", b"a\0", b"<s>"]}, "contains a NUL"),
        ({"merge_texts": [(b"a", b"b\0")]}, "merge 0 .* can't be written"),
        ({"merge_texts": [(b"a a", b"b")]}, "merge 0 .* can't be written"),
        ({"merge_texts": [(b"", b"b")]}, "merge 0 .* can't be written"),
        ({"special_ids": {"bos": 4}}, "bos is token 4, but there are only 4 tokens"),
        ({"keys": {"x": None}}, "the value of x is a NoneType"),
    ],
)
def test_contents_that_no_file_can_store(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ggtok.VocabError, match=message):
        vocabulary(**fields).gguf()


def test_lists_of_different_lengths() -> None:
    with pytest.raises(ggtok.InvalidValueError, match="equal numbers of texts"):
        vocabulary(types=[1])
    with pytest.raises(ggtok.InvalidValueError, match="equal numbers of texts"):
        vocabulary(scores=[1.0])


def test_saving_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.gguf"
    path.write_bytes(b"GGUF before")
    with monkeypatch.context() as m:
        m.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(ggtok.FileError, match="No space left"):
            vocabulary().save(path)
    assert path.read_bytes() == b"GGUF before" and os.listdir(tmp_path) == ["v.gguf"]
    vocabulary().save(path)
    assert ggtok.load(path).n_tokens == 4 and os.listdir(tmp_path) == ["v.gguf"]
    if os.name == "posix":
        mask = os.umask(0o077)
        os.umask(mask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_saving_fails(tmp_path: Path) -> None:
    with pytest.raises(ggtok.FileError):
        vocabulary().save(tmp_path / "none" / "v.gguf")
    with pytest.raises(ggtok.InvalidValueError, match=r"must be one of .*\.gguf"):
        vocabulary().save(tmp_path / "v.txt")
    with pytest.raises(ggtok.InvalidTypeError, match="path must be str"):
        vocabulary().save(3)  # type: ignore[arg-type]
    assert next(iter(writers.WRITERS)) == ".gguf"


def test_repr_and_report() -> None:
    v = vocabulary()
    assert repr(v) == "<ggtok.Vocabulary gpt2 gpt-2: 4 tokens>" and len(v) == 4
    assert str(replace(v, report=ggtok.Report(("one", "two"))).report) == "one\ntwo"


# ---- smaller ----


@pytest.mark.parametrize("model", ["bpe", "spm"])
def test_smaller_equals_less_training(model: str) -> None:
    options = {"model": model, "min_frequency": 1, "special_tokens": ["the", "<|x|>"]}
    large = ggtok.train(TEXT, 1500, **options)  # type: ignore[arg-type]
    for n in (1499, 1300, 1200):
        small, same = large.smaller(n), ggtok.train(TEXT, n, **options)  # type: ignore[arg-type]
        assert len(small) == n
        assert (small.texts, small.types, small.scores) == (same.texts, same.types, same.scores)
        assert (small.merge_texts, small.special_ids) == (same.merge_texts, same.special_ids)
        assert f"reduced to {n} tokens" in str(small.report)
    assert large.smaller(len(large)).texts == large.texts


def test_smaller_in_any_order_of_ids() -> None:
    """Special tokens may be at the end, and scores needn't be ranks."""
    v = vocabulary(
        texts=[b"a", b"b", b"c", b"ab", b"abc", b"<s>"],
        types=[1, 1, 1, 1, 1, 3],
        merge_texts=[(b"a", b"b"), (b"ab", b"c")],
        special_ids={"bos": 5, "eos": 4},
    )
    small = v.smaller(5)
    assert small.texts == [b"a", b"b", b"c", b"ab", b"<s>"]
    assert small.special_ids == {"bos": 4} and small.merge_texts == [(b"a", b"b")]
    assert v.smaller(4).merge_texts == []
    pieces = vocabulary(model="llama", merge_texts=None, scores=[-5.0, -6.0, -2.5, 0.0])
    assert pieces.smaller(3).scores == [-5.0, -6.0, 0.0]


def test_sizes_that_are_impossible() -> None:
    with pytest.raises(ggtok.InvalidValueError, match="has only 4 tokens"):
        vocabulary().smaller(5)
    with pytest.raises(ggtok.InvalidValueError, match="alone are 3 tokens"):
        vocabulary().smaller(2)
    with pytest.raises(ggtok.InvalidTypeError, match="n must be int"):
        vocabulary().smaller(True)
    with pytest.raises(ggtok.VocabError, match="merge 0 makes b'ba', which is not a token"):
        vocabulary(merge_texts=[(b"b", b"a")]).smaller(3)
    with pytest.raises(ggtok.VocabError, match="'t5' can't be made smaller"):
        vocabulary(model="t5", merge_texts=None).smaller(3)


def test_reports() -> None:
    v = ggtok.train("abab abab ab " * 5, 262, held_out=["abab", b"xyz"])
    r = v.report
    assert isinstance(r, ggtok.TrainingReport)
    assert (r.asked, r.made) == (262, len(v)) and r.distinct_words == 4
    tok = v.tokenizer()
    text = "abab abab ab " * 5
    assert r.text_tokens == len(tok.encode(text, add_special=False))
    assert r.text_bytes == len(text) and r.bytes_per_token == len(text) / r.text_tokens
    n = sum(len(tok.encode(text, add_special=False)) for text in ("abab", "xyz"))
    assert (r.held_out_bytes, r.held_out_tokens) == (7, n)
    assert r.held_out_bytes_per_token == 7 / n
    assert v.tokens[r.longest[0]] == b" abab" and len(r.longest) == 10
    used = {id for word in text.split(" ") for id in tok.encode(" " + word)}
    assert all(id not in used for id in r.unused)
    parts = ggtok.train("xyz xyz", 262)
    assert [parts.tokens[id] for id in parts.report.unused] == [b"xy"]  # type: ignore[attr-defined]
    assert {"count", "merge"} <= r.seconds.keys() and r.memory["count"] > 0
    assert "bytes a token in held-out text" in str(r) and "262 asked for" in str(r)
    assert ggtok.TrainingReport().bytes_per_token == 0
    assert ggtok.TrainingReport().held_out_bytes_per_token == 0
    json.dumps(r.__dict__)


def test_unused_pieces_by_their_ids() -> None:
    text = "abab cdcd abab\n" * 4
    v = ggtok.train(text, 280, model="spm")
    r = v.report
    assert isinstance(r, ggtok.TrainingReport)
    used = {*v.tokenizer().encode("abab cdcd abab")}
    made = {id for id, t in enumerate(v.texts) if v.types[id] == NORMAL and len(t.decode()) > 1}
    assert {*r.unused} == made - used
    tokens = v.tokenizer().encode("abab cdcd abab", add_special=False)
    assert r.text_tokens == 4 * len(tokens)
