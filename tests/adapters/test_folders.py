"""Folders for AutoTokenizer: Vocabulary.save_pretrained, and `ggtok export MODEL --to DIR/`."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ggtok
from fixtures.build import CHAT
from ggtok.vocabularies.convert.lines import lines_for
from ggtok.vocabularies.of_tokenizer import vocabulary_of
from tests.support.full import Lazy
from tests.support.vocabularies import BPE, OTHERS, REAL, fixture, fixture_names, real

transformers = Lazy("transformers")
FILES = ["generation_config.json", "special_tokens_map.json", "tokenizer.json"]
FILES += ["tokenizer_config.json"]


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def test_save_pretrained_writes_the_files_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    v = ggtok.vocabulary(CHAT)
    paths = v.save_pretrained(folder)
    assert sorted(Path(path).name for path in paths) == ["chat_template.jinja", *FILES]
    assert (folder / "chat_template.jinja").read_text("utf-8") == v.chat_template
    tok = v.tokenizer()
    names = {"bos_token": tok.bos_id, "eos_token": tok.eos_id}
    texts = {name: tok.token_text(id).decode() for name, id in names.items() if id is not None}
    assert read(folder, "special_tokens_map") == texts
    assert read(folder, "tokenizer_config") == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        **texts,
    }
    generation = read(folder, "generation_config")
    assert generation["eos_token_id"][0] == tok.eos_id
    assert set(generation["eos_token_id"]) == tok.eog_ids
    assert generation["bos_token_id"] == tok.bos_id
    v.save_pretrained(folder)  # replaces the files that it wrote before


def test_the_configuration_has_inputs_and_length(tmp_path: Path) -> None:
    v = ggtok.vocabulary(fixture("wpm"))
    v = replace(v, keys={**v.keys, f"{v.architecture}.context_length": 512})
    v.save_pretrained(tmp_path)
    config = read(tmp_path, "tokenizer_config")
    assert config["model_max_length"] == 512
    assert config["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"]
    assert config["cls_token"] == "[CLS]"
    assert "bos_token" not in config
    assert ggtok.vocabulary(v.gguf()).keys[f"{v.architecture}.context_length"] == 512


def test_stripping_tokens_are_added_tokens(tmp_path: Path) -> None:
    v = ggtok.vocabulary(fixture("bpe-jina"))
    v.save_pretrained(tmp_path, inexact=True)
    written = read(tmp_path, "tokenizer_config")["mask_token"]
    assert written["lstrip"] and not written["rstrip"]
    assert {"__type": "AddedToken", **read(tmp_path, "special_tokens_map")["mask_token"]} == written


def test_default_bos_of_type_normal_is_not_exported(tmp_path: Path) -> None:
    """If a file names no BOS, llama.cpp's default is a normal token, which must not be exported as
    bos_token."""
    v = ggtok.vocabulary(fixture("bpe-llama3"))
    types = [1 if type == 3 else type for type in v.types]
    v = replace(v, special_ids={}, types=types)
    v.save_pretrained(tmp_path)
    tok = v.tokenizer()
    named = read(tmp_path, "special_tokens_map")
    assert all(v.types[tok.text_to_token(text) or 0] != 1 for text in named.values())


def test_named_templates_become_files(tmp_path: Path) -> None:
    v = ggtok.vocabulary(CHAT)
    v = replace(v, chat_templates={"tool_use": "{{ tools }}"})
    v.save_pretrained(tmp_path)
    assert (tmp_path / "additional_chat_templates/tool_use.jinja").read_text() == "{{ tools }}"
    for name in "../x", "", ".x", "a/b":
        with pytest.raises(ggtok.VocabError, match="has a name that no file can have"):
            replace(v, chat_templates={name: "x"}).save_pretrained(tmp_path)
    with pytest.raises(ggtok.InvalidValueError, match="has additional_chat_templates/tool_use"):
        replace(v, chat_templates={}).save_pretrained(tmp_path)
    with pytest.raises(ggtok.InvalidValueError, match=r"has chat_template\.jinja of another"):
        replace(v, chat_template=None).save_pretrained(tmp_path)


def test_inexact_exports_and_foreign_files_are_refused(tmp_path: Path) -> None:
    ugm = ggtok.vocabulary(fixture("ugm"))
    with pytest.raises(ggtok.VocabError, match=r"repeated or rare spaces.*--inexact. writes"):
        ugm.save_pretrained(tmp_path)
    assert not any(tmp_path.iterdir())
    with pytest.warns(ggtok.VocabWarning, match="repeated or rare spaces"):
        ugm.save_pretrained(tmp_path, inexact=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "tokenizer.json").write_bytes(b"GGUF")
    v = ggtok.vocabulary(CHAT)
    with pytest.raises(ggtok.InvalidValueError, match=r"exists and is not a JSON object"):
        v.save_pretrained(other)
    v.save_pretrained(other, force=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ggtok.FileError):
        v.save_pretrained(tmp_path / "file" / "folder")


def test_a_tokenizers_options_are_exported() -> None:
    """A tokenizer's vocabulary includes the options with which it was loaded."""
    path = fixture("bpe-llama3")
    overrides: dict[str, int | bool | str] = {
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.eos_token_id": 3,
        "general.name": "other",
    }
    tok = ggtok.load(path, pre="qwen2", overrides=overrides)
    exported = vocabulary_of(tok).tokenizer()
    for text in "Hello 12345", "it's":
        assert exported.encode(text) == tok.encode(text)
    assert (exported.eos_id, exported.add_bos, exported.pre) == (3, False, "qwen2")
    tok = ggtok.load(path, overrides={"tokenizer.ggml.scores": 1})
    with pytest.raises(ggtok.VocabError, match=r"the override of tokenizer\.ggml\.scores"):
        vocabulary_of(tok)


@pytest.mark.full
@pytest.mark.parametrize("name", [*fixture_names(), *REAL, *OTHERS])
def test_auto_tokenizer_returns_the_same_ids(name: str, tmp_path: Path) -> None:
    """AutoTokenizer returns the same ids as ggtok, or exporting the vocabulary raises an error."""
    pytest.importorskip("transformers")
    path = fixture(name) if name in fixture_names() else real(name)
    try:
        v = ggtok.vocabulary(path)
        v.save_pretrained(tmp_path)
    except ggtok.VocabError:
        assert name in {"falcon", "baichuan", "phi-3", *OTHERS} or name not in BPE
        return
    tok = v.tokenizer()
    lines = lines_for(v, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        auto = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert auto(lines)["input_ids"] == tok.encode_batch(lines, parse_special=True)
    assert auto.eos_token_id in (tok.eos_id, None)
    named = {**v.chat_templates, "default": v.chat_template}
    assert auto.chat_template == (named if v.chat_templates else v.chat_template)


def test_a_file_in_place_of_the_folder_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ggtok.FileError, match="Not a directory"):
        ggtok.vocabulary(fixture("bpe-llama3")).save_pretrained(tmp_path / "file")
