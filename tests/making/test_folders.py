"""Sources that look like vocabularies that llama.cpp supports, but have another meaning, are
rejected or read correctly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ggtok
from ggtok.vocabularies.spelling import byte_characters
from tests.making.convert.sources import write


@pytest.fixture(autouse=True)
def _without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the comparison with other packages."""
    monkeypatch.setattr("ggtok.vocabularies.convert.originals.is_installed", lambda _: False)


LETTERS = [character.decode() for character in byte_characters()]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", *(f"##{c}" for c in "abcdefgh")]


def vocab_merges(path: Path, merges: list[str], class_: str | None, name: str = "f") -> Path:
    """Creates a folder with vocab.json, merges.txt and a tokenizer class."""
    folder = path / name
    folder.mkdir()
    parts = [part for merge in merges for part in (*merge.split(), "".join(merge.split()))]
    texts = dict.fromkeys(["<|endoftext|>", "<s>", "<pad>", "</s>", *LETTERS, *parts])
    write(folder / "vocab.json", json.dumps({text: id for id, text in enumerate(texts)}))
    write(folder / "merges.txt", "#version: 0.2\n" + "".join(f"{m}\n" for m in merges))
    if class_ is not None:
        write(folder / "tokenizer_config.json", json.dumps({"tokenizer_class": class_}))
    return folder


@pytest.mark.parametrize("class_", [None, "GPT2Tokenizer", "GPT2TokenizerFast", "RobertaTokenizer"])
def test_marks_that_end_words(class_: str | None, tmp_path: Path) -> None:
    """CLIP's and XLM's merges contain marks that end words. If they were read like GPT-2's merges,
    each word would get different ids."""
    folder = vocab_merges(tmp_path, ["a b", "c d</w>", "ab cd</w>"], class_)
    with pytest.raises(ggtok.VocabError, match=r"merge 2 has 'd</w>': .*end_of_word_suffix"):
        ggtok.convert(folder)
    # Text that only resembles such a mark is merged like any other text.
    made = vocab_merges(tmp_path, ["< /", "</ w", "</w >", "d </w>"], class_, "g")
    assert b"d</w>" in ggtok.convert(made).tokens


@pytest.mark.parametrize("class_", ["CLIPTokenizer", "CLIPTokenizerFast", "CTRLTokenizer"])
def test_classes_that_are_not_supported(class_: str, tmp_path: Path) -> None:
    folder = vocab_merges(tmp_path, ["a b"], class_)
    with pytest.raises(ggtok.VocabError, match=f"tokenizer_class '{class_[:8]}.*' isn't supported"):
        ggtok.convert(folder)
    (folder / "tokenizer_config.json").unlink()
    write(folder / "config.json", json.dumps({"tokenizer_class": class_}))
    with pytest.raises(ggtok.VocabError, match="isn't supported"):
        ggtok.convert(folder)


def test_defaults_of_a_class(tmp_path: Path) -> None:
    gpt2 = ggtok.convert(vocab_merges(tmp_path, ["a b"], "GPT2Tokenizer"))
    assert gpt2.special_ids["bos"] == gpt2.special_ids["eos"] == 0
    roberta = ggtok.convert(vocab_merges(tmp_path, ["a b"], "RobertaTokenizer", "r"))
    assert roberta.special_ids["bos"] == 1 and roberta.special_ids["eos"] == 3
    assert roberta.flags == {"add_bos": True, "add_eos": True}
    qwen = ggtok.convert(vocab_merges(tmp_path, ["a b"], "Qwen2Tokenizer", "q"))
    assert "normalizer" in str(qwen.report)  # NFC is mentioned


def test_add_prefix_space(tmp_path: Path) -> None:
    folder = vocab_merges(tmp_path, ["a b"], None)
    config = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}
    write(folder / "tokenizer_config.json", json.dumps(config))
    assert "prefix-space" in str(ggtok.convert(folder).report)


def bert(path: Path, texts: list[str], **config: object) -> Path:
    path.mkdir(exist_ok=True)
    write(path / "vocab.txt", "".join(f"{text}\n" for text in texts))
    write(path / "tokenizer_config.json", json.dumps(config))
    return path


def test_vocab_txt_is_wordpiece(tmp_path: Path) -> None:
    v = ggtok.convert(bert(tmp_path / "f", BERT, tokenizer_class="BertTokenizer"))
    assert (v.model, len(v)) == ("bert", len(BERT))
    tok = v.tokenizer()
    assert tok.encode("Abc") == [2, 5, BERT.index("##b"), BERT.index("##c"), 3]
    assert tok.encode("[MASK]", parse_special=True) == [2, 4, 3]
    assert v.special_ids["unk"] == 1 and v.special_ids["pad"] == 0 and v.special_ids["mask"] == 4
    cased = ggtok.convert(bert(tmp_path / "f", BERT, do_lower_case=False)).tokenizer()
    assert cased.encode("Abc") == [2, 1, 3]
    alone = ggtok.convert(tmp_path / "f" / "vocab.txt")
    assert alone.tokenizer().encode("Abc") == tok.encode("Abc")


def test_vocab_txt_with_a_duplicate(tmp_path: Path) -> None:
    """transformers uses the last of two equal tokens."""
    v = ggtok.convert(bert(tmp_path / "f", [*BERT, "", "a"]))
    assert v.tokenizer().encode("a", add_special=False) == [len(BERT) + 1]


@pytest.mark.parametrize(
    ("texts", "class_", "message"),
    [
        (BERT, "EsmTokenizer", r"vocab\.txt: tokenizer_class 'EsmTokenizer' isn't supported"),
        (BERT, "BertJapaneseTokenizer", "'BertJapaneseTokenizer' isn't supported"),
        (["a", "b"], "BertTokenizer", r"vocab\.txt: '\[UNK\]' is not a token, so this isn't"),
        ([], "BertTokenizer", r"vocab\.txt: "),
    ],
)
def test_other_vocab_txt(texts: list[str], class_: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ggtok.VocabError, match=message):
        ggtok.convert(bert(tmp_path / "f", texts, tokenizer_class=class_))


def test_too_many_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggtok.vocabularies.convert.vocab_files.MAX_TOKENS", 3)
    with pytest.raises(ggtok.VocabError, match=r"vocab\.txt: more than 3 tokens"):
        ggtok.convert(bert(tmp_path / "f", BERT))


@pytest.mark.parametrize(
    "name", ["empty.txt", "rwkv_vocab_v20230424.txt", "vocab.txt", "tokenizer.jsonl", "x.tiktoken"]
)
@pytest.mark.parametrize("data", ["", "\n\n"])
def test_sources_without_tokens(name: str, data: str, tmp_path: Path) -> None:
    with pytest.raises(ggtok.GGTokError):
        ggtok.convert(write(tmp_path / name, data))
