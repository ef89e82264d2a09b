"""Tests the command ``ggtok encode``."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from fixtures.build import CHAT as CHAT_PATH
from ggtok.cli import encode_command, progress
from ggtok.corpora.journal import Journal
from ggtok.corpora.summary import EncodeProgress
from tests.cli.command import LLAMA3
from tests.files.corpus import ids_of, raw_ids
from tests.support.vocabularies import fixture

CHAT = str(CHAT_PATH)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one\n\ntwo\n\n\xff")
    (tmp_path / "notes").write_text("precious")
    (tmp_path / "b.jsonl").write_text('{"t": "x"}\n{"u": 1}\nno\n{"t": ""}\n')
    return tmp_path


def test_files(run: Any, here: Path) -> None:
    tok = ggtok.load(LLAMA3)
    done = run("encode", LLAMA3, "a.txt", "-o", "o", "--separator", r"\n\n")
    assert (done.status, done.errors, done.warnings) == (0, [], [])
    ids = ids_of(tok, ["one", "two", "\xff"], tok.eos_id)
    assert raw_ids(here / "o") == ids
    assert done.out.decode() == (
        f"o: {sum(map(len, ids))} ids (uint16) of 3 documents, 12 B in 1 file\n"
        "o.offsets\no.manifest.json\n"
    )
    again = run("encode", LLAMA3, "a.txt", "-o", "o", "--separator", r"\n\n")
    assert again.out == done.out.replace(b"o:", b"o is already complete:", 1)
    assert (again.errors, again.warnings) == ([], [])
    assert run("encode", LLAMA3, "a.txt", "-o", "o", "--restart", "--no-eos").status == 0
    assert raw_ids(here / "o") == [tok.encode("one\n\ntwo\n\n\xff")]


def test_a_format_whose_package_is_missing(
    run: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    before = sorted(here.iterdir())
    done = run("encode", LLAMA3, "notes", "-o", "o.arrow")
    assert done.status == 2 and "needs pyarrow" in str(done.errors)
    assert sorted(here.iterdir()) == before


def test_conversations(run: Any, here: Path) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    (here / "c.jsonl").write_text(json.dumps({"messages": talk}) + "\n{}\n")
    done = run("encode", CHAT, "c.jsonl", "-o", "c.npy", "--chat")
    assert done.status == 2 and "c.jsonl: the line at byte 93" in done.errors[0]
    assert "(--errors skip) drops such documents" in done.errors[0]
    skip = "--errors", "skip"
    done = run("encode", CHAT, "c.jsonl", "-o", "c.npy", "--chat", *skip)
    assert done.out.decode().splitlines()[1:] == [
        *("c.offsets.npy", "c.mask.npy", "c.npy.manifest.json")
    ]
    assert "1 document, 96 B in 1 file, 1 without the field (1 of these skipped)" in str(done.out)
    tok = ggtok.load(CHAT)
    options: dict[str, Any] = {"return_assistant_mask": True, "add_generation_prompt": False}
    ids, mask = tok.encode_chat(talk, continue_final_message=False, **options)
    assert np.load("c.npy").tolist() == ids and np.load("c.mask.npy").tolist() == mask
    (here / "t").write_text("{% for m in messages %}{{ m.content }}.{% endfor %}")
    done = run(
        *("encode", CHAT, "c.jsonl", "-o", "d.npy", "--chat", "--template", "t"),
        *("--like", "transformers", *skip),
    )
    template = (here / "t").read_text()
    ids, mask = tok.encode_chat(talk, template=template, like="transformers", **options)
    assert np.load("d.npy").tolist() == ids and np.load("d.mask.npy").tolist() == mask
    assert run("encode", "--verify", "d.npy").status == 0


def test_conversations_without_masks(run: Any, here: Path) -> None:
    (here / "talk.jsonl").write_text('[{"role": "user", "content": "x"}]\n')
    done = run("encode", CHAT, "talk.jsonl", "-o", "o.npy", "--chat", "--no-mask", "--json")
    assert json.loads(done.out)["files"] == ["o.npy", "o.offsets.npy", "o.npy.manifest.json"]
    assert run("encode", "--verify", "o.npy").status == 0
    wpm = str(fixture("wpm"))
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "\u00e9"}]
    (here / "talk.jsonl").write_text(json.dumps(talk))
    (here / "t").write_text("{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}")
    options = ("-o", "w.npy", "--chat", "--template", "./t", "--errors", "skip")
    [error] = run("encode", wpm, "talk.jsonl", *options).errors
    assert error.endswith("; pass mask=False in chat (--no-mask) to write none")
    assert run("encode", wpm, "talk.jsonl", *options, "--no-mask").status == 0


def test_hints_about_fields(run: Any, here: Path) -> None:
    """Only lines of conversations need --chat."""
    lines = {"c": '[{"role": "user", "content": "x"}]', "f": '{"content": "x"}'}
    for name, line in lines.items():
        (here / f"{name}.jsonl").write_text(line)
    [hint] = run("encode", CHAT, "c.jsonl", "-o", "o").hints
    assert hint.endswith("to encode lines that are conversations, use --chat")
    [hint] = run("encode", CHAT, "f.jsonl", "-o", "o").hints
    assert hint.endswith("to encode a field of another name, use --field NAME")
    assert run("encode", CHAT, "f.jsonl", "-o", "o", "--field", "x").hints == []


def test_options(run: Any, here: Path) -> None:
    options = ["--dtype", "int32", "--field", "t", "--errors", "skip"]
    options += ["--no-special", "--threads", "1", "--json"]
    done = run("encode", "-m", LLAMA3, "b.jsonl", "-o", "o.npy", *options)
    tok = ggtok.load(LLAMA3)
    assert np.load("o.npy").tolist() == [*tok.encode("x", add_special=False), tok.eos_id]
    summary = json.loads(done.out)
    assert summary["files"] == ["o.npy", "o.offsets.npy", "o.npy.manifest.json"]
    assert (summary["missing"], summary["malformed"], summary["empty"]) == (1, 1, 1)
    shown = run("encode", LLAMA3, "b.jsonl", "-o", "p", "--field", "t", "--errors", "skip")
    assert "1 empty, 1 without the field, 1 malformed (3 of these skipped)\n" in shown.out.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no model"),
        ([LLAMA3], "no text: give files, folders or globs"),
        ([LLAMA3, "a.txt"], "nothing to write: give -o OUT"),
        ([CHAT, "a", "-o", "o", "--chat", "--field", "x"], "--field has no effect with --chat"),
        ([CHAT, "a", "-o", "o", "--chat", "--no-eos"], "--no-eos has no effect with --chat"),
        ([CHAT, "a", "-o", "o", "--like", "llama.cpp"], "--like has no effect without --chat"),
        ([CHAT, "a", "-o", "o", "--no-mask"], "--no-mask has no effect without --chat"),
        ([LLAMA3, "-", "-o", "o"], "can't encode standard input"),
        ([LLAMA3, "nowhere", "-o", "o"], "nowhere: No such file or directory"),
        (
            [LLAMA3, "b.jsonl", "-o", "o"],
            "b.jsonl: the line at byte 0: the field 'text' is missing",
        ),
        ([LLAMA3, "b.jsonl", "-o", "o"], "(--errors skip) drops such documents"),
        ([LLAMA3, "a.txt", "-o", "notes"], "(--force) overwrites it"),
        ([LLAMA3, "a.txt", "-o", "ids.parquet"], "name the output ids.bin, or .npy or .arrow"),
        ([LLAMA3, "a.txt", "-o", "o.npy", "--format", "raw"], "can't have the format 'raw', only"),
    ],
)
def test_errors(run: Any, here: Path, arguments: list[str], message: str) -> None:
    done = run("encode", *arguments)
    assert done.status == 2 and message in done.errors[0] and len(done.errors) == 1


def test_include_and_exclude(run: Any, here: Path) -> None:
    """The output is in the sources' folder, but isn't encoded itself."""
    tok = ggtok.load(LLAMA3)
    for name in ("in/c.md", "in/x/d.txt", "in/x/e.txt"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(name)
    command = [
        "encode",
        LLAMA3,
        "in",
        "-o",
        "in/ids.bin",
        "--include",
        "*.txt",
        "--include",
        "*.md",
    ]
    for _ in range(2):
        assert run(*command, "--exclude", "x/d*").status == 0
        assert raw_ids(here / "in/ids.bin") == ids_of(tok, ["in/c.md", "in/x/e.txt"], tok.eos_id)
    with pytest.raises(TypeError, match="include must be str or a list of str, not int"):
        tok.encode_files("in", "o", include=3)  # type: ignore[arg-type]


def interrupt(run: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Runs the command and interrupts it after three checkpoints."""
    with monkeypatch.context() as patched:
        for name, value in (("CHECKPOINT", 200), ("BYTES", 100)):
            patched.setattr(f"ggtok.corpora.run.{name}", value)
        patched.setattr("ggtok.corpora.documents.GROUP", 100)
        patched.setattr("ggtok.corpora.documents.GROUP_JOINED", 100)
        patched.setattr("ggtok.corpora.streams.BLOCK", 300)
        written = []

        def sync(self: Any, state: Any) -> None:
            checkpoint(self, state)
            written.append(state)
            if len(written) == 3:
                raise KeyboardInterrupt

        checkpoint = Journal.checkpoint
        patched.setattr(Journal, "checkpoint", sync)
        return run("encode", *arguments)


