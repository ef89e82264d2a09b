"""The command in a separate process: pipes, closed descriptors, signals, locales, terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ggtok
from ggtok import cli
from tests.cli.command import BPE, COMMAND, QWEN2, SPM, spawn
from tests.cli.terminal import on_terminal
from tests.support.waits import LIMIT

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells, signals and terminals")


def shell(line: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a line in a shell in which ``ggtok`` is defined."""
    script = f'ggtok() {{ "$PYTHON" -m ggtok "$@"; }}; {line}'
    files = {"PYTHON": sys.executable, "BPE": BPE, "SPM": SPM}
    return subprocess.run(
        ["sh", "-c", script], capture_output=True, cwd=cwd, env={**os.environ, **files, **env}
    )


IDS = b"[71, 72]\n"  # tokens of "hi"


@posix
@pytest.mark.parametrize(
    ("line", "status", "out", "err"),
    [
        # A stream that the command doesn't need may be closed.
        ('ggtok tokenize "$BPE" hi --ids <&-', 0, IDS, b""),
        ('ggtok tokenize "$BPE" hi --ids 2>&-', 0, IDS, b""),
        ('ggtok tokenize "$BPE" hi --ids <&- 2>&-', 0, IDS, b""),
        ('ggtok detokenize "$BPE" "[]" >&-', 0, b"", b""),
        # If the command needs the stream, the error names it.
        ('ggtok tokenize "$BPE" --stdin <&-', 2, b"", b"standard input is closed"),
        ('ggtok tokenize "$BPE" -f - <&-', 2, b"", b"standard input is closed"),
        ('ggtok detokenize "$BPE" <&-', 2, b"", b"standard input is closed"),
        ('ggtok chat "$SPM" <&-', 2, b"", b"standard input is closed"),
        ('ggtok tokenize "$BPE" hi >&-', 2, b"", b"standard output is closed"),
        ('ggtok inspect "$BPE" --json >&-', 2, b"", b"standard output is closed"),
        ("ggtok --help >&-", 2, b"", b"standard output is closed"),
        ('ggtok tokenize "$BPE" hi >&- 2>&-', 2, b"", b""),
        ('ggtok tokenize "$BPE" hi <&- >&- 2>&-', 2, b"", b""),
        ("ggtok nothing 2>&-", 2, b"", b""),
    ],
)
def test_closed_descriptors(line: str, status: int, out: bytes, err: bytes, tmp_path: Path) -> None:
    done = shell(line, tmp_path)
    expected = b"ggtok: error: %b\n" % err if err else b""
    assert (done.returncode, done.stdout, done.stderr) == (status, out, expected)


@posix
def test_closed_descriptors_go_to_no_other_file(tmp_path: Path) -> None:
    """If standard error is closed, a file must not be opened as descriptor 2, or it would receive
    messages."""
    code = (
        "import os, sys; from ggtok import cli; sys.argv = ['ggtok', 'cache', 'ls']; "
        "sys.exit = lambda status: print(os.open(os.devnull, os.O_RDONLY)); cli.entry_point()"
    )
    done = shell(f'"$PYTHON" -c "{code}" <&- 2>&-', tmp_path, GGTOK_CACHE=str(tmp_path))
    assert int(done.stdout.splitlines()[-1]) > 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ['tokenize "$BPE" hi', 'inspect "$BPE"', "--help"])
