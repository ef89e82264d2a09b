"""Parsing of the command line: options and their values, the model, paths in the home folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.command import BPE, LLAMA3, SPM

# ---- values of options ----


@pytest.mark.parametrize("text", ["-x", "--ids", "--", "-m", "-", "-5", "a=b", ""])
def test_an_option_takes_the_next_word_whatever_it_is(run, text: str) -> None:
    expected = run("tokenize", BPE, f"--prompt={text}", "--json")
    assert expected.status == 0
    for argv in ["-p", text, BPE], [BPE, "-p", text], ["-m", BPE, "--prompt", text]:
        assert run("tokenize", "--json", *argv).out == expected.out


def test_values_that_begin_with_a_dash(run, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("Hello - there - and here")
    chunks = run("chunks", LLAMA3, "-n", "6", "--at", "- ", "--json", str(path))
    assert chunks.out == run("chunks", LLAMA3, "-n", "6", "--at=- ", "--json", str(path)).out
    assert chunks.status == 0
    assert run("explain", BPE, "-p", "-x").out == run("explain", BPE, "--", "-x").out
    assert run("inspect", BPE, "--token", "-").status == 0
    missing = run("tokenize", BPE, "-p")
    assert (missing.status, len(missing.errors)) == (2, 1)
    assert "-p/--prompt needs a value" in missing.errors[0]


def test_a_text_that_looks_like_options(run) -> None:
    for command in "tokenize", "explain", "merges":
        result = run(command, BPE, "-hello")
        advice = "if it is not an option, write -- before it: -- -hello"
        assert result.errors == [
            f"ggtok: error: unknown option -hello; {advice} (try 'ggtok {command} --help')"
        ]
    assert run("tokenize", BPE, "--", "-hello").out == run("tokenize", BPE, "-p", "-hello").out
    assert run("tokenize", "-qe", BPE, "a b").out == run("tokenize", BPE, "a b").out != b""
    assert run("detokenize", BPE, "-5").errors == [
        "ggtok: error: no token -5: the ids are 0 to 756"
    ]


def test_messages_name_both_forms_of_an_option(run, tmp_path: Path) -> None:
    train = ["train", str(tmp_path / "text"), "-o", str(tmp_path / "out.gguf")]
    (tmp_path / "text").write_text("some text")
    for given, message in (
        (["-n", "x"], "-n/--vocab-size must be a number, not 'x'"),
        (
            ["--vocab-size", "3"],
            "vocab_size (--vocab-size) is 3, but special tokens and alphabet alone",
        ),
        (["-n", "-1"], "vocab_size (--vocab-size) must be from 1 to "),
        ([], "no vocabulary size: give -n N (--vocab-size N)"),
    ):
        assert message in run(*train, *given).errors[0]


# ---- the model ----


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the list of names that were looked up in sources of models."""
    asked: list[str] = []
    monkeypatch.setattr("ggtok.sources.find_model", asked.append)
    return asked


@pytest.mark.parametrize("command", ["tokenize", "explain", "merges"])
def test_a_text_is_not_a_name_if_there_is_a_model(
    run, command: str, refused: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text may look like a model's name. If the model is given in another way, no server is
    contacted."""
    text = ["--text"] if command == "merges" else []
    for name in "https://host/page", "hf://user/repo", "huggingface.co/user/repo":
        assert "two models" not in str(run(command, "-m", BPE, name, *text).errors)
        monkeypatch.setenv("GGTOK_MODEL", BPE)
        run(command, name, *text)
        assert refused == []
        # If a text follows, the argument is the model.
        run(command, name, "a", *text)
        assert refused.pop() == name
        monkeypatch.delenv("GGTOK_MODEL")
        two = run(command, "-m", BPE, name, "a", *text)
        assert two.errors == [f"ggtok: error: two models, {BPE} and {name}: give one of them"]


def test_two_models(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for argv in (
        ["inspect", "-m", BPE, SPM],
        ["doctor", "-m", BPE, SPM],
        ["parity", "-m", BPE, SPM],
        ["extract", "-m", BPE, SPM, "out.gguf"],
        ["count", "-m", BPE, SPM, "a"],
        ["tokenize", "-m", BPE, SPM],
    ):
        result = run(*argv)
        assert result.errors == [f"ggtok: error: two models, {BPE} and {SPM}: give one of them"]
    two = run("tokenize", "-hf", "a/b", SPM, "x")
    assert two.errors == [f"ggtok: error: two models, hf://a/b and {SPM}: give one of them"]


# ---- the home folder ----


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(tmp_path)
    shutil.copy(BPE, home / "m.gguf")
    (home / "text").write_text("some text")
    (home / "messages.json").write_text('[{"role": "user", "content": "hi"}]')
    (home / "t.jinja").write_text("{{ messages[0].content }}")
    return home


@pytest.mark.parametrize(
    "argv",
    [
        ["tokenize", "~/m.gguf", "--file=~/text"],
        ["tokenize", "-m", "~/m.gguf", "~"],
        ["tokenize", "--model=~/m.gguf", "~/text"],  # here, "~/text" is the text itself
        ["count", "~/m.gguf", "~/text", "--json"],
        ["truncate", "-m~/m.gguf", "-n", "2", "~/text"],
        ["chunks", "--model=~/m.gguf", "-n", "2", "~/text"],
        ["detokenize", "~/m.gguf", "71"],
        ["chat", "~/m.gguf", "~/messages.json", "--template=~/t.jinja"],
        ["inspect", "~/m.gguf"],
        ["diff", "~/m.gguf", "~/m.gguf"],
        ["list", "~"],
        ["export", "~/m.gguf", "--to=~/out.gguf"],
        ["extract", "~/m.gguf", "~/out.gguf"],
        ["encode", "~/m.gguf", "~/text", "--output=~/ids"],
    ],
    ids=" ".join,
)
def test_the_home_folder(run, home: Path, argv: list[str]) -> None:
    text = {"~", "~/text"} if argv[0] == "tokenize" else set()
    whole = [w if w in text else w.replace("~", str(home)) for w in argv]
    expected = run(*whole)
    for made in home.glob("out.gguf"), home.glob("ids*"):
        for path in made:
            path.unlink()
    result = run(*argv)
    assert (result.status, result.out, result.errors) == (0, expected.out, [])
    assert os.listdir(home.parent) == ["home"]


def test_the_home_folder_in_the_environment(
    run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run("inspect", str(home / "m.gguf"))
    monkeypatch.setenv("GGTOK_MODEL", "~/m.gguf")
    assert run("inspect").out == expected.out
    assert run("tokenize", "~", "--ids").status == 0


def test_a_file_of_this_name_comes_first(run, home: Path) -> None:
    Path("~").mkdir()
    Path("~", "text").write_text("other")
    assert run("tokenize", BPE, "-f", "~/text").out == run("tokenize", BPE, "other").out
