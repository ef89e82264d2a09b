"""``ggtok tokenize`` with ``--offsets`` and ``--color``, and with llama-tokenize's options for
remote models."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path

import pytest

import ggtok
from ggtok.cli import commands
from tests.cli.command import BPE, COMMAND, LLAMA3, SPM, spawn
from tests.cli.terminal import on_terminal

posix = pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
TEXT = "Hi <|eot_id|>\té你\n \U0001fae8 x"


# ---- offsets ----


@pytest.mark.parametrize("model", [BPE, LLAMA3, SPM])
@pytest.mark.parametrize("unit", ["byte", "char", "utf16"])
@pytest.mark.parametrize("text", [TEXT, "", "\ufeffBOM", "a\0b\0"])
def test_offsets(run, model: str, unit: str, text: str) -> None:
    tok = ggtok.load(model)
    ids, spans = tok.encode_with_offsets(
        text, add_special=tok.add_bos, parse_special=True, unit=unit
    )
    rows = [[id, *span] for id, span in zip(ids, spans.tolist(), strict=True)]
    argv = ["tokenize", model, "--stdin", "--offsets", "--unit", unit]
    data = text.encode()
    shown = run(*argv, "--ids", "--show-count", stdin=data).out.decode()
    assert shown == f"{rows}\nTotal number of tokens: {len(ids)}\n"
    value = json.loads(run(*argv, "--json", stdin=data).out)
    assert (value["count"], value["unit"], value["ids"]) == (len(ids), unit, ids)
    assert [[t["id"], t["start"], t["end"]] for t in value["tokens"]] == rows
    listed = run(*argv, stdin=data).out
    found = re.findall(rb"^ *(\d+) +(\d+):(\d+) *-> '", listed, re.MULTILINE)
    assert [[*map(int, row)] for row in found] == rows


def test_offsets_are_of_the_text_that_is_tokenized(run) -> None:
    """Offsets count the text's bytes after escapes were replaced."""
    for options, end in ([], 2), (["--plain"], 3):
        shown = run("tokenize", BPE, r"a\n", "--offsets", "--ids", *options).out
        assert json.loads(shown)[-1][2] == end


def test_code_points_need_utf8(run) -> None:
    result = run("tokenize", BPE, "--stdin", "--offsets", "--unit", "char", stdin=b"ab\xff")
    assert result.status == 2 and "is not UTF-8 (byte 2): use --unit byte" in result.errors[0]
    assert run("tokenize", BPE, "--stdin", "--offsets", stdin=b"ab\xff").status == 0


# ---- colours ----

MARKS = re.compile(r"\x1b\[([0-9;]*)m(.*?)\x1b\[0m")


def test_colors(run) -> None:
    tok = ggtok.load(LLAMA3)
    text = "Hi <|eot_id|>\tthere\n\nno-break\u00a0space \x1b[2J\u202e"
    ids = tok.encode(text, add_special=tok.add_bos, parse_special=True)
    shown = run("tokenize", LLAMA3, "--color=always", "--stdin", stdin=text.encode()).out.decode()
    marks = MARKS.findall(shown)
    # Adjacent tokens differ in colour, and special tokens have a colour that no other tokens have.
    lines = [tok.token_to_piece(id).split(b"\n") for id in ids]
    expected = [id for id, parts in zip(ids, lines, strict=True) for part in parts[:-1]]
    expected = [
        id in tok.special_ids
        for id, parts in zip(ids, lines, strict=True)
        for n, part in enumerate(parts)
        if part or n < len(parts) - 1
    ]
    special = {color for color, piece in marks if piece in ("<|begin_of_text|>", "<|eot_id|>")}
    assert len(special) == 1
    assert [color in special for color, _ in marks] == expected and sum(expected) == 2
    assert len({color for color, _ in marks}) == 3
    plain = MARKS.sub(r"\2", shown)
    assert plain.startswith("<|begin_of_text|>Hi·<|eot_id|>→there↵\n↵\nno-break")
    assert r"\x1b[2J" in plain and "\x1b" not in plain and "\u202e" not in plain
    assert "\u00a0" not in plain and plain.endswith("\n")