def test_ctrl_c(run: Any, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "a.txt").write_text("some text\n" * 300)
    command = [LLAMA3, "a.txt", "-o", "o", "--separator", r"\n", "--threads", "1"]
    done = interrupt(run, monkeypatch, *command)
    assert done.status == 130 and (here / "o.journal").exists()
    assert done.notes == ["ggtok: note: interrupted: run the same command to continue"]
    again = run("encode", *command)
    assert again.status == 0 and "resumed the interrupted run after " in again.warnings[0]
    tok = ggtok.load(LLAMA3)
    assert raw_ids(here / "o") == 300 * ids_of(tok, ["some text"], tok.eos_id)
    assert interrupt(run, monkeypatch, "-q", *command, "--restart").notes == []


def test_ctrl_c_before_a_checkpoint(run: Any, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    nothing = "ggtok: note: interrupted: nothing was kept, because there was no checkpoint yet; "
    again = "ggtok: note: interrupted: run the same command to continue"
    command = ["encode", LLAMA3, "a.txt", "b.txt", "-o", "o", "--separator", r"\n\n"]
    (here / "b.txt").write_text("b")
    before = sorted(os.listdir(here))
    with monkeypatch.context() as patched:
        patched.setattr("ggtok.corpora.encode_documents.Encoder.encode", interrupted)
        done = run(*command)
        assert done.status == 130 and done.notes[0].startswith(nothing)
        assert sorted(os.listdir(here)) == before
        assert run(*command, "--shards", "2").notes[0].startswith(nothing)
    assert run(*command, "--shards", "2").status == 0
    (here / "o-00001-of-00002.manifest.json").unlink()
    with monkeypatch.context() as patched:
        patched.setattr("ggtok.corpora.encode_documents.Encoder.encode", interrupted)
        assert run(*command, "--shards", "2", "--force").notes == [again]


def test_shards(run: Any, here: Path) -> None:
    for name in "abcd":
        (here / f"{name}.text").write_text(name)
    done = run("encode", LLAMA3, "*.text", "-o", "o.bin", "--shards", "2", "--json")
    assert json.loads(done.out)["files"][::3] == ["o-00000-of-00002.bin", "o-00001-of-00002.bin"]
    done = run("encode", LLAMA3, "*.text", "-o", "o.bin", "--shards", "2")
    assert done.out.startswith(b"o.bin in 2 shards is already complete: 12 ids (uint16) of 4 docu")
    done = run("encode", "--verify", "o.bin")
    assert done.out == b"o.bin: complete and undamaged: 12 ids of 4 documents\n"
    (here / "o-00001-of-00002.bin.manifest.json").unlink()
    done = run("encode", "--verify", "o.bin")
    assert done.out == b"o-00001-of-00002.bin: isn't complete: it has no manifest\n"
    done = run("encode", LLAMA3, "*.text", "-o", "o.bin", "--shards", "5")
    assert "5 shards of 4 source files: a shard has whole files" in done.errors[0]


def test_kind(run: Any, here: Path) -> None:
    tok = ggtok.load(LLAMA3)
    (here / "c.json").write_text('[{"text": "a"}]')
    done = run("encode", LLAMA3, "c.json", "-o", "o")
    assert done.status == 2 and "(--kind text) takes the file as a text" in done.errors[0]
    assert run("encode", LLAMA3, "c.json", "-o", "o", "--kind", "text").status == 0
    assert raw_ids(here / "o") == ids_of(tok, ['[{"text": "a"}]'], tok.eos_id)


def test_verify(run: Any, here: Path) -> None:
    assert run("encode", LLAMA3, "a.txt", "-o", "o").status == 0
    done = run("encode", "--verify", "o")
    assert (done.status, done.errors) == (0, [])
    assert done.out == b"o: complete and undamaged: 11 ids of 1 document\n"
    (here / "o.offsets").unlink()
    done = run("encode", "--verify", "o")
    assert (done.status, done.out, done.errors) == (1, b"o.offsets: is missing\n", [])
    found = json.loads(run("encode", "--verify", "o", "--json").out)
    assert found == {"files": ["o.offsets", "o"], "faults": ["o.offsets: is missing"]}
    again = run("encode", LLAMA3, "a.txt", "-o", "o")
    assert again.status == 2 and "(--restart --force) write it again" in again.errors[0]
    assert run("encode", "--verify", "a.txt").status == 2
    assert "unexpected argument" in run("encode", "--verify", "o", "p").errors[0]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def test_a_bar_on_a_terminal(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ggtok import cli

    monkeypatch.setattr(progress.os, "get_terminal_size", lambda _: os.terminal_size((100, 20)))
    for quiet in ([], ["--quiet"]):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        command = ["encode", *quiet, LLAMA3, "a.txt", "-o", "o", "--restart"]
        assert cli.main(command) == 0
        if quiet:
            assert terminal.getvalue() == ""
        else:
            assert "[####################] 100%  0:00 left  12 B, " in terminal.getvalue()
            assert terminal.getvalue().endswith(" \r")  # the progress line is cleared


def test_what_a_bar_says() -> None:
    p = EncodeProgress(3_000_000, 10, 700, 500, 1000, 2.0, 1_000_000, 250)
    assert (
        encode_command._describe_progress(p)
        == "[##########          ]  50%  0:04 left  3.0 MB, 1 MB/s, 700 ids"
    )
    p = EncodeProgress(0, 0, 0, 0, 0, 0.0)
    assert "100%" in encode_command._describe_progress(p)
