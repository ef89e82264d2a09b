"""The package's Python objects: type hints at run time, pickles, names and messages."""

from __future__ import annotations

import copy
import ctypes
import inspect
import os
import pickle
import subprocess
import sys
import typing
from array import array
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import ggtok
from ggtok import _types, errors, tokenizer
from tests.support.patch import FORMATS, GGUF
from tests.support.public import functions_of, public_functions
from tests.support.vocabularies import fixture


def test_type_hints_resolve() -> None:
    for function in public_functions():
        hints = typing.get_type_hints(function)
        assert not any(isinstance(hint, str) for hint in hints.values())
    for name in ggtok.__all__:
        if inspect.isclass(getattr(ggtok, name)):
            typing.get_type_hints(getattr(ggtok, name))
    hints = typing.get_type_hints(ggtok.load)
    assert hints["return"] is ggtok.Tokenizer
    assert typing.BinaryIO in typing.get_args(hints["source"])
    assert typing.get_type_hints(ggtok.Tokenizer.encode)["return"] == list[int]
    assert typing.get_type_hints(ggtok.CacheInfo) == dict.fromkeys(ggtok.CacheInfo._fields, int)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _types.nothing  # type: ignore[attr-defined]  # noqa: B018


def _keywords(method: str) -> dict[str, tuple[object, object]]:
    """Returns the defaults and annotations of a method's keyword arguments, by name."""
    parameters = inspect.signature(getattr(ggtok.Tokenizer, method)).parameters.values()
    return {p.name: (p.default, p.annotation) for p in parameters if p.kind == p.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("method", "like", "more", "less"),
    [
        ("encode_array", "encode", "threads", ""),
        ("count", "encode_array", "", ""),
        ("encode_batch", "encode", "threads", ""),
        ("encode_batch_arrays", "encode_batch", "", ""),
        ("encode_batch_arrow", "encode_batch", "", ""),
        ("count_batch", "encode_batch", "", ""),
        ("encode_with_offsets", "encode", "unit", ""),
        ("encode_batch_with_offsets", "encode_with_offsets", "threads", ""),
        ("encode_batch_arrays_with_offsets", "encode_batch_with_offsets", "", ""),
        ("encode_batches", "encode", "batch_bytes threads progress", "continuation"),
        ("stream_encoder", "encode", "", ""),
        ("explain", "encode", "", "continuation"),
        ("decode_bytes", "decode", "", "errors"),
        ("decode_batch", "decode", "", ""),
        ("stream_decoder", "decode", "stop stop_ids stop_at_eog", "clean_spaces"),
        (
            *("encode_chat", "apply_chat_template"),
            *("trusted user_defined return_assistant_mask known", ""),
        ),
        ("count_chat", "encode_chat", "image_tokens", "return_assistant_mask"),
        ("encode_chat_batch", "encode_chat", "threads", "return_assistant_mask known"),
    ],
)
def test_signatures_agree(method: str, like: str, more: str, less: str) -> None:
    """`method` has the keywords of `like`, with the same defaults and annotations, and the keywords
    in `more`. Keywords in `less` may be missing or differ."""
    ours, theirs = _keywords(method), _keywords(like)
    shared = theirs.keys() - set(less.split())
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
    left = ours.keys() - shared - set(less.split())
    assert left == set(more.split())


def test_pydantic_checks_calls() -> None:
    pydantic = pytest.importorskip("pydantic")
    for function in [ggtok.load, *functions_of(*ggtok.Tokenizer.__mro__[:-1])]:
        if function.__name__ != "get":  # "get" is the getter of a special id or a flag
            pydantic.validate_call(function)
    load, data = pydantic.validate_call(ggtok.load), fixture("bpe-gpt2").read_bytes()
    for source in (fixture("bpe-gpt2"), data, bytearray(data), memoryview(data), BytesIO(data)):
        tok = load(source)
        assert tok.n_tokens == 757
    encode, decode = pydantic.validate_call(tok.encode), pydantic.validate_call(tok.decode)
    for text in ("kettle", b"kettle\xff", bytearray(b"kettle")):
        ids = encode(text)
        assert ids == tok.encode(text)
    for same in (ids, tuple(ids), iter(ids), np.array(ids)):
        assert decode(same) == "kettle"
    assert pydantic.validate_call(tok.token_text)(np.int64(3)) == tok.token_text(3)
    for call, wrong in ((load, 3), (encode, 3), (decode, 3), (encode, None)):
        with pytest.raises(pydantic.ValidationError):
            call(wrong)


