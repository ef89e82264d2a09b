"""Overrides, compared with llama.cpp's kv_overrides in the reference build."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import ggtok
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.loading import loaded
from tests.support.llamacpp import LlamaCpp, LlamaCppLoadError, Override
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

TEXTS = [b"Hello, world", b"  two  spaces ", "naïve 12345\n\n".encode(), b"<s>a</s> <mask>b", b""]
GGML = "tokenizer.ggml."

# Fixtures and overrides. The overrides must have the same effect as in llama.cpp.
CASES: list[tuple[str, dict[str, Override]]] = [
    ("spm", {GGML + "add_bos_token": False}),
    ("spm", {GGML + "add_bos_token": True, GGML + "add_eos_token": True}),
    ("spm", {GGML + "add_space_prefix": False}),
    ("spm", {GGML + "bos_token_id": 7, GGML + "eos_token_id": 9, GGML + "unknown_token_id": 20}),
    ("spm", {GGML + "bos_token_id": -1}),  # wraps around, to an id that is out of range
    ("spm", {GGML + "bos_token_id": 2**32 + 5}),  # wraps around, to a valid id
    ("spm", {GGML + "bos_token_id": 100_000}),
    (
        "spm",
        {GGML + "eot_token_id": 30, GGML + "fim_pre_token_id": 31, GGML + "prefix_token_id": 4},
    ),
    ("spm-phi3", {"general.name": "something else"}),
    ("bpe-gpt2", {GGML + "pre": "llama-bpe"}),
    ("bpe-gpt2", {GGML + "pre": "jina-v2-de"}),
    ("bpe-gpt2", {GGML + "pre": ""}),
    ("bpe-gpt2", {GGML + "model": "gpt2", GGML + "add_bos_token": True}),
    ("bpe-llama3", {GGML + "pre": "gpt-2"}),
    ("bpe-llama3", {GGML + "add_bos_token": False, GGML + "add_sep_token": True}),
    ("bpe-gemma4", {GGML + "pre": "gpt-2", GGML + "add_bos_token": False}),
    ("bpe-jina", {"general.architecture": "jina-bert-v3"}),
    ("wpm", {GGML + "normalizer.lowercase": False}),
    ("wpm", {GGML + "normalizer.lowercase": True, GGML + "normalizer.strip_accents": False}),
    ("wpm-cased", {GGML + "normalizer.lowercase": True}),
    ("wpm", {GGML + "token_type_count": 3, GGML + "seperator_token_id": 3}),
    ("ugm", {GGML + "remove_extra_whitespaces": False, GGML + "add_space_prefix": False}),
    ("ugm", {GGML + "add_eos_token": False}),
    ("rwkv", {GGML + "unknown_token_id": 3}),
    ("plamo2", {GGML + "add_bos_token": True}),
    # Values of another type, which are ignored with a warning.
    ("spm", {GGML + "add_bos_token": 0}),
    ("spm", {GGML + "add_bos_token": "false"}),
    ("spm", {GGML + "bos_token_id": True}),
    ("spm", {GGML + "bos_token_id": 3.0}),
    ("bpe-gpt2", {GGML + "pre": 3}),
    ("bpe-gpt2", {GGML + "model": False}),
    # Keys of arrays, and keys that aren't read.
    ("spm", {GGML + "tokens": "x", GGML + "scores": 3, GGML + "merges": True}),
    ("spm", {GGML + "no_such_key": "x"}),
    ("spm", {"llama.context_length": 17, "general.file_type": 3}),
    ("bpe-qwen2", {"tokenizer.chat_template": "{{ x }}"}),
    ("none", {"llama.vocab_size": 7}),
]


@pytest.mark.parametrize(("name", "overrides"), CASES, ids=[f"{n}-{o}" for n, o in CASES])
def test_overrides_work_as_in_llamacpp(
    llama: LlamaCpp, name: str, overrides: dict[str, Override], tmp_path: Path
) -> None:
    path = Path(shutil.copy(fixture(name), tmp_path))
    reference = llama.load(path, overrides)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tok = ggtok.load(path, overrides=overrides)
    facts = reference.facts()
    assert {name: getattr(tok, f"{name}_id") for name in facts.special} == facts.special
    assert (tok.add_bos, tok.add_eos, tok.add_sep) == (facts.add_bos, facts.add_eos, facts.add_sep)
    assert (tok.n_tokens, tok.vocab_type) == (facts.n_tokens, facts.vocab_type)
    assert tok.chat_template == facts.chat_template
    said = {str(warning.message) for warning in caught}
    misfits = {key for key in overrides if any(f"the override of '{key}' must" in s for s in said)}
    assert misfits == {
        key
        for key in overrides
        if any("Bad metadata override type" in s and f"'{key}'" in s for s in reference.warnings())
    }
    if tok.vocab_type == "NONE":
        return
    assert [int(tok.token_attr(id)) for id in range(tok.n_tokens)] == facts.attrs
    assert tok.eog_ids == facts.eog_ids
    for add_special in (True, False):
        if add_special and tok.add_bos and tok.bos_id is None:
            continue  # llama.cpp aborts in this case
        for parse_special in (True, False):
            want = reference.tokenize_many(TEXTS, add_special, parse_special)
            got = [
                tok.encode(text, add_special=add_special, parse_special=parse_special)
                for text in TEXTS
            ]
            assert got == want
    ids = list(range(tok.n_tokens))
    assert tok.decode_bytes(ids) == reference.detokenize(ids, False, True)


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("bpe-gpt2", {GGML + "pre": "no-such-name"}),
        ("bpe-gpt2", {GGML + "model": "no-such-model"}),
        ("bpe-gpt2", {"general.name": "phi-3"}),
        ("spm", {"general.name": "My Phi3"}),
    ],
)
def test_overrides_are_rejected_as_in_llamacpp(
    llama: LlamaCpp, name: str, overrides: dict[str, Override], tmp_path: Path
) -> None:
    path = Path(shutil.copy(fixture(name), tmp_path))
    with pytest.raises(LlamaCppLoadError):
        llama.load(path, overrides)
    with pytest.raises(ggtok.VocabError):
        ggtok.load(path, overrides=overrides)


def test_a_value_of_another_type_in_the_file_is_replaced(llama: LlamaCpp, tmp_path: Path) -> None:
    """An override takes precedence over the file."""
    gguf = GGUF.read(fixture("spm"))
    gguf.set(GGML + "add_bos_token", 1, "u8")
    path = gguf.write(tmp_path / "bad.gguf")
    with pytest.raises(LlamaCppLoadError, match="wrong type"):
        llama.load(path)
    with pytest.raises(ggtok.VocabError, match="type u8"):
        ggtok.load(path)
    overrides: dict[str, Override] = {GGML + "add_bos_token": False}
    assert llama.load(path, overrides).facts().add_bos is False
    assert ggtok.load(path, overrides=overrides).add_bos is False


def test_metadata_ignores_overrides() -> None:
    plain = ggtok.load(fixture("spm"))
    tok = ggtok.load(fixture("spm"), overrides={"general.name": "x", GGML + "bos_token_id": 5})
    assert tok.bos_id == 5
    assert dict(tok.metadata) == dict(plain.metadata)


def test_pre_takes_precedence_over_an_override() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tok = ggtok.load(fixture("bpe-gpt2"), pre="qwen2", overrides={GGML + "pre": "llama-bpe"})
    assert tok.pre == "qwen2"


@pytest.mark.parametrize("key", ["tokenizer.ggml.add_bos", GGML + "tokens", "tokenizer.x"])
def test_an_override_without_effect_causes_a_warning(key: str) -> None:
    with pytest.warns(ggtok.VocabWarning, match=f"override of '{key}' has no effect"):
        ggtok.load(fixture("spm"), overrides={key: False})


def test_no_warning_for_the_models_keys() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ggtok.load(fixture("spm"), overrides={"llama.context_length": 17, "x": "y"})


def test_pickles_keep_overrides() -> None:
    tok = ggtok.load(fixture("spm"), overrides={GGML + "bos_token_id": 5})
    assert pickle.loads(pickle.dumps(tok)).bos_id == 5


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"": 1}, InvalidValueError, "has no key"),
        ({"x" * 128: 1}, InvalidValueError, "key is longer than 127 bytes"),
        ({"x": "é" * 64}, InvalidValueError, "longer than 127 bytes"),
        ({"x": "a\0b"}, InvalidValueError, "NUL"),
        ({"a\0b": 1}, InvalidValueError, "NUL"),
        ({"x": 2**63}, InvalidValueError, "64 bits"),
        ({"x": None}, InvalidTypeError, "int, float, bool or str"),
        ({"x": [1]}, InvalidTypeError, "int, float, bool or str"),
        ({1: 1}, InvalidTypeError, "must be str"),
        ([("x", 1)], InvalidTypeError, "must be a mapping"),
    ],
)
def test_invalid_overrides_are_rejected(
    overrides: dict[str, Override], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        ggtok.load(fixture("spm"), overrides=overrides)
    assert isinstance(caught.value, ggtok.GGTokError)


def test_the_longest_overrides() -> None:
    ggtok.load(fixture("spm"), overrides={"x" * 127: "y" * 127, "z": -(2**63)})


# ---- values as the command line writes them ----


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("a=int:5", {"a": 5}),
        ("a=int:-5,b=bool:true", {"a": -5, "b": True}),
        ("a=float:0.5,b=float:1e3,c=float:-inf", {"a": 0.5, "b": 1000.0, "c": float("-inf")}),
        ("a=str:x,b=str:", {"a": "x", "b": ""}),
        ('"a=str:x,y",b=bool:false', {"a": "x,y", "b": False}),
        ('"a=str:say ""x"""', {"a": 'say "x"'}),
        ('a=str:say "x"', {"a": 'say "x"'}),
        ("a=str:b=int:3", {"a": "b=int:3"}),
        ("a=int:1,a=int:2", {"a": 1}),
        ("a= str:x=str:y", None),
    ],
)
def test_command_line_overrides_are_parsed(
    argument: str, values: dict[str, Override] | None
) -> None:
    if values is None:
        with pytest.raises(InvalidValueError):
            loaded.parse_overrides([argument])
    else:
        assert loaded.parse_overrides([argument]) == values
        assert [type(v) for v in loaded.parse_overrides([argument]).values()] == [
            type(v) for v in values.values()
        ]


@pytest.mark.parametrize(
    "argument",
    [
        *("", "a", "a=", "=int:1", "a=int", "a=int:", "a=int:x", "a=int:1.5", "a=bool:1"),
        *("a=bool:True", "a=float:x", "a=float:1_0", "a=number:1", "a=int:1,", "a=int:1,b"),
        *("a:int=1", "a=int:1\nb", "a=str:\ud800", "\ud800=int:1", "a=int:" + "9" * 5000),
    ],
)
def test_malformed_command_line_overrides_are_errors(argument: str) -> None:
    with pytest.raises(InvalidValueError, match="override") as caught:
        loaded.parse_overrides([argument])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 800


def test_bytes_that_are_not_utf8_stay_bytes() -> None:
    assert loaded.parse_overrides(["a=str:\udcff"]) == {"a": "\udcff"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ggtok", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_takes_overrides() -> None:
    path = str(fixture("spm"))
    done = run("tokenize", path, "a", "--ids", "--override-kv", GGML + "bos_token_id=int:9")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[9,")
    done = run("inspect", path, "--json", "--override-kv", GGML + "add_bos_token=bool:maybe")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "a bool is true or false" in done.stderr
