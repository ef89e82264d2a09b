"""The arguments of ggtok.train: their effects, and invalid values."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from ggtok.vocabularies import train as training
from ggtok.vocabularies.spelling import BYTE, CONTROL, NORMAL, UNKNOWN
from tests.support.full import Lazy, full

sentencepiece: Any = Lazy("sentencepiece")

TEXT = "\n".join([*PROSE, *CODE]).replace("\r", "") + "\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 0}, r"vocab_size \(--vocab-size\) must be from 1 to"),
        ({"vocab_size": 2**30}, r"vocab_size \(--vocab-size\) must be from 1 to"),
        (
            {"vocab_size": 256},
            r"vocab_size \(--vocab-size\) is 256, but special tokens and alphabet alone are 257 "
            "tokens: pass 257 or more$",
        ),
        (
            {"vocab_size": 300, "model": "spm"},
            r"alphabet alone are (\d+) tokens: pass \1 or more, or a lower "
            "character_coverage",
        ),
        ({"model": "wpm"}, "model must be 'bpe' or 'spm' or 'ugm', not 'wpm'"),
        ({"sources": __file__}, "is the name of a file, but a str is a text to train on"),
        ({"sources": [__file__, "x"]}, r"pass pathlib.Path\("),
        ({"pre": "gpt-2\0"}, "NUL"),
        ({"pre": "whitespace"}, "drops white space"),
        ({"rule": "sentencepiece"}, "rule must be 'huggingface' or 'bytes' for model 'bpe'"),
        ({"rule": "bytes", "model": "spm"}, "rule must be 'sentencepiece' for model 'spm'"),
        ({"special_tokens": ["a", "b", "a"]}, r"special_tokens\[2\] is a duplicate: 'a'"),
        ({"special_tokens": [""]}, r"special_tokens\[0\] must be a text of 1 to 1024 bytes"),
        ({"special_tokens": ["x" * 1025]}, "1 to 1024 bytes"),
        ({"special_tokens": ["\0"]}, "without NUL"),
        ({"special_tokens": ["\ud800"]}, "lone surrogate"),
        ({"bos": ""}, "bos must be a text"),
        ({"alphabet": "all"}, "alphabet must be 'bytes' or 'seen'"),
        ({"alphabet": "seen", "model": "spm"}, "alphabet has no effect with the model"),
        ({"byte_fallback": False}, "byte_fallback has no effect with the model"),
        ({"character_coverage": 0.0}, "character_coverage must be above 0"),
        ({"character_coverage": float("nan")}, "character_coverage must be above 0"),
        ({"character_coverage": 0.5}, "character_coverage has no effect with the model"),
        ({"split_digits": True}, "split_digits has no effect with the model"),
        ({"rule": "bytes", "model": "ugm"}, "rule has no effect with the model 'ugm'"),
        ({"pre": "qwen2", "model": "ugm"}, "pre has no effect with the model 'ugm'"),
        ({"byte_fallback": False, "model": "ugm"}, "byte_fallback has no effect with the model"),
        ({"max_words": 5000, "model": "ugm"}, "max_words has no effect with the model"),
        ({"pre": "qwen2", "model": "spm"}, "pre has no effect with the model 'spm'"),
        ({"pre_patterns": ["x"], "model": "spm"}, "pre_patterns has no effect with the model"),
        ({"max_token_length": 3, "model": "spm"}, "max_token_length has no effect with the model"),
        ({"max_token_length": 0}, r"max_token_length \(--max-token-length\) must be from 1"),
        ({"min_frequency": 0}, r"min_frequency \(--min-frequency\) must be from 1"),
        ({"documents": "files"}, "documents must be 'lines' or 'whole'"),
        ({"max_words": 10}, "max_words must be 1024 or more"),
        ({"threads": -1}, "threads must not be negative"),
        ({"sources": ""}, "there is no text to train on"),
        ({"sources": []}, "there is no text to train on"),
        ({"sources": "", "model": "spm"}, "there is no text to train on"),
        ({"model": "spm", "special_tokens": ["<0x41>"]}, "'<0x41>' has the form of a byte token"),
        # These errors are raised before the corpus is read.
        (
            {"pre": "gemma4", "special_tokens": ["<0x41>"], "sources": ""},
            "'<0x41>' has the form of a byte token",
        ),
        full(
            {"model": "ugm", "vocab_size": 5},
            r"vocab_size \(--vocab-size\) is 5, .* alone are (\d+) tokens: pass \1 or more, or a "
            "lower",
        ),
        full({"model": "ugm", "sources": ""}, "sentencepiece: "),
    ],
)
def test_invalid_values(options: dict[str, object], message: str) -> None:
    options = {"sources": TEXT, "vocab_size": 2000, **options}
    with pytest.raises(ggtok.InvalidValueError, match=message):
        ggtok.train(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": "x"}, "vocab_size must be int, not str"),
        ({"vocab_size": True}, "vocab_size must be int, not bool"),
        ({"pre": 3}, "pre must be str, not int"),
        ({"special_tokens": "<s>"}, "special_tokens must be an iterable of str"),
        ({"special_tokens": [3]}, r"special_tokens\[0\] must be str, not int"),
        ({"eos": 3}, "eos must be str, not int"),
        ({"chat_template": 3}, "chat_template must be str, not int"),
        ({"max_words": 3.0}, "max_words must be int, not float"),
        ({"threads": 1.5}, "threads must be an integer"),
    ],
)
def test_values_of_other_types(options: dict[str, object], message: str) -> None:
    options = {"sources": TEXT, "vocab_size": 2000, **options}
    with pytest.raises(ggtok.InvalidTypeError, match=message):
        ggtok.train(**options)  # type: ignore[arg-type]


def test_an_unknown_pre_tokenizer() -> None:
    with pytest.raises(ggtok.UnknownPreTokenizerError, match="llama-bpx") as e:
        ggtok.train("a", 300, pre="llama-bpx")
    assert "llama-bpe" in e.value.suggestions


def test_special_tokens_of_bpe() -> None:
    v = ggtok.train("ab", 270, special_tokens=["<a>", "<b>"], bos="<s>", eos="<b>", pad="<p>")
    assert v.texts[:4] == [b"<a>", b"<b>", b"<s>", b"<p>"] and v.types[:5] == [CONTROL] * 4 + [
        NORMAL
    ]
    assert v.special_ids == {"bos": 2, "eos": 1, "pad": 3} and v.flags["add_bos"]
    tok = v.tokenizer()
    assert (tok.bos_id, tok.eos_id, tok.pad_id, tok.add_bos) == (2, 1, 3, True)
    plain = ggtok.train("ab", 270)
    assert plain.texts[0] == b"<|endoftext|>" and plain.special_ids == {"bos": 0, "eos": 0}
    assert not plain.tokenizer().add_bos
    assert plain.tokenizer().encode("ab") == [plain.tokens.index(b"a"), plain.tokens.index(b"b")]


def test_special_tokens_of_pieces() -> None:
    v = ggtok.train("ab", 290, model="spm", special_tokens=["<x>", "<s>"], pad="<p>", eos="<e>")
    assert v.texts[:5] == [b"<unk>", b"<s>", b"<e>", b"<p>", b"<x>"]
    assert v.types[:6] == [UNKNOWN, CONTROL, CONTROL, CONTROL, CONTROL, BYTE]
    assert v.special_ids == {"unk": 0, "bos": 1, "eos": 2, "pad": 3}
    assert v.tokenizer().encode("ab")[0] == 1


def test_merges_do_not_produce_special_tokens() -> None:
    text = "zabab yabab xabab"
    assert b"abab" in ggtok.train(text, 270, model="spm").texts
    v = ggtok.train(text, 270, model="spm", special_tokens=["abab"])
    assert v.texts.count(b"abab") == 1 and v.types[v.texts.index(b"abab")] == CONTROL


def test_no_byte_fallback() -> None:
    v = ggtok.train("ab", 10, model="spm", byte_fallback=False)
    assert v.texts == [b"<unk>", b"<s>", b"</s>", b"a", b"b", "\u2581".encode()]


def test_max_token_length() -> None:
    v = ggtok.train("abcdefgh " * 9, 400, max_token_length=5)
    assert max(map(len, v.tokens[1:])) == 4


def test_raw_vocabularies() -> None:
    """The first tokens are characters, and <0xXX> for the bytes of all other characters."""
    v = ggtok.train(TEXT, 1500, pre="gemma4", special_tokens=["the"], character_coverage=0.98)
    assert v.tokens[0] == b"the" and v.types[2:258] == [BYTE] * 256
    chars = [t.decode() for t in v.texts[258:] if len(t.decode()) == 1]
    assert chars == sorted(chars) and "\u2581" in chars
    tok = v.tokenizer()  # llama.cpp cleans up spaces for this pre-tokenizer
    assert tok.decode(tok.encode(PROSE[0], add_special=False)) == PROSE[0]
    assert v.report.text_tokens > 0  # type: ignore[attr-defined]
    assert ggtok.train("a a", 300, pre="gemma4", special_tokens=["a"]).texts.count(b"a") == 1


# ---- Unigram ----


@pytest.mark.full
def test_unigram_is_sentencepieces() -> None:
    text = TEXT.split("\n")
    options: dict[str, Any] = {"special_tokens": ["<x>"], "pad": "<pad>", "threads": 1}
    v = ggtok.train(TEXT, 1400, model="ugm", held_out=PROSE[:20], **options)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(filter(None, text)),
        model_writer=model,
        vocab_size=1400,
        control_symbols=["<x>"],
        pad_id=3,
        pad_piece="<pad>",
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        character_coverage=1.0,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=4,
    )
    p = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    assert v.texts == [p.id_to_piece(id).encode() for id in range(p.get_piece_size())]
    tok = v.tokenizer()
    assert tok.vocab_type == "UGM" and tok.pad_id == 3
    for line in PROSE[:20]:
        assert tok.encode(line) == [*p.encode(line), tok.eos_id]
    n = sum(map(bool, text))
    held = sum(len(line.encode()) for line in PROSE[:20])
    rate = held / sum(tok.count(line, add_special=False) for line in PROSE[:20])
    assert re.sub(r"[0-9.]+ s\b", "T s", str(v.report)).split("\n") == [
        f"{len(v)} tokens of 1400 asked for",
        f"{n} texts, {v.report.text_bytes} bytes",  # type: ignore[attr-defined]
        f"{rate:.3f} bytes a token in held-out text",
        "time: train T s",
        "trained by the sentencepiece package",
    ]


@pytest.mark.full
def test_unigram_needs_text_and_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="not on word counts"):
        ggtok.train(ggtok.count_words("a"), 300, model="ugm")
    whole = ggtok.train(TEXT, 1400, model="ugm", documents="whole")
    assert whole.report.words == 1  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ggtok.MissingExtraError, match=r"ggtok\[spm\]"):
        ggtok.train(TEXT, 300, model="ugm")


def test_unknown_memory_use(monkeypatch: pytest.MonkeyPatch) -> None:
    here = training._peak_memory()
    monkeypatch.setattr(Path, "read_text", lambda _: "")
    elsewhere = training._peak_memory()
    assert here > 1 << 20 and abs(elsewhere - here) < 1 << 24  # two independent ways to measure
    monkeypatch.setattr(sys, "platform", "darwin")
    assert 0 < training._peak_memory() < elsewhere
    monkeypatch.setitem(sys.modules, "resource", None)
    assert training._peak_memory() == 0


# ---- bounded memory ----


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a peak of its own")
def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """Trains on 57 MB with few distinct words, in a process that must not keep the text."""
    path = tmp_path / "text"
    path.write_text("".join(f"word{i % 977} and more of it\n" for i in range(2_500_000)))
    code = (
        "import sys; sys.path.append(sys.argv[2])\n"  # append it behind the installed package
        "import pathlib, ggtok\n"
        "from tests.support.memory import peak\n"
        "ggtok.train('a a', 257)\n"
        "before = peak()\n"
        "v = ggtok.train(pathlib.Path(sys.argv[1]), 400)\n"
        "print(peak() - before)\n"
    )
    command = [sys.executable, "-c", code, str(path), str(Path(__file__).parents[2])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size > 50_000_000 and int(done.stdout) < 45_000  # peak memory in kB