def test_two_tokens_of_one_color_never_meet(run) -> None:
    shown = run("tokenize", BPE, "a b c d e f g", "--color", "always").out.decode()
    colors = [color for color, _ in MARKS.findall(shown)]
    assert len(colors) > 6 and all(a != b for a, b in itertools.pairwise(colors))


def test_characters_of_several_tokens(run) -> None:
    shown = run("tokenize", BPE, "\U0001fae8", "--color", "always").out.decode()
    assert MARKS.sub(r"\2", shown) == r"\xf0\x9f\xab\xa8" + "\n"


def test_color_where_nothing_is_shown(run) -> None:
    for form in ["--ids"], ["--json"], ["--offsets"]:
        plain = run("tokenize", BPE, "hi", *form).out
        assert run("tokenize", BPE, "hi", *form, "--color", "always").out == plain
    assert run("tokenize", BPE, "", "--color", "always").out == b""
    counted = run("tokenize", BPE, "a\n", "--color", "always", "--show-count", "-e").out
    assert counted.endswith("↵\x1b[0m\nTotal number of tokens: 2\n".encode())


def test_color_takes_no_word_that_is_not_its_own(run) -> None:
    plain = run("tokenize", BPE, "hi").out
    for argv in (["--color", BPE, "hi"], [BPE, "hi", "--color"], [BPE, "--color", "never", "hi"]):
        assert run("tokenize", *argv).out == plain
    assert run("tokenize", BPE, "--", "--color").status == 0
    assert run("tokenize", BPE, "hi", "--color=red").status == 2


@posix
def test_color_only_on_a_terminal_and_never_against_no_color(tmp_path: Path) -> None:
    argv = [*COMMAND, "tokenize", BPE, "--stdin", "--color"]
    shown = on_terminal(argv, tmp_path, stdin=b"hi there", columns=5, NO_COLOR="")
    assert MARKS.sub(r"\2", shown.decode()) == "hi·there\n"
    for env in {"NO_COLOR": "1"}, {"NO_COLOR": "", "TERM": "dumb"}:
        assert b"\x1b" not in on_terminal(argv, tmp_path, stdin=b"hi there", **env)
    assert b"\x1b" not in spawn(argv[3:], tmp_path, b"hi", NO_COLOR="").stdout
    always = [*argv[3:-1], "--color=always"]
    latin = {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C", "NO_COLOR": "1"}
    assert "·".encode() in spawn(always, tmp_path, b"a b", **latin).stdout


# ---- remote models ----


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["-hf", "user/repo"], "hf://user/repo"),
        (["-hfr", "user/repo:Q8_0"], "hf://user/repo:Q8_0"),
        (["--hf-repo", "user/repo:Q8_0", "-hff", "a/b.gguf"], "hf://user/repo/a/b.gguf"),
        (["-mu", "https://h/m.gguf"], "https://h/m.gguf"),
        (["--model-url", "https://h/m.gguf", "--offline"], "https://h/m.gguf"),
    ],
)
def test_names_of_models(
    run, argv: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names in llama-tokenize's options never refer to local files."""
    from ggtok.sources import timeouts

    asked = []

    def find(name: str) -> None:
        asked.append((name, timeouts.offline_reason() is not None))

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("ggtok.sources.find_model", find)
    monkeypatch.setenv("GGTOK_MODEL", BPE)
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "repo").write_bytes(Path(BPE).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert run("tokenize", *argv, "hi").status == 2
    assert asked == [(name, "--offline" in argv)] and timeouts.offline_reason() is None


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["-hff", "a.gguf"], "--hf-file needs --hf-repo"),
        (["-hf", "a/b", "-m", BPE], "two models: -m and --hf-repo exclude each other"),
        (["-hf", "a/b", "-mu", "https://h/m"], "--hf-repo and --model-url exclude each other"),
        (["-mu", "m.gguf"], "--model-url needs an http(s) address, not 'm.gguf'"),
        (["-hf", "a"], "hf://a: not the name of a file or model in a repository"),
    ],
)
def test_malformed_names_of_models(run, argv: list[str], message: str) -> None:
    result = run("tokenize", *argv, "hi")
    assert (result.status, result.out, len(result.errors)) == (2, b"", 1)
    assert message in result.errors[0]


