"""``ggtok diff``: the differences between two vocabularies, and whether one can draft for the
other."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pytest

import ggtok
from tests.cli.command import BPE, LLAMA3
from tests.docs.pages import TEMPLATE
from tests.making.convert import sources
from tests.support.full import full
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture, fixture_names

GGML = "tokenizer.ggml."


@pytest.mark.parametrize("name", fixture_names())
def test_no_difference(run, name: str) -> None:
    result = run("diff", str(fixture(name)), str(fixture(name)), "-q")
    assert (result.status, result.out) == (0, b"no difference\n")


def test_a_size_without_a_vocabulary(run, tmp_path: Path) -> None:
    """A file of model "none" may claim any number of tokens, and has none."""
    gguf = GGUF.read(fixture("none"))
    gguf.set("llama.vocab_size", 3_000_000)
    gguf.write(tmp_path / "none.gguf")
    tok = ggtok.load(tmp_path / "none.gguf")
    assert tok.n_tokens == 3_000_000
    loaded = tok._loaded
    assert [loaded.texts(), loaded.pieces(), loaded.scores(), loaded.attrs()] == [[], [], [], []]
    result = run("diff", str(tmp_path / "none.gguf"), BPE)
    assert (result.status, len(result.errors)) == (1, 0)


def test_what_is_changed_is_found(run, tmp_path: Path) -> None:
    gguf = GGUF.read(LLAMA3)
    tokens, merges = gguf.array(GGML + "tokens"), gguf.array(GGML + "merges")
    types = gguf.array(GGML + "token_type")
    tokens[100], tokens[101] = tokens[101], tokens[100]
    tokens[300] = "changed"
    types[102] = 4
    merges[5], merges[6] = merges[6], merges[5]
    gone = merges.pop()
    gguf.set(GGML + "tokens", tokens)
    gguf.set(GGML + "token_type", types)
    gguf.set(GGML + "merges", [*merges, "a b"])
    gguf.set(GGML + "add_bos_token", False)
    gguf.set(GGML + "eos_token_id", 7)
    gguf.set("tokenizer.chat_template", TEMPLATE)
    add_tokens(gguf, ["new"], 1)
    other = str(gguf.write(tmp_path / "other.gguf"))
    text = tmp_path / "text"
    text.write_bytes(b"Hello\nworld\xff\n\n" + tokens[100] * 2 + b"\n")
    result = run("diff", LLAMA3, other, "--json", "--text", str(text), "-q")
    assert result.status == 1
    found = json.loads(result.out)
    was = ggtok.load(LLAMA3)
    assert found["values"]["tokens"] == [680, 681]
    assert found["values"]["add_bos"] == [True, False]
    assert found["values"]["eos_id"] == [663, 7]
    assert found["values"]["template default"] == [None, TEMPLATE]
    assert "pre-tokenizer" not in found["values"] and "bos_id" not in found["values"]
    assert found["tokens"]["only in A"] == [[300, was.token_text(300).decode()]]
    assert found["tokens"]["only in B"] == [[300, "changed"], [680, "new"]]
    assert [row[:2] for row in found["tokens"]["moved"]] == [[100, 101], [101, 100]]
    assert ["NORMAL", "USER_DEFINED"] in [row[2:] for row in found["tokens"]["types"]]
    assert found["merges"]["only in A"] == [[len(merges), gone.decode()]]
    assert found["merges"]["only in B"] == [[len(merges), "a b"]]
    assert {row[0] for row in found["merges"]["in another order"]} == {5, 6}
    assert found["text"]["lines"] == 4
    assert [row["line"] for row in found["text"]["different"]] == [4]
    shown = run("diff", LLAMA3, other, "--text", str(text), "-q").out.decode()
    assert f"template default        - | {TEMPLATE[:10]}" in shown
    assert "... (" in shown
    assert "tokens only in B: 2\n      300  'changed'\n      680  'new'\n" in shown
    assert "lines with other ids: 1 of 4\n  line 4\n    A " in shown


def test_long_lists_are_cut_short(run) -> None:
    shown = run("diff", BPE, LLAMA3, "-q").out.decode()
    assert "  ... and " in shown and len(shown.splitlines()) < 80
    scores = run("diff", str(fixture("spm")), str(fixture("ugm")), "-q").out.decode()
    assert "tokens with other scores: " in scores
    text = run(
        "diff", str(fixture("spm")), LLAMA3, "-q", "--text", "-", stdin=b"a b c d e f\n" * 9
    ).out
    assert text.count(b"  line ") == 5 and b" ...\n" in text


@pytest.mark.full
@pytest.mark.parametrize("make", ["bpe", "wordpiece", "byte_fallback"])
def test_the_original(run, make: str, tmp_path: Path) -> None:
    """Compares a tokenizer.json with the GGUF file converted from it."""
    documents = {
        "bpe": lambda: sources.bpe("qwen2"),
        "wordpiece": sources.wordpiece,
        "byte_fallback": sources.byte_fallback,
    }
    path = sources.write(tmp_path / "tokenizer.json", documents[make]())
    model, text = str(tmp_path / "model.gguf"), tmp_path / "text"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ggtok.convert(path).save(model)
    text.write_bytes("Hello, world 123\n\n  and more é\n".encode() + b"\xff not UTF-8\n")
    result = run("diff", model, str(path), "--text", str(text), "--json", "-q")
    found = json.loads(result.out)
    assert found["values"] == {}
    if make == "bpe":
        assert result.status == 0, found
        other = GGUF.read(model)
        other.set(GGML + "pre", "gpt-2")
        other.write(tmp_path / "model.gguf")
        shown = run("diff", model, str(path), "--text", str(text), "-q")
        assert shown.status == 1 and shown.out.startswith(
            b"lines with other ids: 1 of 4\n  line 1\n"
        )
    else:
        assert found["tokens"]["only in A"] == found["tokens"]["only in B"] == []
        assert found["tokens"]["moved"] == []
        assert not any(found["merges"].values())


@pytest.mark.full
def test_what_is_no_tokenizer(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    result = run("diff", BPE, str(path))
    assert result.status == 2 and f"{path}: not a tokenizer.json" in result.errors[0]
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert "pip install tokenizers" in run("diff", BPE, str(path)).errors[0]


# ---- drafts ----


def variants(folder: Path) -> list[Path]:
    """Writes vocabularies at the limits that the rule for draft models allows, and just beyond
    them."""

    def write(name: str, **values: object) -> Path:
        gguf = GGUF.read(LLAMA3)
        tokens = gguf.array(GGML + "tokens")
        for key, value in values.items():
            if key == "text":
                tokens[value] = "changed"  # type: ignore[index]
                gguf.set(GGML + "tokens", tokens)
            elif key == "more":
                add_tokens(gguf, [f"[more {i}]" for i in range(value)], 1)  # type: ignore[arg-type]
            else:
                gguf.set(GGML + key, value)
        return gguf.write(folder / f"{name}.gguf")

    return [
        fixture("bpe-llama3"),
        write("text4", text=4),
        write("text5", text=5),
        write("text679", text=679),
        write("more128", more=128),
        write("more129", more=129),
        write("bos", bos_token_id=9),
        write("no_bos", add_bos_token=False),
        write("no_bos_other", add_bos_token=False, bos_token_id=9),
        write("eos", eos_token_id=9),
        write("adds_eos", add_eos_token=True),
        write("adds_other_eos", add_eos_token=True, eos_token_id=9),
        *(fixture(name) for name in ("spm", "wpm", "bpe-gpt2", "rwkv")),
    ]


def test_drafts_are_llama_cpps(run, llama: LlamaCpp, tmp_path: Path) -> None:
    paths = variants(tmp_path)
    loaded = {path: llama.load(path) for path in paths}
    may = 0
    for a in paths:
        for b in paths:
            result = run("diff", str(a), str(b), "--draft", "--json", "-q")
            expected = llama.drafts(loaded[a], loaded[b])
            found = json.loads(result.out)
            assert found["may_draft"] == expected == (found["reason"] is None), (a, b, found)
            assert result.status == (0 if expected else 1)
            may += expected
    assert len(paths) < may < len(paths) ** 2 / 2
    shown = run("diff", str(paths[0]), str(paths[2]), "--draft").out.decode()
    assert shown.startswith(f"{paths[2]} can't draft for {paths[0]}: token 5 is ")
    assert shown.endswith("and 'changed'\n")
    shown = run("diff", str(paths[0]), str(paths[1]), "--draft").out.decode()
    assert shown == f"{paths[1]} may draft for {paths[0]}\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "give two models"),
        ([BPE], "give two models"),
        ([BPE, BPE, BPE], "give two models"),
        ([BPE, BPE, "--draft", "--text", "x"], "--draft and --text exclude each other"),
        full(["{json}", BPE], "the first must be a GGUF file"),
        full([BPE, "{json}", "--draft"], "llama.cpp drafts only with a GGUF model"),
        ([BPE, "missing.gguf"], "no such file"),
    ],
)
def test_usage(run, argv: list[str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    ggtok.vocabulary(fixture("bpe-qwen2")).save(path)
    result = run("diff", *(str(path) if word == "{json}" else word for word in argv))
    assert result.status == 2 and message.lower() in result.errors[0].lower()
