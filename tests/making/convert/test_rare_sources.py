"""Rare sources: older spellings, odd configurations, and missing packages."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert import tiktoken_files as tiktoken_files
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.source_formats import convert_source
from ggtok.vocabularies.convert.tokenizer_json import TokenizerJson
from tests.making.convert import sources

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


def report_of(path: Path, lines: int = 200, pre: str | None = None) -> ConversionReport:
    report = convert_source(str(path), pre=pre, arch=None, lines=lines).report
    assert isinstance(report, ConversionReport)
    return report


def folder(path: Path, arch: str, kind: str, **config: Any) -> Path:
    path.mkdir()
    data = {"architectures": [arch], "model_type": kind, **config}
    sources.write(path / "config.json", data)
    return path


def exact(path: Path) -> ggtok.Vocabulary:
    v = convert_source(str(path), pre=None, arch=None, lines=200)
    assert isinstance(v.report, ConversionReport)
    assert (v.report.compared, v.report.unexplained) == (200, ())
    return v


# ---- tokenizer.json ----


def test_models_without_a_type(tmp_path: Path) -> None:
    for document, model in (
        (sources.bpe(), "gpt2"),
        (sources.wordpiece(), "bert"),
        (sources.unigram_with_mask(), "t5"),
    ):
        del document["model"]["type"]
        path = sources.write(tmp_path / "tokenizer.json", document)
        assert convert_source(str(path), pre=None, arch=None, lines=0).model == model


def test_an_unknown_token_of_byte_level_bpe(tmp_path: Path) -> None:
    document = sources.bpe(model={"unk_token": "<|im_start|>"})
    v = exact(sources.write(tmp_path / "tokenizer.json", document))
    assert v.special_ids["unk"] == v.texts.index(b"<|im_start|>")


def test_a_metaspace_without_a_scheme(tmp_path: Path) -> None:
    row = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True, "split": False}
    document = sources.byte_fallback(normalizer=None, pre_tokenizer=row)
    assert exact(sources.write(tmp_path / "tokenizer.json", document)).flags["add_space_prefix"]


def test_byte_fallback_of_unigram(tmp_path: Path) -> None:
    document = sources.unigram_with_mask()
    document["model"]["byte_fallback"] = True
    document["model"]["vocab"] += [[f"<0x{byte:02X}>", -9.0] for byte in range(256)]
    path = sources.write(tmp_path / "tokenizer.json", document)
    v = convert_source(str(path), pre=None, arch=None, lines=0)
    assert v.types[v.texts.index(b"<0x41>")] == 6


def test_spaces_dropped_after_a_token_but_not_as_in_phi_3(tmp_path: Path) -> None:
    document = sources.byte_fallback()
    document["added_tokens"][-1]["rstrip"] = True
    report = report_of(sources.write(tmp_path / "tokenizer.json", document))
    assert "added-tokens" in {d.name for d in report.differences}
    assert report.unexplained == ()


def test_steps_of_tokenizers_own(tmp_path: Path) -> None:
    """Falcon's steps: Punctuation, ByteLevel's expression, Digits, and groups of three."""
    steps: list[dict[str, Any]] = [
        {"type": "Punctuation", "behavior": "Contiguous"},
        {**sources.BYTE_LEVEL, "use_regex": True},
        {"type": "Digits", "individual_digits": False},
        {
            "type": "Split",
            "pattern": {"Regex": "[0-9][0-9][0-9]"},
            "behavior": "Isolated",
            "invert": False,
        },
    ]
    path = tmp_path / "tokenizer.json"
    whole = {"type": "Sequence", "pretokenizers": steps}
    sources.write(path, sources.bpe(pre_tokenizer=whole))
    assert convert_source(str(path), pre=None, arch=None, lines=0).pre == "falcon"
    steps[0]["behavior"] = "Isolated"
    sources.write(path, sources.bpe(pre_tokenizer=whole))
    with pytest.raises(ggtok.UnknownPreTokenizerError, match="where the nearest has"):
        ggtok.convert(path)
    steps[3]["pattern"] = {"String": "x"}
    sources.write(path, sources.bpe(pre_tokenizer=whole))
    with pytest.raises(ggtok.UnknownPreTokenizerError, match="has Split: no pre-tokenizer of"):
        ggtok.convert(path)


def test_how_the_nearest_differs(tmp_path: Path) -> None:
    from ggtok.vocabularies.patterns import CHAIN_OF_PRE

    path = tmp_path / "tokenizer.json"
    (whole,) = CHAIN_OF_PRE["qwen2"].published[0]
    parts = whole.split("|")
    parts[-1], parts[-2] = parts[-2], parts[-1]
    for steps, message in (
        (("|".join(parts),), "step 1 has the nearest one's parts in another order"),
        (CHAIN_OF_PRE["afmoe"].published[0][:2], "it has no step 3: "),
    ):
        sources.write(path, sources.bpe(pre_tokenizer=sources.split(*steps)))
        with pytest.raises(ggtok.UnknownPreTokenizerError) as e:
            ggtok.convert(path)
        assert message in str(e.value)


def test_added_tokens_are_not_counted_on_from_ids_that_are_none() -> None:
    row = {"id": 7, "content": "b"}
    vocab: dict[str, Any] = {"a": "x"}
    document = {"model": {"vocab": vocab}, "added_tokens": [row]}
    assert TokenizerJson(document, SourceFolder(None)).added == [row]
    vocab["a"] = 0
    assert TokenizerJson(document, SourceFolder(None)).added == [{**row, "id": 1}]


def test_a_filler_that_exists(tmp_path: Path) -> None:
    document = sources.bpe()
    document["model"]["vocab"] |= {"[PAD900]": 901}
    v = exact(sources.write(tmp_path / "tokenizer.json", document))
    assert v.texts[900:] == [b"[PAD900]_", b"[PAD900]"]


# ---- configurations ----


def test_a_text_models_part_of_the_configuration(tmp_path: Path) -> None:
    """Keys in text_config take precedence, the architecture may be in either part, and the first of
    several ids counts."""
    path = folder(tmp_path / "f", "Qwen3ForCausalLM", "qwen3", vocab_size=900)
    sources.write(path / "tokenizer.json", sources.bpe("qwen2"))
    part = {"vocab_size": 905, "eos_token_id": [1, 0]}
    whole = {"architectures": ["Qwen3ForCausalLM"], "vocab_size": 900, "text_config": part}
    sources.write(path / "config.json", whole)
    v = exact(path)
    assert (len(v), v.special_ids["eos"]) == (905, 1)


def test_a_template_in_a_file_of_its_own(tmp_path: Path) -> None:
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "vocab_size": 900}
    path = folder(tmp_path / "f", "Qwen3ForCausalLM", "qwen3", **config)
    sources.write(path / "tokenizer.json", sources.bpe("qwen2"))
    sources.write(path / "chat_template.jinja", "one")
    assert (exact(path).chat_template, exact(path).chat_templates) == ("one", {})


def test_an_added_token_without_an_id(tmp_path: Path) -> None:
    path = folder(tmp_path / "f", "LlamaForCausalLM", "llama", vocab_size=1500)
    sources.write(path / "tokenizer.model", sources.spm("bpe"))
    rows = {"x": {"content": "<z>"}}
    sources.write(path / "tokenizer_config.json", {"added_tokens_decoder": rows})
    with pytest.raises(ggtok.VocabError, match="added_tokens_decoder: 'x' is not a token id"):
        ggtok.convert(path)


# ---- packages that are missing or fail ----


@pytest.mark.parametrize("package", ["tokenizers", "sentencepiece", "tiktoken"])
def test_a_missing_package(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: dict[str, tuple[bytes | dict[str, Any], str | None]] = {
        "tokenizers": (sources.bpe(), None),
        "sentencepiece": (sources.spm("bpe"), None),
        "tiktoken": (sources.tiktoken_file(), "qwen2"),
    }
    names = {"tokenizers": "tokenizer.json", "sentencepiece": "x.model", "tiktoken": "x.tiktoken"}
    data, pre = files[package]
    path = sources.write(tmp_path / names[package], data)
    assert report_of(path, pre=pre).compared == 200
    tekken = sources.write(tmp_path / "tekken.json", sources.tekken())
    monkeypatch.setitem(sys.modules, package, None)
    report = report_of(path, pre=pre)
    assert report.compared == 0 and "not compared with the source's own package" in str(report)
    assert report_of(tekken).compared == (0 if package == "tiktoken" else 200)


def test_sources_that_sentencepiece_refuses(tmp_path: Path) -> None:
    from ggtok.vocabularies.convert.sentencepiece_model import read_model, write_model

    model = read_model(sources.spm("unigram", normalization_rule_name="nmt_nfkc"))
    model.charsmap = b"\xff\xff\xff\xff"
    path = sources.write(tmp_path / "x.model", write_model(model))
    with pytest.raises(ggtok.VocabError, match="sentencepiece can't load the source: "):
        ggtok.convert(path)


def test_a_published_tiktoken_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's hash determines how text is split, and which special tokens there are."""
    data = sources.tiktoken_file()
    n = len(sources.ranks())
    known = tiktoken_files.Known("ours", "qwen2", {"<|end|>": n, "<|x|>": n + 2}, "<|end|>")
    monkeypatch.setitem(tiktoken_files.KNOWN, hashlib.sha256(data).hexdigest(), known)
    v = exact(sources.write(tmp_path / "x.tiktoken", data))
    assert (v.pre, v.special_ids["eos"], len(v)) == ("qwen2", n, n + 3)
    assert [v.types[n], v.types[n + 1], v.types[n + 2]] == [3, 5, 3]


# ---- export ----


def test_vocabularies_that_tokenizer_json_cannot_express(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    v = ggtok.convert(sources.write(tmp_path / "a.json", sources.wordpiece()))
    few = replace(v, texts=v.texts[:50], types=[1] * 50, special_ids={})  # BERT's ids start at 100
    with pytest.raises(ggtok.VocabError, match="no token to add before or after a text"):
        few.save(path)
    few = replace(few, special_ids={"bos": 1, "sep": 2})
    with pytest.raises(ggtok.VocabError, match="no token for unknown words"):
        few.save(path)
    u = ggtok.convert(sources.write(tmp_path / "a.json", sources.unigram_with_mask()))
    with pytest.raises(ggtok.VocabError, match="Unigram needs scores"):
        replace(u, scores=None).save(path)
    assert not path.exists()