def test_offline_asks_no_server(tmp_path: Path) -> None:
    env = {"HF_HUB_CACHE": str(tmp_path), "GGTOK_CACHE": str(tmp_path / "c")}
    env |= {"HF_ENDPOINT": "http://127.0.0.1:9"}
    for argv in ["-hf", "user/repo"], ["-mu", "https://127.0.0.1:9/m.gguf"]:
        done = spawn(["tokenize", *argv, "--offline", "hi"], tmp_path, **env)
        assert done.returncode == 2 and b"--offline is given: leave it out" in done.stderr


# ---- how commands find the model ----


@pytest.mark.parametrize(
    "argv",
    [
        ["tokenize", "hi"],
        ["detokenize", "71"],
        ["chat", "messages.json"],
        ["truncate", "-n", "9", "text"],
        ["chunks", "-n", "9", "text"],
        ["count", "text"],
        ["explain", "hi"],
        ["merges", "71"],
        ["encode", "text", "-o", "out", "--restart"],
        ["inspect"],
    ],
    ids=lambda argv: argv[0],
)
def test_every_command_takes_the_model_alike(
    run, argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GGTOK_MODEL", raising=False)
    (tmp_path / "text").write_text("some text")
    (tmp_path / "messages.json").write_text('[{"role": "user", "content": "hi"}]')
    (tmp_path / "model.gguf").write_bytes(Path(SPM).read_bytes())
    (tmp_path / "blob").write_bytes(Path(SPM).read_bytes())  # a file without an extension

    def refused(name: str) -> None:
        raise AssertionError(f"{name} was asked of a server")

    command, *rest = argv
    expected = run(command, "-m", "model.gguf", *rest)
    assert expected.status == 0
    assert run(command, "model.gguf", *rest).out == expected.out
    if command != "inspect":
        shown = b" ".join(run(command, "--help").out.split())
        assert b" [MODEL] " in shown and b"or use -m MODEL, or set GGTOK_MODEL" in shown
        assert run(command, "blob", *rest).out == expected.out
        monkeypatch.setattr("ggtok.sources.find_model", refused)
        for first, error in (
            ("user/repo", "no model: "),
            ("missing.gguf", "missing.gguf: no such file"),
            ("", "no model: "),
            ("text", "no model: "),
        ):
            result = run(command, first, *rest)
            assert result.status == 2 and result.errors[0].startswith(f"ggtok: error: {error}")
        assert "hf://user/repo" in run(command, "user/repo", *rest).errors[0]
    monkeypatch.setenv("GGTOK_MODEL", "model.gguf")
    assert run(*argv).out == expected.out
    monkeypatch.setenv("GGTOK_MODEL", BPE)
    assert run(command, "-m", "model.gguf", *rest).out == expected.out
    assert run(command, "model.gguf", *rest).out == expected.out
    two = run(command, "-m", BPE, "model.gguf", *rest)
    assert two.errors == [f"ggtok: error: two models, {BPE} and model.gguf: give one of them"]


# ---- help ----


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_help_has_examples_and_exit_statuses(run, name: str) -> None:
    shown = run(name, "--help").out.decode()
    assert "examples:\n  " in shown
    status = shown[shown.index("exit status:\n") :].splitlines()
    assert status[1] == "  0  success" and status[-1].startswith("  2  an error")
    finding = {"inspect", "encode", "count", "diff", "convert", "doctor", "edit"}
    finding |= {"parity", "prompts"}
    assert (len(status) == 4) == (name in finding), status
