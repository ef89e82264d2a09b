"""Tests the commands ``ggtok convert`` and ``ggtok export``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ggtok
from fixtures.build import CHAT
from ggtok import cli
from ggtok.inspect.parity.texts import CODE, PROSE
from ggtok.vocabularies.convert.bpe import read_byte_level
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.tokenizer_json import TokenizerJson
from tests.making.convert import sources
from tests.support.vocabularies import fixture


@pytest.mark.parametrize("name", ["bpe-llama3", "bpe-qwen2", "bpe-neox"])
def test_exported_and_converted(
    name: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    model, source, out = str(fixture(name)), tmp_path / "tokenizer.json", tmp_path / "x.gguf"
    assert cli.main(["export", model, "--to", str(source)]) == 0
    assert capfdbinary.readouterr().out.startswith(f"{source}: ".encode())
    assert cli.main(["convert", str(source), "-o", str(out), "--json"]) == 0
    data = json.loads(capfdbinary.readouterr().out)
    tok, converted = ggtok.load(model), ggtok.load(out)
    assert (data["pre"], data["tokens"], data["unexplained"]) == (tok.pre, tok.n_tokens, [])
    for text in (*PROSE[:10], *CODE[:5], "<|endoftext|> \u00e9\u0301\n\n  x"):
        assert converted.encode(text, add_special=False) == tok.encode(text, add_special=False)


@pytest.mark.full
def test_there_and_back(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    source = sources.write(tmp_path / "tokenizer.json", sources.bpe("qwen2"))
    out = tmp_path / "x.gguf"
    assert cli.main(["convert", str(source), "-o", str(out), "--check"]) == 0
    text = capfdbinary.readouterr().out.decode()
    assert text.startswith(
        "900 tokens\nconverted from tokenizer.json (BPE)\npre-tokenizer: qwen2\n"
    )
    assert "compared with tokenizers on 900 tokens and 3000 lines: none differs\n" in text
    assert text.splitlines()[-1].startswith(f"{out}: ")
    again = tmp_path / "again.json"
    assert cli.main(["export", str(out), "--to", str(again)]) == 0
    capfdbinary.readouterr()
    assert cli.main(["export", "-m", str(out), "--to", str(again), "--json"]) == 0
    size = again.stat().st_size
    report = {"path": str(again), "bytes": size, "notes": []}
    assert json.loads(capfdbinary.readouterr().out) == report
    capfdbinary.readouterr()
    assert cli.main(["convert", str(again), "-o", str(out), "--json"]) == 0
    data = json.loads(capfdbinary.readouterr().out)
    assert (data["pre"], data["tokens"], data["unexplained"]) == ("qwen2", 900, [])
    assert ggtok.load(out).encode("abc") == ggtok.convert(source).tokenizer().encode("abc")


@pytest.mark.full
def test_a_wrong_id_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def wrong(source: TokenizerJson, draft: Draft) -> None:
        read_byte_level(source, draft)
        ids = {text: id for id, text in draft.texts.items()}
        draft.texts[ids[b"e"]], draft.texts[ids[b"t"]] = b"t", b"e"

    source = sources.write(tmp_path / "tokenizer.json", sources.bpe("qwen2"))
    monkeypatch.setattr("ggtok.vocabularies.convert.source_formats.read_byte_level", wrong)
    monkeypatch.setattr("ggtok.vocabularies.convert.confirm.CHECK_LINES", 300)
    assert cli.main(["convert", str(source), "--check"]) == 1
    assert b"lines differ for no known reason, such as" in capfdbinary.readouterr().out
    out = tmp_path / "x.gguf"
    assert cli.main(["convert", str(source), "-o", str(out)]) == 1 and not out.exists()
    assert b"x.gguf: not written" in capfdbinary.readouterr().err
    assert cli.main(["convert", str(source), "-o", str(out), "--inexact"]) == 1 and out.exists()


@pytest.mark.full
def test_inexact(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    out = tmp_path / "tokenizer.json"
    source = sources.write(tmp_path / "a.model", sources.spm("unigram"))
    for argv in (
        ["export", str(fixture("ugm")), "--to", str(out)],
        ["convert", str(source), "-o", str(out)],
    ):
        assert cli.main(argv) == 2 and not out.exists()
        assert "writes the file all the same" in capfdbinary.readouterr().err.decode()
        assert cli.main([*argv, "--inexact"]) == 0
        assert "ggtok: warning: tokenizer.json: " in capfdbinary.readouterr().err.decode()
        out.unlink()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["convert"], "give one source"),
        (["convert", "x"], "nothing to do: give -o FILE or --check"),
        (["convert", "missing", "-o", "x.gguf"], "no such file or folder"),
        (["convert", "x.tiktoken", "-o", "x.gguf"], "isn't known: pre=NAME (--pre NAME) sets the"),
        (["convert", "x.tiktoken", "--pre", "y", "-o", "x.gguf"], "error: pre: no pre-token"),
        (["convert", "x.tiktoken", "-o", "no/x.gguf"], "the folder no doesn't exist"),
        (["convert", "empty.txt", "-o", "x.gguf"], "empty.txt: there are no tokens"),
        (["export"], "no model"),
        (["export", "x.gguf"], "no file to write: give --to FILE"),
        (["export", "x.gguf", "y", "--to", "z"], "unexpected argument: 'y'"),
    ],
)
def test_usage(
    argv: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").touch()
    Path("x.tiktoken").write_bytes(b"YQ== 0\nYg== 1\n")
    assert cli.main(argv) == 2
    assert message in capfdbinary.readouterr().err.decode()


def test_exported_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = f"{tmp_path}/made/"
    assert cli.main(["export", str(CHAT), "--to", folder]) == 0
    names = [
        line.split(": ")[0].removeprefix(folder) for line in capsys.readouterr().out.split("\n")
    ]
    assert names == [
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "generation_config.json",
        "chat_template.jinja",
        "",
    ]
    assert cli.main(["export", str(fixture("ugm")), "--to", folder]) == 2
    assert "(--inexact) writes the folder all the same" in capsys.readouterr().err


def test_export_reports_types_that_the_format_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "any.json")
    assert cli.main(["export", str(fixture("wpm")), "--to", out]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["types that 'ggtok convert' would change: 1 token from unknown to control"]
    assert cli.main(["export", str(fixture("wpm")), "--to", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == lines[1:]
