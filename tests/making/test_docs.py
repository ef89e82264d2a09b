"""Runs the examples in docs/training.md and docs/design/training.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import ggtok
from ggtok import cli
from ggtok.inspect.parity.texts import CODE, PROSE

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text("\n".join(PROSE), "utf-8")
    Path("more.txt").write_text("\n".join(CODE), "utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", (DOCS / "training.md").read_text("utf-8"), re.S)
    names: dict[str, object] = {}
    for language, block in blocks:
        if language == "python":
            exec(block, names)
        else:
            assert cli.main(shlex.split(block)[1:]) == 0
    assert [language for language, _ in blocks].count("python") == 6
    tok = names["tok"]
    assert isinstance(tok, ggtok.Tokenizer) and tok.eos_id == 1
    assert "bytes a token" in capfd.readouterr().out


def test_the_worked_example() -> None:
    text = (DOCS / "design" / "training.md").read_text("utf-8")
    words = re.findall(r"`(\w+)` x (\d+)", text)
    rows = re.findall(r"^\| (\w+) (\w+) \| (\d+) \|", text, re.M)
    corpus = "".join(f"{word}\n" * int(n) for word, n in words)
    v = ggtok.train(corpus, 257 + len(rows), pre="gpt-2")
    assert v.merges == [(left.encode(), right.encode()) for left, right, _ in rows]
    assert v.report.last_count == int(rows[-1][2])  # type: ignore[attr-defined]
