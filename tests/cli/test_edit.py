"""Tests the command ``ggtok edit``."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import ggtok
from ggtok.loading.loaded import JOURNAL
from ggtok.vocabularies.edit import saved
from ggtok.vocabularies.edit.header import Header
from tests.checks.healthy import faulty
from tests.cli.command import LLAMA3
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

GGML = "tokenizer.ggml."


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(shutil.copy(LLAMA3, tmp_path / "model.gguf"))


def test_every_option(run, model: str, tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("{{ messages }}\n")
    (tmp_path / "tools.jinja").write_text("{{ tools }}")
    result = run(
        *("edit", model, "--in-place", "--json", "-q", "--pre", "qwen2", "--add-bos", "false"),
        *("--template", str(tmp_path / "t.jinja")),
        *("--template", f"tool_use={tmp_path / 'tools.jinja'}"),
        *("--set", "general.name=A name", "--set", f"{GGML}padding_token_id=7"),
        *("--set", "x.n=12", "--set", "x.f=0.5", "--set", "x.b=true", "--set", "x.s=str:12"),
        *("--special", "eot=<|eot_id|>", "--special", "eos=3"),
        *("--type", "5=control", "--type", "<|eot_id|>=user_defined"),
    )
    assert result.status == 0, result.errors
    tok = ggtok.load(model)
    assert (tok.pre, tok.add_bos, tok.eos_id) == ("qwen2", False, 3)
    assert tok.chat_templates == {"default": "{{ messages }}\n", "tool_use": "{{ tools }}"}
    values = {key: value for key, value in tok.metadata.items() if key.startswith("x.")}
    assert values == {"x.n": 12, "x.f": 0.5, "x.b": True, "x.s": "12"}
    assert tok.metadata["general.name"] == "A name"
    assert tok.pad_id == 7
    assert ggtok.TokenAttr.CONTROL in tok.token_attr(5)
    found = json.loads(result.out)
    assert found["written"]
    assert found["sample"]["before"] != found["sample"]["after"]
    assert {"key": f"{GGML}token_type[5]", "before": 1, "after": 3} in found["changes"]
    removed = run(
        *("edit", model, "--in-place", "-q", "--remove-template", "default", "--unset", "x.n"),
        *("--remove-template", "tool_use"),
    )
    assert removed.status == 0, removed.errors
    assert ggtok.load(model).chat_templates == {}
    assert "x.n" not in ggtok.load(model).metadata
    assert "tokenizer.chat_templates" not in ggtok.load(model)._loaded.arrays()


def test_dry_run_and_a_new_file(run, model: str, tmp_path: Path) -> None:
    before = Path(model).read_bytes()
    dry = run("edit", model, "--dry-run", "--pre", "qwen2", "-q")
    assert dry.status == 0
    lines = dry.out.decode().splitlines()
    assert lines[0] == f"{GGML}pre: llama-bpe -> qwen2"
    assert "the ids of a sample change:" in lines
    assert lines[-1].endswith("would be written as a new file")
    out = tmp_path / "out.gguf"
    assert run("edit", model, "-o", str(out), "--pre", "qwen2", "-q").status == 0
    assert Path(model).read_bytes() == before
    assert ggtok.load(out).pre == "qwen2"
    assert sorted(os.listdir(tmp_path)) == ["model.gguf", "out.gguf"]


def test_undo_and_recover(run, model: str) -> None:
    before = Path(model).read_bytes()
    assert run("edit", model, "--in-place", "--pre", "qwen2", "-q").status == 0
    result = run("edit", model, "--undo", "-q")
    assert (result.status, Path(model).read_bytes()) == (0, before)
    again = run("edit", model, "--undo", "-q")
    assert again.status == 2
    assert "nothing to undo" in str(again.errors)
    # Simulates an edit that was killed while writing the header.
    assert run("edit", model, "--in-place", "--special", "bos=5", "-q").status == 0
    edited = Path(model).read_bytes()
    with open(model, "rb") as file:
        end = Header(file, model).data_offset
    old, new = before[:end], edited[:end]
    assert before[end:] == edited[end:] and old != new
    saved.save_header(model, model + JOURNAL, old, new, len(before), journal=True)
    interrupted = new[: len(new) // 2] + before[len(new) // 2 :]
    Path(model).write_bytes(interrupted)
    for command in (("tokenize", model, "x"), ("inspect", model)):
        result = run(*command, "-q")
        assert result.status == 2
        assert "'ggtok edit MODEL --undo' restores it" in str(result.errors)
    for options in (("--dry-run",), ("-o", model + "2")):
        result = run("edit", model, *options, "--pre", "qwen2")
        assert result.status == 2
        assert "'ggtok edit MODEL --undo' restores it" in str(result.errors)
        assert Path(model).read_bytes() == interrupted
    result = run("edit", model, "--in-place", "--pre", "llama-bpe", "--add-eos", "true")
    assert result.status == 0, result.errors
    assert "an edit was interrupted; the header before it was restored" in str(result.warnings)
    assert run("edit", model, "--undo").status == 0
    assert Path(model).read_bytes() == before


def test_errors(run, model: str, tmp_path: Path) -> None:
    before = Path(model).read_bytes()
    (tmp_path / "bad.jinja").write_text("line\n{% if %}")
    for options, message in (
        ((), "give one of -o OUT, --in-place, --dry-run and --undo"),
        (("--in-place", "--dry-run"), "give one of"),
        (("--in-place",), "no changes"),
        (("--in-place", "--set", "x"), "--set: expected KEY=VALUE, not 'x'"),
        (("--in-place", "--set", f"{GGML}bos_token_id=x"), "is int, which can't be 'x'"),
        (("--in-place", "--unset", "x"), "x: the file has no such key"),
        (("--in-place", "--special", "foo=1"), "no special token 'foo'"),
        (("--in-place", "--special", "eos=9999"), "no token 9999: the ids are 0 to 679"),
        (("--in-place", "--special", "eos=nothing"), "no token has the text 'nothing'"),
        (("--in-place", "--type", "5=odd"), "--type: expected ID=TYPE"),
        (("--in-place", "--remove-template", "x"), "no template 'x'; the file has: none"),
        (("--in-place", "--template", "missing"), "missing: No such file"),
        (("--in-place", "--template", str(tmp_path / "bad.jinja")), "(--force) writes it anyway"),
        (("--in-place", "--pre", "nothing"), "nothing"),
        (("-o", model, "--pre", "qwen2"), "is the source itself"),
        (("-o", "-", "--pre", "qwen2"), "can't write to standard output"),
    ):
        result = run("edit", model, *options, "-q")
        assert (result.status, result.out) == (2, b""), options
        assert message in str(result.errors), result.errors
        assert Path(model).read_bytes() == before
    for name in ("user/repo", "missing.gguf"):
        result = run("edit", name, "--in-place", "--pre", "qwen2", "-q")
        assert result.status == 2
        assert "only a file on this machine can be edited" in str(result.errors)
    assert run("edit", str(fixture("chat")), "--dry-run", "--pre", "qwen2", "-q").status in (0, 2)


def test_new_warnings_are_shown(run, model: str) -> None:
    """A warning that the file had before isn't repeated."""
    key = GGML + "eos_token_id"
    new = "ggtok: warning: after the edit: "
    for option in "--dry-run", "--in-place":
        text = run("edit", model, "--set", f"{key}=99999", option).warnings[0]
        assert text.startswith(f"{new}key '{key}' is 99999, but the vocabulary has")
    for words in ("--add-bos", "false"), ("--special", "eos=663"):
        found = run("edit", model, *words, "--in-place").warnings
        assert not any(text.startswith(new) for text in found)
    assert not run("edit", model, "--set", f"{key}=88888", "--in-place", "-q").warnings


