"""Errors and repairs of folders and files that people pass by mistake."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import ggtok
from ggtok import cli
from ggtok.vocabularies.convert import tokenizer_json
from ggtok.vocabularies.convert.source_formats import convert_source
from tests.making.folders.shapes import N, bpe, token
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

# ---- fix_mistral_regex ----


def mistral(folder: Path, **config: object) -> Path:
    """Returns a folder of a Mistral model that another model's expression was saved for."""
    config = {"model_type": "mistral", "transformers_version": "4.57.1", **config}
    document = bpe("llama-bpe", token(N, "<s>"))
    (folder / "tokenizer.json").write_text(json.dumps(document))
    names = {"bos_token": "<s>", "eos_token": "<s>", "fix_mistral_regex": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_fix_mistral_regex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_json, "_LEAST", N)
    v = convert_source(str(mistral(tmp_path)), pre=None, arch=None, lines=0)
    assert v.pre == "tekken" and "as by Mistral's tekken.json" in str(v.report)


@pytest.mark.parametrize(
    "config", [{"transformers_version": "5.1.0"}, {"model_type": "llama"}, {"vocab_size": 1000}]
)
def test_fix_mistral_regex_without_effect(config: dict[str, object], tmp_path: Path) -> None:
    v = convert_source(str(mistral(tmp_path, **config)), pre=None, arch=None, lines=0)
    assert v.pre == "llama-bpe" and "fix_mistral_regex has no effect" in str(v.report)


# ---- GGUF files without a vocabulary ----


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("general.architecture", "clip", "a multimodal projector"),
        ("general.type", "mmproj", "a multimodal projector"),
        ("general.type", "adapter", "an adapter"),
        ("general.type", "imatrix", "an importance matrix"),
        ("general.architecture", "controlvector", "a control vector"),
    ],
)
def test_companions_of_models(key: str, value: str, what: str, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("none"))
    gguf.remove("tokenizer.ggml.model")
    gguf.set(key, value, "str")
    path = gguf.write(tmp_path / "x.gguf")
    with pytest.raises(ggtok.VocabError, match=f"it is {what}.*name its model's file"):
        ggtok.load(path)
    [found] = ggtok.doctor(path)
    assert found.code == "GGT004" and what in found.detail
    assert ggtok.doctor(Path(path).read_bytes())[0].code == "GGT004"


def test_a_model_without_a_vocabulary(tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("none"))
    gguf.remove("tokenizer.ggml.model")
    gguf.set("general.type", 7, "u32")
    path = gguf.write(tmp_path / "x.gguf")
    with pytest.raises(ggtok.VocabError, match="it holds no vocabulary"):
        ggtok.load(path)


# ---- what people pass to load ----


def test_load_names_folders_and_tokenizers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "hf"
    folder.mkdir()
    with pytest.raises(ggtok.FileError, match="a folder, not a GGUF file"):
        ggtok.load(folder)
    (folder / "tokenizer.json").write_text(json.dumps(bpe("gpt-2")))
    with pytest.raises(IsADirectoryError, match="'ggtok convert' makes a GGUF file of its tok"):
        ggtok.load(str(folder) + "/")
    with pytest.raises(ggtok.GGUFError, match=r"tokenizer\.json of Hugging Face: 'ggtok convert'"):
        ggtok.load(folder / "tokenizer.json")
    assert cli.main(["tokenize", str(folder), "text"]) == 2
    assert "'ggtok convert' makes a GGUF file of its tokenizer" in capfd.readouterr().err
    assert cli.main(["tokenize", str(folder / "tokenizer.json"), "text"]) == 2
    assert "'ggtok convert' makes a GGUF file of it" in capfd.readouterr().err
    (folder / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ggtok.FileError, match=r"name one of its files, such as model\.gguf"):
        ggtok.load(folder)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "gpt-4o"])
def test_load_names_encodings_of_tiktoken(name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"'ggtok convert .*tiktoken' makes a GGUF"):
        ggtok.load(name)


# ---- published expressions ----


def test_published(tmp_path: Path) -> None:
    """The expressions are exactly the publisher's, and the warning names the texts that differ."""
    v, path = ggtok.vocabulary(fixture("bpe-llama3")), tmp_path / "tokenizer.json"
    with pytest.warns(ggtok.VocabWarning, match="newer than Unicode 15.1, and .* before U\\+017F"):
        v.save(path, published=True)
    split, level = json.loads(path.read_text("utf-8"))["pre_tokenizer"]["pretokenizers"]
    assert split["pattern"]["Regex"] == (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    assert level["type"] == "ByteLevel"
    with pytest.warns(ggtok.VocabWarning):
        v.save_pretrained(tmp_path / "hf", published=True)
    assert (tmp_path / "hf" / "tokenizer.json").read_bytes() == path.read_bytes()


def test_published_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(ggtok.VocabError, match="one category in"):
        ggtok.vocabulary(fixture("bpe-kimi")).save(path, published=True)
    with pytest.raises(ggtok.VocabError, match="no expressions are published"):
        ggtok.vocabulary(fixture("bpe-k2-horizon")).save(path, published=True)
    with pytest.raises(ggtok.InvalidValueError, match=r"published.* needs a tokenizer\.json"):
        ggtok.vocabulary(fixture("bpe-llama3")).save(tmp_path / "x.tiktoken", published=True)
    assert not path.exists()


def test_published_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = tmp_path / "tokenizer.json"
        command = ["export", str(fixture("bpe-qwen2")), "--to", str(out), "--published"]
        assert cli.main(command) == 0
    assert "(?i:'s|'t" in out.read_text("utf-8")
    assert "expressions are written as published" in capfd.readouterr().err
