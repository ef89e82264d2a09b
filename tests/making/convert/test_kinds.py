"""Kinds of tokenizer.json: the report explains each line that differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert import confirm
from ggtok.vocabularies.convert.tokenizer_json import overlaps
from tests.making.convert import sources
from tests.making.convert.reports import convert, exact, named, report_of

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
_LONG = "".join(map(chr, range(0x4E00, 0x4E30)))
WORDS = [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]


def lines_of(v: ggtok.Vocabulary) -> dict[str, int | None]:
    return {difference.name: difference.lines for difference in report_of(v).differences}


def test_wordpiece_that_does_not_split_like_bert(tmp_path: Path) -> None:
    document = sources.wordpiece(
        normalizer={"type": "Sequence", "normalizers": WORDS},
        pre_tokenizer={"type": "Whitespace"},
        post_processor=None,
    )
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    lines = lines_of(v)
    assert lines["normalizer"] and lines["pre-tokenizer"] and lines["template"] is None
    tok = v.tokenizer()
    assert tok.encode("the") == [1, tok.text_to_token("\u2581the"), 2]  # recognizes [CLS] and [SEP]
    alike = convert(sources.write(tmp_path / "tokenizer.json", sources.wordpiece()))
    assert not {"normalizer", "pre-tokenizer", "template"} & named(alike)


@pytest.mark.parametrize("flag", ["clean_text", "handle_chinese_chars"])
def test_flags_of_berts_normalizer(flag: str, tmp_path: Path) -> None:
    normalizer = {**sources.wordpiece()["normalizer"], flag: False}
    document = sources.wordpiece(normalizer=normalizer)
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    assert lines_of(v)["normalizer"]


def test_wordpiece_without_cls_and_sep(tmp_path: Path) -> None:
    document = sources.wordpiece(post_processor=None)
    for row in document["added_tokens"]:
        row["content"] = row["content"].replace("[CLS]", "<c>").replace("[SEP]", "<s>")
    vocab = document["model"]["vocab"]
    names = {"[CLS]": "<c>", "[SEP]": "<s>"}
    document["model"]["vocab"] = {names.get(text, text): id for text, id in vocab.items()}
    report = report_of(convert(sources.write(tmp_path / "tokenizer.json", document)))
    assert "the source has no [CLS]: llama.cpp takes token 101 for it" in report.notes
    assert "the source has no [SEP]: llama.cpp takes token 102 for it" in report.notes
    around = {"type": "BertProcessing", "sep": ["<s>", 2], "cls": ["<c>", 1]}
    path = sources.write(tmp_path / "tokenizer.json", {**document, "post_processor": around})
    v = convert(path, lines=0)
    assert (v.special_ids["bos"], v.special_ids["sep"], report_of(v).notes) == (1, 2, ())


def test_unigram_with_bytes_and_normalizers(tmp_path: Path) -> None:
    document = sources.unigram_with_mask()
    rows = [{"type": "Replace", "pattern": {"Regex": r"\p{Zs}"}, "content": " "}, {"type": "NFC"}]
    document["normalizer"] = {"type": "Sequence", "normalizers": rows}
    vocab, known = document["model"]["vocab"], {text for text, _ in document["model"]["vocab"]}
    texts = [spelling.byte_token(byte).decode() for byte in range(256)]
    vocab += [[text, -9.0] for text in texts if text not in known]
    document["model"]["byte_fallback"] = True
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    lines = lines_of(v)
    assert lines["normalizer"] and lines["byte-fallback"] and lines["leading-space"]


def test_bytes_without_a_token(tmp_path: Path) -> None:
    document = sources.bpe()
    lacking = {spelling.byte_characters()[byte].decode() for byte in range(0x80, 0x90)}
    model: dict[str, Any] = document["model"]
    texts = [text for text in model["vocab"] if not lacking & {*text}]
    model["vocab"] = {text: id for id, text in enumerate(texts)}
    model["merges"] = [pair for pair in model["merges"] if not lacking & {*"".join(pair)}]
    document["added_tokens"] = []
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    (difference,) = [d for d in report_of(v).differences if d.name == "bytes"]
    assert difference.lines and difference.text.startswith("16 bytes have no token, such as 0x80")


def test_added_tokens_that_overlap(tmp_path: Path) -> None:
    document = sources.bpe()
    n = len(document["model"]["vocab"])
    row = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    for i, text in enumerate(("_SER", "_S", "ERVICE", "\n\n", "\n")):
        document["added_tokens"].append({**row, "id": n + i, "content": text})
    path = sources.write(tmp_path / "tokenizer.json", document)
    lines = ["/_SERVICE/", "_S ERVICE", "a\n\n\nb", "/_SERVICE/"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confirm, "lines_for", lambda *_: lines)
        v = convert(path)
    report = report_of(v)
    assert report.unexplained == () and report.differing == 2
    (difference,) = [d for d in report.differences if d.name == "overlaps"]
    assert difference.text.startswith("2 added tokens overlap with others, such as 'ERVICE'")
    assert (difference.lines, difference.compared) == (2, 4)  # one of the lines is a duplicate


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["<|a|>", "<|b|>"], False),
        (["\n", "\n\n", "\n\n\n"], False),  # runs of one character
        (["ab", "bc"], True),  # tokens of the same length: the order of ids decides
        (["abc", "cd"], False),  # the first is longer, so both programs choose it
        (["abab"], False),
        (["abab", "x"], False),
        (["<" + _LONG, _LONG + ">>"], False),  # such a long overlap isn't detected
    ],
)
def test_which_tokens_overlap(texts: list[str], found: bool) -> None:
    assert (overlaps(texts) is not None) is found


def test_tokens_of_the_same_length_that_overlap_are_not_exported(tmp_path: Path) -> None:
    texts = ["<b><c>", "<a><b>"]
    v = ggtok.train("ab " * 9, 300, special_tokens=texts, eos=texts[0], min_frequency=1)
    tok = v.tokenizer()
    ids = tok.encode("<a><b><c>", parse_special=True)
    assert [tok.token_text(id) for id in ids][-1] == b"<b><c>"  # not the leftmost, <a><b>
    with pytest.raises(ggtok.VocabError, match="'<a><b><c>'"):
        v.save(tmp_path / "tokenizer.json")