def test_import_loads_no_large_modules() -> None:
    """Dependencies and slow modules are imported only on first use."""
    program = "import sys, ggtok; print(*sys.modules)"
    run = subprocess.run(
        # -I and -S prevent site-packages from importing modules at start-up.
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = {name.split(".")[0] for name in run.stdout.split()}
    unwanted = "gguf jinja2 numpy pydantic regex requests tqdm typing typing_extensions yaml"
    assert not modules & set(unwanted.split())
    assert "ggtok.sources" not in run.stdout.split()


def test_lists_and_counts_do_not_import_numpy() -> None:
    program = """
import sys, ggtok
tok = ggtok.load(sys.argv[1])
tok.encode("kettle"), tok.encode_batch(["kettle"] * 9), tok.decode([1])
tok.stream_encoder().feed("kettle")
tok.count("kettle"), tok.count("kettle " * 9999, threads=2), tok.count_batch(["kettle"] * 9)
print("numpy" in sys.modules)
"""
    command = [sys.executable, "-c", program, fixture("bpe-gpt2")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


class Sub(ggtok.Tokenizer):
    """A subclass whose constructor differs from the base class's."""

    def __init__(self, path: Path, note: str) -> None:
        super().__init__(path, None, None)
        self.note = note


def test_a_pickled_subclass_stays_one() -> None:
    sub = Sub(fixture("bpe-gpt2"), "a note")
    copy = pickle.loads(pickle.dumps(sub))
    assert type(copy) is Sub
    assert (copy.note, copy.encode("kettle")) == ("a note", sub.encode("kettle"))
    assert vars(sub).keys() - {"note"} == tokenizer._OWN
    plain = ggtok.load(fixture("bpe-gpt2"), overrides={"tokenizer.ggml.add_bos_token": False})
    assert type(pickle.loads(pickle.dumps(plain))) is ggtok.Tokenizer


def test_attributes_equal_those_of_llamacpp() -> None:
    assert [attr.name for attr in ggtok.TokenAttr] == (
        "UNKNOWN UNUSED NORMAL CONTROL USER_DEFINED BYTE NORMALIZED LSTRIP RSTRIP SINGLE_WORD"
    ).split()
    assert [attr.value for attr in ggtok.TokenAttr] == [1 << n for n in range(10)]


def test_pickles_of_version_0_1() -> None:
    path = os.fspath(fixture("bpe-gpt2"))
    old = b"cggtok.tokenizer\nTokenizer\n(V" + path.encode("raw_unicode_escape") + b"\nNNNtR."
    assert pickle.loads(old).encode("kettle") == ggtok.load(path).encode("kettle")
    assert pickle.loads(b"cggtok.tokenizer\nCacheInfo\n(I1\nI2\nI3\nI4\ntR.") == (1, 2, 3, 4)
    assert pickle.loads(b"cggtok.tokenizer\nTokenAttr\n(I8\ntR.") is ggtok.TokenAttr.CONTROL
    assert pickle.loads(b"cggtok.tokenizer\nload\n.") is ggtok.load
    missing = pickle.loads(b"cggtok.errors\n_FileNotFoundError\n(I2\nVgone\nVx.gguf\ntR.")
    assert isinstance(missing, FileNotFoundError)


@pytest.mark.parametrize("model", ["bpe", "spm"])
def test_word_counts_can_be_copied(model: typing.Any) -> None:
    counts = ggtok.count_words(["a b a", "c"], model=model)
    before = dict(counts.items())
    for how in (copy.copy, copy.deepcopy, lambda old: pickle.loads(pickle.dumps(old))):
        new = how(counts)
        assert dict(new.items()) == before
        assert (new.model, new.pre) == (counts.model, counts.pre)
        new.merge(counts)
        assert dict(counts.items()) == before and new.total == 2 * counts.total


def test_errors_show_by_their_public_names(tmp_path: Path) -> None:
    for builtin, source in ((FileNotFoundError, tmp_path / "no"), (IsADirectoryError, tmp_path)):
        with pytest.raises(builtin) as caught:
            ggtok.load(source)
        error = caught.value
        assert isinstance(error, ggtok.FileError)
        assert type(error).__qualname__ == "FileError"
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (copy.args, copy.errno, copy.filename) == (error.args, error.errno, error.filename)
    sentence = errors.not_permitted("the server refuses")
    copy = pickle.loads(pickle.dumps(sentence))
    assert (type(copy), str(copy)) == (type(sentence), "the server refuses")


def test_errors_of_a_batch_say_which_text() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    for wrong, what in (
        (3, r"^texts\[2\] must be str or bytes-like \(UTF-8\), not int$"),
        ("\ud800", r"^texts\[2\] has a lone surrogate"),
        (memoryview(b"abc")[::2], r"^texts\[2\] must be .* and C-contiguous"),
    ):
        with pytest.raises(ggtok.ArgumentError, match=what) as caught:
            tok.encode_batch(["a", b"b", wrong])  # type: ignore[list-item]
        copy = pickle.loads(pickle.dumps(caught.value))
        assert str(copy) == str(caught.value)
    with pytest.raises(ggtok.TextEncodeError, match=r"^text has a lone surrogate"):
        tok.encode("\ud800")


def test_texts_and_patterns_that_fail_to_iterate() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    with pytest.raises(
        ggtok.InvalidTypeError, match=r"texts must be an iterable of texts, not nda"
    ):
        tok.encode_batch(np.array("abc"))
    with pytest.raises(
        ggtok.InvalidTypeError, match=r"pre_patterns must be a list .*, not ndarray"
    ):
        ggtok.load(fixture("bpe-gpt2"), pre_patterns=np.array("abc"))  # type: ignore[arg-type]

    def broken() -> Iterator[str]:
        raise TypeError("the caller's own")
        yield ""

    with pytest.raises(TypeError, match="the caller's own"):
        tok.encode_batch(broken())


def test_overrides_with_lone_surrogates() -> None:
    for overrides in ({"a\ud800": 1}, {"a": "b\ud800"}):
        with pytest.raises(ggtok.InvalidValueError, match=r"overrides: .* lone surrogate"):
            ggtok.load(fixture("bpe-gpt2"), overrides=overrides)


def test_repr_names_the_source() -> None:
    path = fixture("bpe-gpt2")
    want = f"<ggtok.Tokenizer {os.fspath(path)!r} BPE pre='gpt-2' n_tokens=757>"
    assert repr(ggtok.load(path)) == want
    from_memory = ggtok.load(path.read_bytes())
    assert repr(from_memory) == "<ggtok.Tokenizer BPE pre='gpt-2' n_tokens=757>"


def test_attributes_of_the_vocabulary_have_documentation() -> None:
    public = dir(ggtok.load(fixture("bpe-llama3")))
    rows = [name for name in public if name.endswith("_id") or name[:4] == "add_"]
    assert len(rows) == 19
    for name in rows:
        row = inspect.getattr_static(ggtok.Tokenizer, name)
        assert isinstance(row, property)
        assert row.__doc__
        assert row.__doc__.endswith(".")
    assert ggtok.Tokenizer.fim_pre_id.__doc__ == (
        "Fill-in-the-middle prefix, or None: ``llama_vocab_fim_pre``."
    )
    assert ggtok.Tokenizer.add_bos.__doc__ == (
        "Whether ``add_special`` puts BOS first: ``llama_vocab_get_add_bos``."
    )


def test_special_methods() -> None:
    tok, spm = ggtok.load(fixture("bpe-gpt2")), ggtok.load(fixture("spm"))
    assert len(tok) == tok.n_tokens == 757
    none = ggtok.load(fixture("none"))
    assert none  # a tokenizer is true even if it has no tokens
    assert none == ggtok.load(fixture("none"))
    assert (
        repr(tok) == f"<ggtok.Tokenizer {str(fixture('bpe-gpt2'))!r} BPE pre='gpt-2' n_tokens=757>"
    )
    assert repr(spm) == f"<ggtok.Tokenizer {str(fixture('spm'))!r} SPM n_tokens={len(spm)}>"
    assert copy.copy(tok) is tok  # a tokenizer is immutable
    assert copy.deepcopy([tok])[0] is tok
    assert spm.add_space_prefix
    assert not tok.add_space_prefix


def test_scores_are_float32() -> None:
    tok = ggtok.load(fixture("spm"))
    scores = [tok.token_score(id) for id in range(tok.n_tokens)]
    assert scores == [float(np.float32(score)) for score in scores]
    assert len(set(scores)) > 100


def test_ids_of_any_integer_array() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    ids = tok.encode("any array")
    assert tok.decode((ctypes.c_int * len(ids))(*ids)) == "any array"
    assert tok.decode(array("q", ids)) == "any array"
    view = memoryview(array("i", ids))
    view.release()
    with pytest.raises(ggtok.InvalidValueError):
        tok.decode(view)


NUMBERS = {"u8": 255, "i8": -128, "u16": 65535, "i16": -32768, "u32": 2**32 - 1, "i32": -(2**31)}
NUMBERS |= {"u64": 2**64 - 1, "i64": -(2**63)}
VALUES: dict[str, int | float | bool] = {**NUMBERS, "f32": 0.5, "f64": 1e-300, "bool": True}


def test_metadata_of_every_type() -> None:
    assert set(VALUES) == set(FORMATS)
    for name in ("version-2", "big-endian"):
        gguf = GGUF.read(fixture(name))
        for kind, value in VALUES.items():
            gguf.set(f"a.{kind}", value, kind)
        metadata = ggtok.load(gguf.dump()).metadata
        for kind, value in VALUES.items():
            assert metadata[f"a.{kind}"] == value
            assert type(metadata[f"a.{kind}"]) is type(value)