def test_full_disk(command: str, unbuffered: str, tmp_path: Path) -> None:
    done = shell(f"ggtok {command} >/dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    message = b"ggtok: error: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, message)
    assert shell(f"ggtok nothing {command} 2>/dev/full", tmp_path).returncode == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_large_output_is_whole(tmp_path: Path, unbuffered: str) -> None:
    (tmp_path / "text").write_bytes(b"word " * 100000)
    argv = ["tokenize", BPE, "-f", str(tmp_path / "text"), "--ids"]
    done = spawn(argv, tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert json.loads(done.stdout) == ggtok.load(BPE).encode("word " * 100000)


@posix
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_broken_pipe_is_quiet(tmp_path: Path, unbuffered: str) -> None:
    (tmp_path / "text").write_bytes(b"word " * 100000)
    process = subprocess.Popen(
        [*COMMAND, "tokenize", BPE, "-f", "text"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@posix
@pytest.mark.parametrize(
    "command", ["--help", "tokenize --help", "--version", "inspect --pre-names"]
)
def test_help_into_a_closed_pipe_is_quiet(command: str, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, *command.split()], stdout=write, stderr=subprocess.PIPE, cwd=tmp_path
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@posix
@pytest.mark.parametrize("form", ["--ids", "--no-escape"])
def test_input_without_end(form: str, tmp_path: Path) -> None:
    """Ids are written as the text arrives, until the reader closes the pipe."""
    done = shell(f'yes "some text" | ggtok tokenize "$BPE" -f - {form} | head -c 30', tmp_path)
    whole = spawn(["tokenize", BPE, "some text\n" * 10, form, "--no-escape"], tmp_path)
    assert (done.stdout, done.stderr) == (whole.stdout[:30], b"")


@posix
def test_interrupt_is_quiet(tmp_path: Path) -> None:
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # children inherit whether SIGINT is ignored
    process = subprocess.Popen(
        [*COMMAND, "tokenize", BPE, "--stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    signal.signal(signal.SIGINT, before)
    assert process.stdin is not None
    # Write more than a pipe holds, so that write returns after the command has started to read.
    process.stdin.write(b"x" * 200000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_ctrl_c_before_the_command_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    with pytest.raises(SystemExit) as caught:
        cli.entry_point()
    assert caught.value.code == 130


# ---- locales ----

LOCALES = {
    "ASCII": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "Latin-1": {"PYTHONIOENCODING": "latin-1"},
}
TEXT = "é你\U0001f600"


@posix
@pytest.mark.parametrize("locale", LOCALES)
def test_text_is_utf8_in_any_locale(locale: str, tmp_path: Path) -> None:
    env = LOCALES[locale]
    argument = spawn(["tokenize", BPE, TEXT], tmp_path, **env)
    standard_input = spawn(["tokenize", BPE, "--stdin"], tmp_path, TEXT.encode(), **env)
    assert argument.stdout == standard_input.stdout
    pieces = [line[11:-1] for line in argument.stdout.splitlines()]
    assert b"".join(pieces) == TEXT.encode()


@posix
@pytest.mark.parametrize("locale", LOCALES)
def test_names_of_files_in_any_locale(locale: str, tmp_path: Path) -> None:
    (tmp_path / "é.txt").write_text("hi")
    done = spawn(["tokenize", BPE, "--ids", "-f", "é.txt"], tmp_path, **LOCALES[locale])
    assert (done.returncode, done.stdout, done.stderr) == (0, IDS, b"")
    done = spawn(["tokenize", BPE, "-f", "ü.txt"], tmp_path, **LOCALES[locale])
    assert done.returncode == 2
    assert done.stderr.endswith(b".txt: No such file or directory\n")
    assert len(done.stderr.splitlines()) == 1


# ---- terminals ----


EVIL = "\x1b]0;title\x07\x9bred\ttab\r"  # an escape sequence that sets the window's title


@posix
def test_a_terminal_gets_no_control_characters(tmp_path: Path) -> None:
    tok = ggtok.load(SPM)
    ids = [str(id) for id in tok.encode(EVIL, add_special=False)]
    shown = rb"\x1b]0;title\x07\x9bred" + b"\ttab" + rb"\r"
    assert on_terminal([*COMMAND, "detokenize", SPM, *ids], tmp_path) == shown + b"\n"
    for argv in ["tokenize", SPM, EVIL], ["tokenize", SPM, EVIL, "--json"]:
        written = on_terminal([*COMMAND, *argv], tmp_path).decode()
        assert not {"\x1b", "\x07", "\x9b", "\r"} & set(written)
    # A pipe receives the bytes unchanged.
    assert spawn(["detokenize", SPM, *ids], tmp_path).stdout == EVIL.encode()


@posix
def test_standard_input_from_a_terminal_is_announced(tmp_path: Path) -> None:
    written = on_terminal([*COMMAND, "detokenize", BPE], tmp_path, typed=b"71 72\n\x04")
    assert b"ggtok: hint: reading standard input; Ctrl-D ends it\n" in written
    assert written.endswith(b"hi\n")


@pytest.mark.parametrize("columns", ["1", "20", "40", "500"])
@pytest.mark.parametrize(
    "command", ["", "tokenize", "detokenize", "inspect", "chat", "list", "cache"]
)
def test_help_at_any_width(run, command: str, columns: str, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    result = run(*command.split(), "--help")
    assert (result.status, result.errors) == (0, [])
    assert f"usage: ggtok {command}".strip().encode() in result.out
    words = b" ".join(result.out.split())
    assert b"show this help and exit" in words


def test_warnings_are_lines_and_can_be_turned_off(tmp_path: Path) -> None:
    argv = ["tokenize", QWEN2, "hi", "--ids"]
    lines = spawn(argv, tmp_path).stderr.decode().splitlines()
    assert lines and all(line.startswith("ggtok: warning: token ") for line in lines)
    for option in "-q", "--quiet", "--log-disable":
        assert spawn([*argv, option], tmp_path).stderr == b""
    assert spawn(["-q", *argv], tmp_path).stderr == b""
    for setting in "ignore", "ignore::UserWarning":
        assert spawn(argv, tmp_path, PYTHONWARNINGS=setting).stderr == b""
    strict = spawn(argv, tmp_path, PYTHONWARNINGS="error")
    assert (strict.returncode, strict.stdout) == (2, b"")
    assert strict.stderr.startswith(b"ggtok: error: token ")
    assert len(strict.stderr.splitlines()) == 1
    assert spawn([*argv, "-q"], tmp_path, PYTHONWARNINGS="error").returncode == 0


def test_only_the_commands_module_is_imported(tmp_path: Path) -> None:
    """To start quickly, a command imports nothing that only other commands need."""
    code = (
        "import sys; before = set(sys.modules); from ggtok import cli; cli.main(sys.argv[1:]); "
        "print(*sorted(set(sys.modules) - before))"
    )
    argv = [sys.executable, "-c", code, "tokenize", BPE, "hi"]
    done = subprocess.run(argv, capture_output=True, cwd=tmp_path, text=True, check=True)
    modules = done.stdout.splitlines()[-1].split()
    assert "ggtok.cli.tokenize_command" in modules
    others = {"detokenize", "inspect", "chat", "list", "cache"}
    assert not {f"ggtok.cli.{name}_command" for name in others} & set(modules)
    heavy = {"json", "numpy", "dataclasses", "inspect", "tempfile", "ggtok.sources", "jinja2"}
    assert not heavy & set(modules)


@pytest.mark.parametrize(
    "arguments",
    [
        ["tokenize", BPE, "hi"],
        ["count", BPE, "a.txt"],
        ["count", BPE, "-p", "hi"],
        ["count", BPE, "a.jsonl", "--field", "text"],
        ["detokenize", BPE, "1"],
        ["inspect", BPE],
    ],
)
def test_commands_that_do_not_import_numpy(arguments: list[str], tmp_path: Path) -> None:
    """Importing NumPy takes longer than these commands."""
    (tmp_path / "a.txt").write_text("hi\n" * 500_000)
    (tmp_path / "a.jsonl").write_text('{"text": "hi"}\n')
    code = (
        "import sys; from ggtok import cli; status = cli.main(sys.argv[1:]); "
        "print(); print(status, 'numpy' in sys.modules)"
    )
    argv = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, cwd=tmp_path, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False", done.stdout + done.stderr


@posix
@pytest.mark.parametrize(
    ("command", "arguments"), [("detokenize", ["64"]), ("chat", ["--template", "a.jinja"])]
)
def test_text_on_a_terminal_ends_with_a_newline(
    command: str, arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.jinja").write_text("{{ messages[0].content }}")
    argv = [*COMMAND, command, BPE, *arguments]
    messages = b'[{"role": "user", "content": "a"}]'
    assert on_terminal(argv, tmp_path, stdin=messages) == b"a\n"