def test_files_that_can_not_be_loaded(run, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set(GGML + "model", "none-such", "str")
    gguf.set("tokenizer.chat_template.tool_use", "x", "str")
    path = str(gguf.write(tmp_path / "model.gguf"))
    assert run("edit", path, "--special", "eos=5", "--in-place").status == 2
    done = run("edit", path, "--set", f"{GGML}model=gpt2", "--in-place")
    assert done.status == 0, done.errors
    assert ggtok.load(path).model == "gpt2"
    faulty = run("edit", path, "--set", f"{GGML}model=none-such", "--in-place", "--force")
    assert faulty.status == 0, faulty.errors
    (tmp_path / "t.jinja").write_text("y")
    words = ("--template", str(tmp_path / "t.jinja"), "--remove-template", "tool_use")
    assert run("edit", path, *words, "--in-place", "--force").status == 0
    assert run("edit", path, "--remove-template", "default", "--in-place", "--force").status == 0
    assert not [key for key in GGUF.read(path).raw if b"chat_template" in key]


def test_many_changes_are_not_all_listed(run, tmp_path: Path) -> None:
    path = str(shutil.copy(fixture("bpe-llama3"), tmp_path / "model.gguf"))
    words = [word for id in range(50) for word in ("--type", f"{id}=user_defined")]
    lines = run("edit", path, "--dry-run", *words).out.decode().splitlines()
    assert lines[39].startswith(f"{GGML}token_type[39]: ")
    assert lines[40] == "and 10 other changes (--json lists all)"
    assert len(json.loads(run("edit", path, "--dry-run", "--json", *words).out)["changes"]) == 50


def test_a_fix_lists_the_commands_for_what_remains(run, tmp_path: Path) -> None:
    """Without a template, the end of answers isn't certain, but a control token names it."""
    path = str(shutil.copy(fixture("bpe-llama3"), tmp_path / "model.gguf"))
    words = ["--special", "eos=72", "--unset", GGML + "pre"]
    assert run("edit", path, *words, "--in-place").status == 0
    result = run("edit", path, "--fix", "all", "--in-place")
    options = "--special 'eos=<|end_of_text|>'"
    assert result.status == 1
    assert (
        f"  Probably corrects it: ggtok edit {path} {options} --in-place\n" in result.out.decode()
    )
    assert f"  Probably corrects it: ggtok edit {path} --pre llama-bpe" in result.out.decode()
    command = ["--special", "eos=<|end_of_text|>", "--pre", "llama-bpe", "--in-place"]
    assert run("edit", path, *command).status == 0
    assert run("edit", path, "--fix", "all", "--in-place").status == 0


def test_fix(run, tmp_path: Path) -> None:
    path = str(faulty().write(tmp_path / "model.gguf"))
    codes = lambda: [f.code for f in ggtok.doctor(path)]  # noqa: E731
    plan = run("edit", path, "--fix", "all", "--dry-run")
    assert plan.status == 1 and f"{GGML}eot_token_id: (none) -> ".encode() in plan.out
    assert codes() == ["GGT204", "GGT301", "GGT401"]
    assert f"ggtok edit {path} --fix GGT204 --in-place" in " ".join(
        run("doctor", path).out.decode().split()
    )
    done = run("edit", path, "--fix", "GGT204", "--fix", "GGT301", "--in-place")
    assert done.status == 0, done.errors
    assert codes() == ["GGT401"]
    again = run("edit", path, "--fix", "all", "--dry-run", "--json", "-q")
    assert again.status == 1 and json.loads(again.out)["changes"] == []
    assert [left["code"] for left in json.loads(again.out)["remaining"]] == ["GGT401"]
    left = run("edit", path, "--fix", "all", "--dry-run").out.decode()
    assert left.startswith("nothing changes\n\nserious findings remain:\nGGT401 serious: ")
    assert "  To do: Convert the model again.\n" in left
    made = run("edit", path, "--fix", "all", "--in-place", "--json", "-q")
    assert json.loads(made.out)["written"] is False
    wrong = run("edit", path, "--fix", "GGT401", "--dry-run")
    assert wrong.status != 0 and "no certain correction" in " ".join(wrong.errors)
    ggtok.edit(path, {GGML + "pre": "x"}, force=True)
    assert "GGT103" in codes()
    assert run("edit", path, "--pre", "jina-v2-code", "--in-place").status == 0
    assert codes() == ["GGT401"]
