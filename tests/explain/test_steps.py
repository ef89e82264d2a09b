"""What explanations contain, and the errors for texts that can't be explained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import ggtok
from ggtok.explain.steps import Merge, Rule
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture

Load = Callable[[str], ggtok.Tokenizer]


def test_bpe(load_fixture: Load) -> None:
    found = load_fixture("bpe-llama3").explain("Hi<|eot_id|> there", parse_special=True)
    assert (found.vocab_type, found.model, found.pre) == ("BPE", "gpt2", "llama-bpe")
    assert [(token.id, token.how) for token in found.before] == [(662, "added")]
    assert "add_bos" in found.before[0].why
    assert found.after == []
    first, special, last = found.fragments
    assert [word.text for word in first.words] == ["Hi"]
    assert special.special is not None
    assert (special.special.id, special.special.how) == (664, "special")
    (word,) = last.words
    assert word.rules == [Rule("llama3", r"[^\r\n\p{L}\p{N}]?\p{L}+")]
    assert word.symbols == list(" there")
    assert word.merges == [
        Merge(" ", "t", rank=21, at=0),
        Merge("h", "e", rank=34, at=2),
        Merge("r", "e", rank=39, at=4),
        Merge(" t", "he", rank=74, at=0),
    ]
    assert [token.text for token in word.tokens] == [" the", "re"]
    assert {token.how for token in word.tokens} == {"merged"}
    assert (word.begin, word.end) == (12, 18)


def test_ranks_are_positions_in_the_file(load_fixture: Load) -> None:
    merges = GGUF.read(fixture("bpe-llama3")).strings("tokenizer.ggml.merges")
    (word,) = load_fixture("bpe-llama3").explain(" there").fragments[0].words
    for merge in word.merges:
        spelled = f"{merge.left} {merge.right}" if merge.left != " " else f"\u0120 {merge.right}"
        assert merges[merge.rank or 0].decode() == spelled.replace(" t ", "\u0120t ")


def test_words_show_the_rules_that_split_them(load_fixture: Load) -> None:
    tok = load_fixture("bpe-neox")
    assert tok.pre == "default"
    words = tok.explain("12345!", add_special=False).fragments[0].words
    assert [word.text for word in words] == ["123", "45", "!"]
    assert words[0].rules[-1] == Rule("digits_3", "[0-9][0-9][0-9]")
    assert words[1].rules[2:] == [Rule("numbers", r"\p{N}+"), Rule("digits_3", None)]
    assert words[2].rules[0].scanner == "default_punctuation"


def test_whole_words_are_not_merged(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    (word,) = tok.explain(" the", add_special=False).fragments[0].words
    assert [token.how for token in word.tokens] == ["whole word"]
    assert word.merges == []
    newlines = load_fixture("bpe-gemma4").explain("\n\n", add_special=False).fragments[0].words
    assert [token.how for token in newlines[0].tokens] == ["whole word"]


def test_characters_without_a_token_become_bytes(load_fixture: Load) -> None:
    tok = load_fixture("spm")
    tokens = tok.explain("\u2603", add_special=False).fragments[0].words[0].tokens
    assert [token.text for token in tokens[-3:]] == ["\udce2", "\udc98", "\udc83"]
    assert {token.how for token in tokens[-3:]} == {"byte"}
    found = load_fixture("bpe-gemma4").explain("\u2603", add_special=False)
    assert [token.how for token in found.fragments[0].words[0].tokens] == ["byte"] * 3


def test_spm(load_fixture: Load) -> None:
    tok = load_fixture("spm")
    (fragment,) = tok.explain("the", add_special=False).fragments
    assert fragment.normalized == "\u2581the"
    (word,) = fragment.words
    assert [(merge.left, merge.right) for merge in word.merges][-1] == ("\u2581t", "he")
    last = word.tokens[-1]
    assert last.score == tok.token_score(last.id) == word.merges[-1].score


def test_ugm(load_fixture: Load) -> None:
    tok = load_fixture("ugm")
    (word,) = tok.explain("the \u2603\u2603 kettle", add_special=False).fragments[0].words
    on_path = [token for token in word.tokens if token.how == "best path"]
    (unknown,) = [token for token in word.tokens if token.how == "unknown"]
    assert unknown.id == tok.unk_id
    assert all(token.score == pytest.approx(tok.token_score(token.id)) for token in on_path)
    assert word.tokens[-1].total == word.lattice[-1].total
    assert word.lattice[-1].at == len(word.text.encode())
    # No token ending here has a better total.
    assert word.tokens[-1].total == max(
        end.total for end in word.lattice if end.at == word.lattice[-1].at
    )


def test_wpm(load_fixture: Load) -> None:
    found = load_fixture("wpm").explain("Na\u00efve \u6f22")
    (fragment,) = found.fragments
    assert fragment.normalized == "\u2581naive\u2581\u6f22"
    assert [word.tokens[0].how for word in fragment.words] == ["longest match", "unknown"]
    assert "strip_accents: accents are dropped" in fragment.notes
    assert [len(found.before), len(found.after)] == [1, 1]


def test_tokens_say_how_they_were_found(load_fixture: Load) -> None:
    def hows(name: str, text: str | bytes) -> set[str]:
        words = load_fixture(name).explain(text, add_special=False).fragments[0].words
        return {token.how for word in words for token in word.tokens}

    assert hows("rwkv", "the kettle") == {"longest match"}
    assert hows("plamo2", "the \u2603") == {"best path", "byte"}
    assert hows("test", "abcdefg") == {"hash"}
    assert hows("bpe-hybriddna", "a<dna>ACGTAC</dna>") >= {"k-mer", "tag"}
    assert hows("bpe-hybriddna", "<dna>AXX") == {"tag", "unknown"}


def test_fragments_include_white_space_that_special_tokens_strip(tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-jina"))
    if b"<mask>" not in gguf.strings("tokenizer.ggml.tokens"):
        add_tokens(gguf, ["<mask>"], 3)
    tok = ggtok.load(gguf.write(tmp_path / "strip.gguf"))
    found = tok.explain("a \n<mask> b", add_special=False, parse_special=True)
    assert [(f.begin, f.end) for f in found.fragments] == [(0, 1), (1, 9), (9, 11)]
    assert "LSTRIP: it strips 2 bytes" in found.fragments[1].notes[0]


def test_malformed_bytes_have_a_note(load_fixture: Load) -> None:
    (fragment,) = load_fixture("bpe-gpt2").explain(b"a\xff", add_special=False).fragments
    assert fragment.notes == ["bytes that aren't UTF-8: 1; each becomes U+FFFD"]
    assert (fragment.text, fragment.normalized) == ("a\udcff", "a\ufffd")
    assert load_fixture("bpe-gpt2").explain("").fragments == []


# ---- errors ----


def test_long_texts_are_refused(load_fixture: Load) -> None:
    tok = load_fixture("bpe-gpt2")
    text = "1" * (16 << 10)
    assert tok.explain(text).ids == tok.encode(text)
    with pytest.raises(ggtok.InvalidValueError, match="16,385 bytes, and at most 16,384 can"):
        tok.explain("\u00e9" * 8192 + "a")


@pytest.mark.parametrize(("name", "text"), [("rwkv", b"\xff" * 1500), ("ugm-plain", "x" * 16384)])
def test_the_texts_of_steps_have_a_limit(name: str, text: str | bytes) -> None:
    """Without this limit, the steps of a short text could take gigabytes."""
    gguf = GGUF.read(fixture(name))
    unknown = len(gguf.strings("tokenizer.ggml.tokens"))
    add_tokens(gguf, ["x" * 15000], 1)
    if name == "rwkv":
        gguf.set("tokenizer.ggml.unknown_token_id", unknown, "u32")
    tok = ggtok.load(gguf.dump())
    with pytest.raises(ggtok.InvalidValueError, match="texts of the steps have more than 16777216"):
        tok.explain(text)
    assert tok.explain(text[:500]).ids == tok.encode(text[:500])


def test_wrong_arguments_raise_the_errors_of_encode(load_fixture: Load) -> None:
    tok = load_fixture("bpe-gpt2")
    for call in (tok.encode, tok.explain):
        with pytest.raises(ggtok.InvalidTypeError, match="text must be str"):
            call(3)  # type: ignore[operator]
        with pytest.raises(ggtok.InvalidTypeError, match="parse_special must be"):
            call("a", parse_special="<s>")  # type: ignore[operator]
    with pytest.raises(ggtok.VocabError, match="no vocabulary"):
        load_fixture("none").explain("a")


def test_explain_does_not_read_the_file(tmp_path: Path) -> None:
    for name in "bpe-gpt2", "ugm":
        path = tmp_path / "model.gguf"
        path.write_bytes(fixture(name).read_bytes())
        tok, data = ggtok.load(path), bytearray(path.read_bytes())
        path.unlink()
        from_memory = ggtok.load(data)
        data[:] = bytes(len(data))
        assert tok.explain("the kettle") == from_memory.explain("the kettle")


def test_odd_plamo_vocabularies_are_explained(tmp_path: Path) -> None:
    """The plain implementation doesn't support these vocabularies, so only the ids are compared."""
    gguf = GGUF.read(fixture("plamo2"))
    scores = gguf.array("tokenizer.ggml.scores")
    scores[400] = -1000.0
    gguf.set("tokenizer.ggml.scores", scores)
    add_tokens(gguf, [b"\xe3\x81a", b"the\xff"], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(gguf.write(tmp_path / "odd.gguf"))
    for text in "the kettle \u2603", b"the\xff \xe3\x81a", tok.token_to_piece(400) * 3:
        found = tok.explain(text)
        assert found.ids == tok.encode(text)
        (word,) = found.fragments[0].words
        assert len(word.lattice) == len(word.text)
