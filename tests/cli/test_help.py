"""Help, the version, and suggestions for misspelled words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ggtok
from ggtok.cli import commands
from tests.cli.command import BPE, LLAMA3, QWEN2, SPM
from tests.docs.pages import TEMPLATE
from tests.support.patch import GGUF


def test_help_is_a_command(run) -> None:
    assert run("help").out == run("--help").out != b""
    for name in commands.SUMMARIES:
        assert run("help", name).out == run(name, "--help").out != b""


def test_version(run) -> None:
    version = f"ggtok {ggtok.__version__}\n".encode()
    assert run("-V").out == run("--version").out == run("version").out == version


def test_no_command_shows_the_help(run) -> None:
    assert run().out == run("--help").out != b""
    assert run().status == 0


def test_a_model_before_the_command(run) -> None:
    expected = run("tokenize", BPE, "Hello").out
    assert run("-m", BPE, "tokenize", "Hello").out == expected != b""
    assert run("-q", f"--model={BPE}", "tokenize", "Hello").out == expected
    assert "-m/--model needs a value" in run("-m").errors[0]
    assert "a command is required" in run("-m", BPE).errors[0]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["tokenise"], "unknown command 'tokenise'; did you mean tokenize?"),
        (["tok"], "unknown command 'tok'; did you mean tokenize?"),
        (["decode"], "unknown command 'decode'; did you mean detokenize?"),
        (["compare"], "unknown command 'compare'; did you mean diff?"),
        (["info"], "unknown command 'info'; did you mean inspect?"),
        (["show"], "unknown command 'show'; did you mean inspect?"),
        (["ls"], "unknown command 'ls'; did you mean list?"),
        (["template"], "unknown command 'template'; did you mean chat?"),
        (["help", "cuont"], "COMMAND can't be 'cuont'; did you mean count?"),
        (["--hlep"], "unknown option --hlep; did you mean --help?"),
        (["tokenize", BPE, "x", "--promt=y"], "unknown option --promt; did you mean --prompt?"),
        (["tokenize", BPE, "x", "--show"], "unknown option --show; did you mean --show-count?"),
        (["count", BPE, "x", "--bugdet", "3"], "unknown option --bugdet; did you mean --budget?"),
        (["count", BPE, "x", "--zzz"], "unknown option --zzz (try 'ggtok count --help')"),
        (["count", BPE, "x", "--by", "fodler"], "--by can't be 'fodler'; the choices are ext, dir"),
        (["count", BPE, "x", "--by", "di"], "--by can't be 'di'; did you mean dir?"),
        (["completion", "bash", "zsh"], "unexpected argument: 'zsh'"),
        (["encode", BPE, "Hello"], "; to print the ids of a text, use 'ggtok tokenize'"),
        (["chat", BPE, "Hello"], "Hello: No such file or directory; to pass a message's text, use"),
    ],
)
def test_what_was_meant(run, argv: list[str], message: str) -> None:
    result = run(*argv)
    assert (result.status, result.out, len(result.errors)) == (2, b"", 1)
    assert message in result.errors[0]


def test_encode_of_files_is_no_text(run, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    for path in tmp_path / "a", tmp_path / "*":
        result = run("encode", BPE, str(path))
        assert result.errors == ["ggtok: error: nothing to write: give -o OUT"]


# ---- output of tokenize --json as input ----


@pytest.mark.parametrize("model", [BPE, SPM])
def test_detokenize_reads_what_tokenize_wrote(run, model: str, tmp_path: Path) -> None:
    text = "Hello, \U0001fae8 world"
    for options in [], ["--offsets"]:
        data = run("tokenize", model, "--no-bos", text, "--json", *options).out
        (tmp_path / "ids.json").write_bytes(data)
        assert run("detokenize", model, stdin=data).out.strip() == text.encode()
        shown = run("detokenize", model, "-f", str(tmp_path / "ids.json"))
        assert shown.out.strip() == text.encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"ids": [1, 2', "not valid JSON: "),
        (b'{"tokens": [1]}', "the JSON object has no list of ids under 'ids'"),
        (b'{"ids": [1, true]}', "the JSON object has no list of ids under 'ids'"),
        (b"[[71, 0, 1]]", "each id has offsets: tokenize without --offsets, or with --json"),
        (b'{"ids": [99999]}', "no token 99999: the ids are 0 to "),
    ],
)
def test_what_is_not_a_list_of_ids(run, data: bytes, message: str) -> None:
    result = run("detokenize", BPE, stdin=data)
    assert (result.status, result.out, len(result.errors)) == (2, b"", 1)
    assert message in result.errors[0]


# ---- chat --prompt ----


def test_chat_from_the_command_line(run) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi é"}]
    given = ["chat", QWEN2, "--prompt", "Hi é"]
    assert run(*given).out == run("chat", QWEN2, stdin=json.dumps(messages[1:]).encode()).out
    both = run("chat", QWEN2, stdin=json.dumps(messages).encode()).out
    assert run(*given, "--system", "Be brief.").out == both
    ids = run("chat", QWEN2, "-p", "Hi é", "--ids").out
    assert json.loads(ids) == ggtok.load(QWEN2).encode_chat(messages[1:])


def test_chat_without_thinking(run, tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("{{ enable_thinking }}|{{ x }}|{{ messages[0].content }}")
    argv = ["chat", LLAMA3, "--template", str(tmp_path / "t.jinja"), "--no-thinking"]
    assert run(*argv, "-p", "hi").out == b"False||hi"
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "chat_template_kwargs": {"enable_thinking": True, "x": 1},
    }
    for like in [], ["--like", "transformers"]:
        assert run(*argv, *like, stdin=json.dumps(body).encode()).out == b"False|1|hi"


def test_errors_of_templates_name_them(run, tmp_path: Path) -> None:
    bad, gguf = tmp_path / "bad.jinja", GGUF.read(BPE)
    bad.write_text("\n{% if %}")
    (tmp_path / "messages.json").write_text('[{"role": "user", "content": "Hi"}]')
    gguf.set("tokenizer.chat_template", "{{ raise_exception('never') }}")
    gguf.set("tokenizer.chat_template.other", "{{ raise_exception('no tools') }}")
    model = str(gguf.write(tmp_path / "chat.gguf"))
    for template, name in (
        ([], f"{model}: chat template: line 1: "),
        (["--template", "other"], f"{model}: chat template 'other': line 1: "),
        (["--template", str(bad)], f"{bad}: line 2: "),
    ):
        for argv in (
            ["chat", model, "-p", "Hi"],
            ["chat", model, "-p", "Hi", "--like", "transformers"],
            ["count", model, "--chat", str(tmp_path / "messages.json")],
        ):
            result = run(*argv, *template)
            assert result.status == 2, argv
            assert result.errors[0].startswith(f"ggtok: error: {name}"), result.errors


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["-p", "a", "messages.json"],
            "messages are given both in messages.json and with --prompt",
        ),
        (["--system", "a"], "--system has no effect without --prompt"),
    ],
)
def test_contradictory_messages(run, argv: list[str], message: str) -> None:
    result = run("chat", BPE, *argv)
    assert (result.status, len(result.errors)) == (2, 1) and message in result.errors[0]


def test_tools_may_come_from_standard_input_beside_a_prompt(run, tmp_path: Path) -> None:
    gguf = GGUF.read(BPE)
    gguf.set("tokenizer.chat_template", TEMPLATE)
    gguf.write(tmp_path / "chat.gguf")
    result = run("chat", str(tmp_path / "chat.gguf"), "-p", "a", "--tools", "-", stdin=b"[]")
    assert (result.status, result.errors) == (0, [])
