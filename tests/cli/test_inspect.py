"""``ggtok inspect``: a file's metadata, templates and tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ggtok
from ggtok import cli
from tests.cli.command import BPE, LLAMA3, SPM
from tests.support.patch import GGUF
from tests.support.vocabularies import PRE_NAMES, fixture


def patched(tmp_path: Path, name: str, **values: object) -> str:
    """Writes a fixture with other values for some ``tokenizer.ggml.`` keys; None removes a key."""
    gguf = GGUF.read(fixture(name))
    for key, value in values.items():
        if value is None:
            del gguf.raw[b"tokenizer.ggml." + key.encode()]
        else:
            gguf.set(f"tokenizer.ggml.{key}", value)
    path = tmp_path / "patched.gguf"
    gguf.write(path)
    return str(path)


# ---- files that can't be loaded ----


def test_unknown_pre_tokenizer(run, tmp_path: Path) -> None:
    path = patched(tmp_path, "bpe-llama3", pre="llama-bqe")
    result = run("inspect", path, "--json")
    shown = json.loads(result.out)
    healthy = json.loads(run("inspect", LLAMA3, "--json").out)
    for key in "model", "type", "n_tokens", "special_tokens", "chat_templates", "arrays":
        assert shown[key] == healthy[key], key
    assert shown["pre"] == "llama-bqe"
    assert shown["metadata"]["tokenizer.ggml.pre"] == "llama-bqe"
    assert "'llama-bqe'" in shown["fault"] and "'llama-bpe'" in shown["fault"]
    assert "--pre" in shown["fault"] and "ggtok.load" not in shown["fault"]
    assert shown["flags"] == {}  # flags depend on the pre-tokenizer, which is unknown
    assert healthy["fault"] is None
    assert (result.status, result.errors) == (1, [])
    assert result.warnings == [f"ggtok: warning: {shown['fault']}"]

    result = run("inspect", path)
    lines = result.out.decode().splitlines()
    assert lines[0] == f"fault           {shown['fault']}"
    assert "pre-tokenizer   llama-bqe" in lines
    assert "  tokenizer.ggml.pre = 'llama-bqe'" in lines
    assert run("inspect", path, "--pre", "llama-bpe").status == 0


@pytest.mark.parametrize(
    ("name", "values", "fault", "type", "has_tokens"),
    [
        ("spm", {"model": "unheard-of"}, "unheard-of", None, True),
        ("spm", {"tokens": None}, "tokenizer.ggml.tokens", None, False),
        ("bpe-gpt2", {"merges": None}, "tokenizer.ggml.merges", "BPE", True),
        ("bpe-gpt2", {"model": None}, "tokenizer.ggml.model", None, True),
        ("bpe-gpt2", {"pre": "gpt-3", "merges": None}, "'gpt-3'", "BPE", True),
    ],
)
def test_other_faults(
    run,
    tmp_path: Path,
    name: str,
    values: dict[str, object],
    fault: str,
    type: str | None,
    has_tokens: bool,
) -> None:
    path = patched(tmp_path, name, **values)
    with pytest.raises(ggtok.VocabError):
        ggtok.load(path)
    result = run("inspect", path, "--json")
    shown = json.loads(result.out)
    healthy = json.loads(run("inspect", str(fixture(name)), "--json").out)
    assert fault in shown["fault"]
    assert shown["n_tokens"] == (healthy["n_tokens"] if has_tokens else None)
    assert shown["type"] == type
    assert shown["model"] == values.get("model", healthy["model"])
    assert shown["chat_templates"] == healthy["chat_templates"]
    assert (result.status, result.errors, len(result.warnings)) == (1, [], 1)
    text = run("inspect", path, "-q")
    assert (text.status, text.errors, text.warnings) == (1, [], [])
    assert b"key/values" in text.out.splitlines()
    assert b"flags" not in text.out.splitlines()


def test_faults_of_the_command_line_remain_errors(run) -> None:
    for options in ["--pre", "nothing"], ["--override-kv", "x"]:
        result = run("inspect", BPE, *options)
        assert (result.status, result.out, len(result.errors)) == (2, b"", 1)


def test_advice_is_the_commands(run, tmp_path: Path) -> None:
    path = patched(tmp_path, "bpe-llama3", pre="llama-bqe")
    for command in "tokenize", "detokenize", "chat":
        result = run(command, path, "1", stdin=b"[]")
        assert result.status == 2 and len(result.errors) == 1
        assert "--pre NAME" in result.errors[0] and "ggtok.load" not in result.errors[0]


# ---- templates ----

TEMPLATES = {"default": "\x1b[31mred {{ messages }}\r\n", "tool_use": "{{ tools }}é"}


@pytest.fixture
def with_templates(tmp_path: Path) -> str:
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template", TEMPLATES["default"])
    gguf.set("tokenizer.chat_template.tool_use", TEMPLATES["tool_use"], "str")
    gguf.write(tmp_path / "templates.gguf")
    return str(tmp_path / "templates.gguf")


def test_templates(run, with_templates: str) -> None:
    for name, text in TEMPLATES.items():
        assert run("inspect", with_templates, "--template", name).out == text.encode()
        shown = json.loads(run("inspect", with_templates, "--template", name, "--json").out)
        assert shown == {"name": name, "template": text}
    assert run("inspect", with_templates, "--template").out == TEMPLATES["default"].encode()


def test_templates_that_are_not_there(run, with_templates: str) -> None:
    result = run("inspect", with_templates, "--template", "rag")
    assert (result.status, result.out, len(result.errors)) == (2, b"", 1)
    assert "'rag'" in result.errors[0] and "'default', 'tool_use'" in result.errors[0]
    assert "has no chat template" in run("inspect", BPE, "--template").errors[0]


def test_names_from_the_file_are_escaped(run, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template.\x1b[2J\u202e", "{{ 1 }}", "str")
    path = tmp_path / "\x1b[2J.gguf"
    gguf.write(path)
    for options in [], ["--template", "x"]:
        result = run("inspect", str(path), *options)
        shown = result.out.decode() + " ".join(result.errors)
        assert "\x1b" not in shown and "\u202e" not in shown
        assert r"\x1b[2J\u202e" in shown and r"\x1b[2J.gguf" in shown


def test_metadata_that_is_not_utf8(run, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("spm"))
    gguf.set("general.name", b"caf\xe9 \x9b", "str")
    gguf.write(tmp_path / "name.gguf")
    shown = json.loads(run("inspect", str(tmp_path / "name.gguf"), "--json").out)
    assert shown["metadata"]["general.name"] == "caf\udce9 \udc9b"
    assert rb"caf\udce9 \udc9b" in run("inspect", str(tmp_path / "name.gguf")).out


def test_metadata_that_is_no_text_as_json(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("general.name", b"\xff\xfe")
    path = gguf.write(tmp_path / "name.gguf")
    assert cli.main(["inspect", str(path), "--json"]) == 0
    assert rb"\udcff\udcfe" in capfdbinary.readouterr().out


# ---- tokens ----


def test_token_by_id(run) -> None:
    tok = ggtok.load(SPM)
    shown = json.loads(run("inspect", SPM, "--token", str(tok.eos_id), "--json").out)
    assert shown == [
        {
            "id": tok.eos_id,
            "text": "</s>",
            "piece": "</s>",
            "bytes": list(b"</s>"),
            "type": ["CONTROL"],
            "score": tok.token_score(tok.eos_id),
            "eog": True,
        }
    ]
    lines = run("inspect", SPM, "--token", str(tok.eos_id)).out.decode().splitlines()
    assert lines[0] == f"token {tok.eos_id}"
    assert "  type               CONTROL" in lines


def test_tokens_by_text(run) -> None:
    """Tokens are found by their stored text and by their piece."""
    tok = ggtok.load(SPM)
    for text in "▁the", " the":
        shown = json.loads(run("inspect", SPM, "--token", text, "--json").out)
        assert [token["text"] for token in shown] == ["▁the"]
        assert [token["piece"] for token in shown] == [" the"]
    ids = [token["id"] for token in shown]
    assert tok.encode("the", add_special=False) == ids
    both = run("inspect", SPM, "--token", "▁the", "--token", "</s>", "--json")
    assert len(json.loads(both.out)) == 2


def test_no_such_token(run) -> None:
    tok = ggtok.load(BPE)
    result = run("inspect", BPE, "--token", str(tok.n_tokens))
    assert result.status == 2 and f"0 to {tok.n_tokens - 1}" in result.errors[0]
    result = run("inspect", BPE, "--token", "9" * 5000)
    assert result.status == 2 and len(result.errors) == 1
    result = run("inspect", BPE, "--token", "hi there")
    ids = " ".join(map(str, tok.encode("hi there")))
    assert result.status == 2 and f"it becomes tokens {ids}" in result.errors[0]


def test_pre_tokenizer_names(run) -> None:
    names = run("inspect", "--pre-names").out.decode().split()
    assert set(PRE_NAMES) <= set(names)
    assert json.loads(run("inspect", "--pre-names", "--json").out) == names
