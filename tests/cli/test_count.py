"""``ggtok count``: the tokens of files, folders and chats."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import ggtok
from fixtures.build import CHAT as CHAT_PATH
from ggtok.cli import counting, progress
from tests.cli.command import BPE, COMMAND, LLAMA3, SPM, spawn
from tests.docs.pages import MESSAGES, TEMPLATE
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture
from tests.support.waits import LIMIT

CHAT = str(CHAT_PATH)
PART = 1 << 12
LINE = "A line of text, <|endoftext|> é日本 \U0001fae8 and 12345 so on.\n".encode()

posix = pytest.mark.skipif(
    sys.platform == "win32", reason="POSIX shells, names, signals and terminals"
)


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GGTOK_MODEL", raising=False)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a folder with ignored, hidden, binary and special files, and makes it the current
    folder."""
    root = tmp_path / "root"
    files = {
        "a.py": b"print('hello')\n",
        "docs/long.md": b"word " * 100,
        "docs/deep/er/b.md": b"words\n",
        "docs/deep/er/empty": b"",
        ".hidden/c.txt": b"hidden",
        "image.png": b"\x89PNG\0\0",
        "build/out.txt": b"built",
        "trace.log": b"log",
        ".gitignore": b"build/\n*.log\n",
        ".git/config": b"[core]",
        "docs/.gitignore": b"!kept.log\n",
        "docs/kept.log": b"kept",
    }
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "link.md").symlink_to("a.py")
    (root / "loop").symlink_to(".")
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)
    return root


def listed(result: object) -> dict[str, int]:
    """Returns the number of tokens by path from the output of --json."""
    return {f["path"]: f["tokens"] for f in json.loads(result.out)["files"]}  # type: ignore[attr-defined]


# ---- counts ----


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 10 * PART, 64 * PART + 17])
@pytest.mark.parametrize("model", [BPE, SPM, str(fixture("ugm")), str(fixture("test"))])
@pytest.mark.parametrize("small", [0, 1 << 30])
def test_counts_are_those_of_the_whole(
    run, model: str, size: int, small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts don't depend on how a file is split into tasks. (For the fixture `test`, files can't
    be split.)"""
    monkeypatch.setattr(counting, "PART", PART)
    monkeypatch.setattr(counting, "_SMALL", small)
    monkeypatch.setattr(counting, "_LONG", 20 * PART)
    monkeypatch.setattr("ggtok.cli.input_texts.BLOCK", PART)
    data = (LINE * (size // len(LINE) + 1))[:size]
    path = tmp_path / "text"
    path.write_bytes(data)
    tok = ggtok.load(model)
    for options, how in (
        ([], {"add_special": False}),
        (["--special"], {}),
        (["--parse-special"], {"add_special": False, "parse_special": True}),
    ):
        expected = tok.count(data, **how)
        assert run("count", model, str(path), "--total", *options).out == b"%d\n" % expected
        result = run("count", model, "-", *options, stdin=data)
        assert result.out == b"%d  -\n" % expected


def test_many_files(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of various sizes are listed in order with their counts."""
    monkeypatch.setattr(counting, "PART", PART)
    monkeypatch.setattr(counting, "_SMALL", 4 * PART)
    monkeypatch.setattr("ggtok.cli.input_texts.BLOCK", PART)
    rng = random.Random(21)
    tok, expected = ggtok.load(LLAMA3), {}
    for i in range(300):
        data = bytes(rng.choices(LINE, k=rng.choice([0, 10, 1000, 1000, 9 * PART])))
        path = tmp_path / f"{i:03}"
        path.write_bytes(data)
        expected[str(path)] = tok.count(data, add_special=False)
    found = listed(run("count", LLAMA3, str(tmp_path), "--json"))
    assert found == expected and list(found) == sorted(expected)
    names = [*expected][::-1]
    result = run("count", LLAMA3, "--json", "--files0-from", "-", stdin="\0".join(names).encode())
    assert list(listed(result)) == names
    assert json.loads(result.out)["total"] == sum(expected.values())


def test_paths_may_be_globs(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for name in "b.txt", "a.txt", "d/c.txt", "d.md", "[x].txt":
        (tmp_path / name).write_text(name)
    for pattern, names in (
        ("[ab].txt", ["a.txt", "b.txt"]),
        ("**/c.txt", [str(Path("d", "c.txt"))]),
        ("d*", ["d/c.txt", "d.md"]),
        ("[x].txt", ["[x].txt"]),  # the file, not the pattern
    ):
        assert list(listed(run("count", BPE, pattern, "--json"))) == names
    assert run("count", BPE, "*.c").errors == ["ggtok: error: *.c: No such file or directory"]


def test_tables(run, tmp_path: Path) -> None:
    table, binary = tmp_path / "a.parquet", tmp_path / "binary"
    table.write_bytes(b"PAR1" + bytes(10))
    binary.write_bytes(b"\0")
    for options in [], ["--field", "text"]:
        result = run("count", BPE, str(table), *options)
        assert result.warnings == [
            f"ggtok: warning: 1 Parquet or Arrow file not counted: {table} ('ggtok encode' reads "
            "them)"
        ]
    table.write_bytes(b"ARROW1\0\0")
    both = run("count", BPE, str(table), str(binary), "--json")
    assert len(both.warnings) == 2
    assert json.loads(both.out)["binary"] == [str(table), str(binary)]


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfBOM", b"\xff\xfe", b"\r\n", bytes(range(1, 256))])
def test_any_bytes(run, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    n = ggtok.load(BPE).count(data, add_special=False)
    assert run("count", BPE, str(path)).out == f"{n}  {path}\n".encode()


def test_binary_files(run, tmp_path: Path) -> None:
    path, text = tmp_path / "binary", tmp_path / "text"
    path.write_bytes(b"a\0b")
    text.write_bytes(b"a" * 9000 + b"\0")  # the NUL is beyond the bytes that git checks
    result = run("count", BPE, str(path), str(text), "--json")
    assert list(listed(result)) == [str(text)]
    assert json.loads(result.out)["binary"] == [str(path)]
    assert result.warnings == [
        f"ggtok: warning: 1 binary file not counted: {path} (--binary counts them)"
    ]
    assert result.status == 0
    n = ggtok.load(BPE).count(b"a\0b", add_special=False)
    assert run("count", BPE, str(path), "--binary").out == f"{n}  {path}\n".encode()
    assert run("count", BPE, "-", stdin=b"a\0b").out == f"{n}  -\n".encode()
    big = tmp_path / "big"
    big.write_bytes(b"\0" * (5 << 20))
    many = [str(big), str(path), *(str(tmp_path / f"{i}") for i in range(2))]
    for name in many[2:]:
        Path(name).write_bytes(b"\0")
    result = run("count", BPE, *many)
    assert result.out == b"0  total\n"
    assert result.warnings[0].startswith("ggtok: warning: 4 binary files not counted: ")


# ---- folders ----


def test_nested_and_several_fields(run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"m": {"t": "Hello"}, "u": "world"}\n')
    result = run("count", BPE, str(tmp_path / "a.jsonl"), "--field", "m.t", "--field", "u")
    n = ggtok.load(BPE).count("Hello\n\nworld", add_special=False)
    assert result.out.split()[0] == str(n).encode()


def test_kind(run, tmp_path: Path) -> None:
    (tmp_path / "a.data").write_text('{"text": "Hello"}\n')
    tok = ggtok.load(BPE)
    path = str(tmp_path / "a.data")
    for kind, text in (("jsonl", "Hello"), ("text", '{"text": "Hello"}\n')):
        n = tok.count(text, add_special=False)
        assert run("count", BPE, path, "--kind", kind, "--total").out == f"{n}\n".encode()
    assert run("count", BPE, path, "--kind", "text", "--field", "x").status == 2


def test_each_file_is_counted_once(run, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "below").mkdir(parents=True)
    for path in (folder / "a.txt", folder / "below" / "b.txt"):
        path.write_text("Hello")
    (tmp_path / "link").symlink_to("in/a.txt")
    words = [folder, folder / "below", folder / "a.txt", f"{folder}/./a.txt", tmp_path / "link"]
    result = run("count", BPE, *map(str, words), "--json")
    assert list(listed(result)) == [str(folder / "a.txt"), str(folder / "below" / "b.txt")]


def test_ignore_rules(run, tree: Path) -> None:
    counted = ["a.py", "docs/.gitignore", "docs/deep/er/b.md", "docs/deep/er/empty"]
    counted += ["docs/kept.log", "docs/long.md", ".gitignore", ".hidden/c.txt"]
    assert listed(run("count", LLAMA3, ".", "--json")).keys() == {*counted}
    every = run("count", LLAMA3, ".", "--json", "--no-ignore")
    assert {os.path.normpath(p) for p in listed(every)} == {*counted, "build/out.txt", "trace.log"}
    assert json.loads(every.out)["binary"] == ["./image.png"]
    # Files given by name are counted even if they are links or ignored.
    named = listed(run("count", LLAMA3, "trace.log", "link.md", "build", "--json"))
    assert [*named] == ["trace.log", "link.md", "build/out.txt"]


def test_globs(run, tree: Path) -> None:
    def files(*options: str) -> set[str]:
        return {os.path.normpath(p) for p in listed(run("count", LLAMA3, ".", "--json", *options))}

    assert files("--include", "*.md") == {"docs/long.md", "docs/deep/er/b.md"}
    assert files("--include", "*.md", "--include", "*.py", "--exclude", "deep") == {
        *("docs/long.md", "a.py")
    }
    assert files("--include", "docs/*.md", "--exclude", "docs/deep/*") == {"docs/long.md"}
    assert files("--no-ignore", "--include", "*.txt", "--exclude", ".*") == {"build/out.txt"}
    nothing = run("count", LLAMA3, ".", "--include", "*.rs")
    assert (nothing.status, nothing.out) == (0, b"0  total\n")
    assert "no files" in nothing.warnings[0]


@posix
def test_names_that_are_not_utf8(run, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\n.txt"
    with open(path, "wb") as file:
        file.write(b"hi")
    result = run("count", LLAMA3, str(tmp_path), "--no-ignore")
    assert result.out == rf"2  {tmp_path}/\xff\n.txt".encode() + b"\n"
    result = run("count", LLAMA3, str(tmp_path), "--no-ignore", "--csv")
    assert path in result.out
    assert run("count", LLAMA3, str(tmp_path), "--no-ignore", "--json").status == 0
    result = run("count", LLAMA3, "--files0-from", "-", stdin=path + b"\0")
    assert result.status == 0


@posix
def test_ignore_rules_and_names_that_are_not_utf8(run, tmp_path: Path) -> None:
    """Ignore rules can't match such files: they are counted, with a warning."""
    root = os.fsencode(tmp_path)
    names = (b"a.txt", b"b.log", b"\xff.txt", b"\xff.log", b"s\xff/c.txt", b".git/x\xff")
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"hi")
    (tmp_path / ".gitignore").write_text("*.log\n")
    os.symlink(b"a.txt", root + b"/link\xff")
    result = run("count", LLAMA3, str(tmp_path), "--csv")
    found = {os.path.relpath(row.split(b",")[0], root) for row in result.out.split(b"\n")[1:-1]}
    assert found == {b".gitignore", b"a.txt", b"\xff.txt", b"\xff.log", b"s\xff/c.txt"}
    warning = "3 files with a path that isn't UTF-8: counted, whatever .gitignore says"
    assert result.warnings == [f"ggtok: warning: {warning}"]


@posix
def test_unreadable_files(run, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unreadable files are reported; the others are counted."""
    result = run("count", LLAMA3, "a.py", "missing", "/proc/self/mem", "docs/kept.log", "--json")
    assert result.status == 2
    assert [*listed(result)] == ["a.py", "docs/kept.log"]
    assert result.errors == [
        "ggtok: error: missing: No such file or directory",
        "ggtok: error: /proc/self/mem: Input/output error",
    ]
    blocks = counting.input_texts.blocks

    def denied(path: str, **options: bool) -> object:
        if path == "a.py":
            raise PermissionError(13, "Permission denied", path)
        return blocks(path, **options)

    monkeypatch.setattr(counting.input_texts, "blocks", denied)
    result = run("count", LLAMA3, "a.py", "docs/kept.log", "--budget", "0")
    assert result.status == 2
    assert result.errors == ["ggtok: error: a.py: Permission denied"]
    (tree / "bad").mkdir()

    def scandir(path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", scandir)
    for options in [], ["--no-ignore"]:
        result = run("count", LLAMA3, "bad", *options)
        assert (result.status, result.errors) == (2, ["ggtok: error: bad: Permission denied"])


# ---- output formats ----


def test_forms(run, tree: Path) -> None:
    argv = "count", LLAMA3, "a.py", "docs"
    tok = ggtok.load(LLAMA3)
    n = {
        p: tok.count((tree / p).read_bytes(), add_special=False)
        for p in ("a.py", "docs/long.md", "docs/kept.log", "docs/.gitignore", "docs/deep/er/b.md")
    }
    total = sum(n.values())
    lines = run(*argv).out.decode().splitlines()
    assert lines[0].split() == [str(n["a.py"]), "a.py"] and len({len(x.split("  ")) for x in lines})
    assert lines[-1] == f"{total}  total"
    assert run(*argv, "--total").out == b"%d\n" % total
    rows = list(csv.reader(io.StringIO(run(*argv, "--csv").out.decode())))
    assert rows[0] == ["path", "tokens", "bytes"] and ["a.py", str(n["a.py"]), "15"] in rows
    by_ext = run(*argv, "--by", "ext").out.decode().split()
    md = n["docs/long.md"] + n["docs/deep/er/b.md"]
    assert by_ext[:2] == [str(md), ".md"] and by_ext[-2:] == [str(total), "total"]
    assert by_ext[by_ext.index("(none)") - 1] == str(n["docs/.gitignore"])
    by_dir = run(*argv, "--by", "dir").out.decode().split()
    assert by_dir[by_dir.index(".") - 1] == str(n["a.py"])
    assert by_dir[by_dir.index("docs/deep/er") - 1] == str(n["docs/deep/er/b.md"])
    shown = run(*argv, "--tree").out.decode().splitlines()
    names = [line.lstrip(" 0123456789") for line in shown]
    assert names == [
        *("docs/", "deep/er/", "b.md", "empty", ".gitignore", "kept.log", "long.md"),
        *("a.py", "total"),
    ]
    width = len(str(total))
    assert shown[1] == f"{n['docs/deep/er/b.md']:>{width}}    deep/er/"
    assert shown[0] == f"{total - n['a.py']:>{width}}  docs/"
    least = run(*argv, "--min", str(n["docs/long.md"])).out.decode().splitlines()
    assert least == [f"{n['docs/long.md']:>{width}}  docs/long.md", f"{total}  total"]
    least = run(*argv, "--tree", "--min", str(n["docs/long.md"])).out.decode().splitlines()
    assert [line.split()[1] for line in least] == ["docs/", "long.md", "total"]


def test_budget(run, tree: Path) -> None:
    n = int(run("count", LLAMA3, "docs", "--total").out)
    inside, over = (run("count", LLAMA3, "docs", "--budget", str(b)) for b in (n, n - 3))
    assert (inside.status, inside.warnings) == (0, [])
    assert (over.status, over.out) == (1, inside.out)
    assert over.warnings == [f"ggtok: warning: {n} tokens: 3 more than {n - 3}"]
    shown = json.loads(run("count", LLAMA3, "docs", "--budget", "1", "--json").out)
    assert shown["over_budget"] is True


def test_chats(run, tmp_path: Path) -> None:
    gguf = GGUF.read(LLAMA3)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    gguf.set(
        "tokenizer.chat_template",
        "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" + TEMPLATE,
    )
    model = str(gguf.write(tmp_path / "chat.gguf"))
    messages, tools_file = tmp_path / "messages.json", tmp_path / "tools.json"
    messages.write_text(json.dumps(MESSAGES))
    tools_file.write_text(json.dumps(tools))
    tok = ggtok.load(model)
    plain, given = tok.count_chat(MESSAGES), tok.count_chat(MESSAGES, tools=tools)
    assert plain < given
    assert run("count", model, "--chat", str(messages)).out == f"{plain}  {messages}\n".encode()
    result = run("count", model, "--chat", str(messages), "--tools", str(tools_file), "--total")
    assert result.out == b"%d\n" % given
    request = json.dumps({"messages": MESSAGES, "tools": tools}).encode()
    assert run("count", model, "--chat", "-", stdin=request).out == b"%d  -\n" % given
    both = run("count", model, "--chat", str(messages), str(tools_file), "--json")
    assert list(listed(both)) == [str(messages), str(tools_file)]


def test_utf_16(run, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Some text".encode("utf-16"))
    result = run("count", LLAMA3, str(path))
    assert result.warnings == [
        f"ggtok: warning: 1 UTF-16 or UTF-32 file not counted: {path} "
        "('iconv -f UTF-16 -t UTF-8' converts them)"
    ]
    tok = ggtok.load(LLAMA3)
    expected = tok.count(path.read_bytes(), add_special=False)
    assert run("count", LLAMA3, str(path), "--binary", "--total").out == b"%d\n" % expected


@posix
def test_files_that_encode_reads(run, tree: Path) -> None:
    """These options select the files that 'encode' reads, except those that links lead to."""
    encoded = run("encode", LLAMA3, ".", "-o", "o", "--errors", "replace", "--exclude", "*.png")
    assert encoded.status == 0
    manifest = json.loads((tree / "o.manifest.json").read_text())
    for path in tree.glob("o*"):
        path.unlink()
    options = ("--no-ignore", "--exclude", ".*", "--exclude", "*.png", "--json")
    counted = json.loads(run("count", LLAMA3, ".", *options).out)
    paths = {os.path.normpath(file["path"]) for file in counted["files"]}
    sources = {source["path"] for source in manifest["sources"]}
    assert "build/out.txt" in paths and not any(path.startswith(".") for path in paths)
    assert paths == {path for path in sources if not os.path.islink(path)}


def conversations(folder: Path) -> Path:
    """Writes JSON lines of two conversations and two faulty lines."""
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    shared = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
    records = [{"messages": talk}, {"conversations": shared}, {"messages": [{}]}, {"text": ""}]
    path = folder / "talk.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_conversations_in_json_lines(run, tmp_path: Path) -> None:
    """The count is that of the ids that 'encode --chat' writes."""
    path = conversations(tmp_path)
    good = path.read_bytes().split(b"\n")[:2]
    talk = json.loads(good[0])["messages"]
    closed = {"add_generation_prompt": False, "continue_final_message": False}
    n = len(ggtok.load(CHAT).encode_chat(talk, **closed))
    result = run("count", CHAT, "--chat", str(path), "--errors", "skip", "--total")
    assert (result.status, result.out) == (0, b"%d\n" % (2 * n))
    [warning] = result.warnings
    assert warning.endswith("talk.jsonl: 2 faulty conversations skipped")
    [error] = run("count", CHAT, "--chat", str(path)).errors
    assert "talk.jsonl: the line at byte" in error
    both = b"\n".join(good)
    assert run("count", CHAT, "--chat", "-", stdin=both).out == b"%d  -\n" % (2 * n)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(both))
    packed = run("count", CHAT, "--chat", str(tmp_path / "a.json.gz"), "--json")
    assert json.loads(packed.out)["files"][0]["bytes"] == len(both)
    assert json.loads(packed.out)["total"] == 2 * n
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "f"}}]))
    template = "{{ tools | length }}{% for m in messages %}{{ m.content }}{% endfor %}"
    (tmp_path / "t").write_text(template)
    options = ("--tools", str(tools), "--template", str(tmp_path / "t"), "--total")
    n = len(
        ggtok.load(CHAT).encode_chat(
            talk, tools=json.loads(tools.read_text()), template=template, **closed
        )
    )
    assert run("count", CHAT, "--chat", "-", *options, stdin=both).out == b"%d\n" % (2 * n)


def test_errors_and_hints_about_conversations(run, tmp_path: Path) -> None:
    path = conversations(tmp_path)
    [hint] = run("count", CHAT, str(path)).hints
    assert hint.endswith(f"{path} is counted as text; --chat {path} counts its conversations")
    for words in (["count", "--field", "id"], ["count", "--kind", "text"], ["-q", "count"]):
        assert run(*words, "-m", CHAT, str(path)).hints == []
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    assert run("count", CHAT, str(tmp_path / "a.jsonl")).hints == []
    [error] = run("count", CHAT, "--chat", "-", stdin=b'[{"role": "user"}]').errors
    assert error.endswith("standard input: messages[0] has no 'content'")
    done = run("encode", CHAT, str(path), "-o", str(tmp_path / "o"))
    assert "the field 'text' is missing" in done.errors[0]
    assert done.hints[0].endswith("to encode lines that are conversations, use --chat")
    [error] = run("chat", CHAT, str(path)).errors
    assert "talk.jsonl: JSON lines, and this command takes one conversation" in error
    silent = run("chat", CHAT, stdin=b'{"a": 1}')
    assert silent.status == 2 and silent.errors == ["ggtok: error: messages are missing"]
    for data in (b"x", b'{"a": 1}', b'{"a"'):
        assert run("count", CHAT, "--chat", "-", stdin=data).status == 2
    refused = b'[{"role": "user"}]\n[{"role": "user", "content": "x"}]\n'
    [error] = run("count", CHAT, "--chat", "-", stdin=refused).errors
    assert error.endswith("standard input: the line at byte 0: messages[0] has no 'content'")
    skipped = run("count", CHAT, "--chat", "-", "--errors", "skip", stdin=refused)
    assert "1 faulty conversation skipped" in skipped.warnings[0]
    long = json.dumps([{"role": "user", "content": "word " * 60_000}]).encode() + b"\n"
    one = int(run("count", CHAT, "--chat", "-", "--total", stdin=long * 2).out) // 2
    assert run("count", CHAT, "--chat", "-", "--total", stdin=long * 4).out == b"%d\n" % (4 * one)
    first, second = path.read_bytes().split(b"\n")[:2]
    assert run("chat", CHAT, stdin=second).out == run("chat", CHAT, stdin=first).out != b""


def test_single_values_are_requests_or_conversations(run, tmp_path: Path) -> None:
    """A request is counted with the beginning of the answer, unless the file's name says that it
    has lines."""
    first, second = conversations(tmp_path).read_bytes().split(b"\n")[:2]
    tok = ggtok.load(CHAT)
    talk = [json.loads(first)["messages"][0]]
    request = json.dumps({"messages": talk}).encode()
    asked = tok.count_chat(talk)
    closed = tok.count_chat(talk, add_generation_prompt=False)
    assert asked > closed
    for name, n in ("r.json", asked), ("r.jsonl", closed):
        (tmp_path / name).write_bytes(request)
        path = str(tmp_path / name)
        assert run("count", CHAT, "--chat", path, "--total").out == b"%d\n" % n
    lists = json.dumps(talk).encode()
    assert run("count", CHAT, "--chat", "-", "--total", stdin=lists).out == b"%d\n" % asked
    whole = tok.count_chat(
        json.loads(first)["messages"], add_generation_prompt=False, continue_final_message=False
    )
    assert run("count", CHAT, "--chat", "-", "--total", stdin=second).out == b"%d\n" % whole
    [error] = run("count", CHAT, "--chat", "-", stdin=b"[" + second + b"]").errors
    assert "standard input: an array of conversations, not JSON lines" in error


def test_system_prompts_beside_messages(run) -> None:
    talk = [{"role": "user", "content": "Hi"}]
    request = json.dumps({"system": "S", "messages": talk}).encode()
    n = ggtok.load(CHAT).count_chat([{"role": "system", "content": "S"}, *talk])
    assert run("count", CHAT, "--chat", "-", "--total", stdin=request).out == b"%d\n" % n


def test_wrong_options_are_no_faults_of_lines(run, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('[{"role": "user", "content": "x"}]\n')
    (tmp_path / "bad.json").write_text("[1]")
    words = ("--chat", str(tmp_path / "one.jsonl"), "--tools", str(tmp_path / "bad.json"))
    done = run("count", CHAT, *words, "--errors", "skip")
    assert done.status == 2 and done.out == b"" and "tools" in done.errors[0]
    assert "the line" not in done.errors[0]


@pytest.mark.parametrize("depth", [900, 1000])
def test_deep_conversations_are_skipped(run, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    line = b'{"conversations": [{"from": "human", "value": %b}]}\n' % deep
    good = b'{"conversations": [{"from": "human", "value": "x"}]}\n'
    done = run("count", CHAT, "--chat", "-", "--errors", "skip", stdin=good + line + good)
    assert done.status == 0 and "1 faulty conversation skipped" in done.warnings[0]
    assert run("chat", CHAT, stdin=line).status == 2


def test_what_is_read_of_a_file_that_is_no_request(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a text nor a request that is too long is held in memory."""
    from ggtok.cli import conversation_counts

    n_read = 0

    def blocks(path: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal n_read
        for block in limited(path, blocks):
            n_read += len(block)
            yield block

    limited = conversation_counts._limit_size
    monkeypatch.setattr(conversation_counts, "_limit_size", blocks)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"a" * (8 << 20), 1))
    [error] = run("count", CHAT, "--chat", str(path)).errors
    assert "not valid JSON" in error and n_read <= 2 << 20
    n_read = 0
    line = b'{"messages": [{"role": "user", "content": "%b"}]}\n' % (b" " * (4 << 20))
    lines = tmp_path / "a.jsonl.gz"
    lines.write_bytes(gzip.compress(line, 1))
    assert run("count", CHAT, "--chat", str(lines)).status == 0 and n_read <= 2 << 20
    monkeypatch.setattr(conversation_counts, "LIMIT", 1 << 20)
    path.write_bytes(gzip.compress(line, 1))
    [error] = run("count", CHAT, "--chat", str(path)).errors
    assert error.endswith("is longer than 1 MiB, the most that is held in memory")
    path.write_bytes(gzip.compress(b"{\n" + line[1:], 1))
    [error] = run("count", CHAT, "--chat", str(path)).errors
    assert error.endswith("is longer than 1 MiB, the most that is held in memory")


def test_images_in_conversations(run) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    line = json.dumps([{"role": "user", "content": [{"type": "text", "text": "Hi"}, image]}])
    both = f"{line}\n{line}\n".encode()
    result = run("count", CHAT, "--chat", "-", "--json", stdin=both)
    assert json.loads(result.out)["uncounted_parts"] == 2
    assert "2 image, audio or video parts" in result.warnings[0]
    more = run("count", CHAT, "--chat", "-", "--json", "--image-tokens", "10", stdin=both)
    assert json.loads(more.out)["total"] == json.loads(result.out)["total"] + 20
    assert not more.warnings


def test_images_in_chats(run, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set("tokenizer.chat_template", TEMPLATE.encode())
    model = str(gguf.write(tmp_path / "chat.gguf"))
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hi"}, image, image]}]
    file = tmp_path / "messages.json"
    file.write_text(json.dumps(messages))
    tok = ggtok.load(model)
    n = tok.count_chat(messages, image_tokens=0)
    result = run("count", model, "--chat", str(file), "--json")
    assert json.loads(result.out)["total"] == n
    assert json.loads(result.out)["uncounted_parts"] == 2
    [warning] = result.warnings
    assert "the tokens of 2 image, audio or video parts aren't included" in warning
    assert "--image-tokens N" in warning
    result = run("count", model, "--chat", str(file), "--json", "--image-tokens", "1k")
    assert json.loads(result.out)["total"] == n + 2000
    assert "uncounted_parts" not in json.loads(result.out)
    assert not result.warnings
    assert run("count", model, "--chat", str(file), "--budget", "1k").status == 0
    assert (
        run("count", model, "--chat", str(file), "--budget", "1k", "--image-tokens=999").status == 1
    )

    prompt = tok.apply_chat_template(messages)
    assert run("chat", model, str(file)).out == prompt.encode()
    marked = run("chat", model, str(file), "--media-marker", "<M>").out
    assert marked == prompt.replace("<__media__>", "<M>").encode()
    result = run("chat", model, str(file), "--json")
    value = json.loads(result.out)
    assert (value["count"], len(value["ids"]), value["uncounted_parts"]) == (n, n, 2)
    assert "--image-tokens N" in result.warnings[0]
    result = run("chat", model, str(file), "--json", "--image-tokens", "5")
    value = json.loads(result.out)
    assert (value["count"], len(value["ids"])) == (n + 10, n)
    assert "uncounted_parts" not in value
    assert not result.warnings
    result = run("chat", model, str(file), "--ids", "--like", "transformers")
    assert "2 image" in result.warnings[0]
    for option, says in (
        ("--media-marker=", "media_marker must not be empty"),
        ("--media-marker=H", "media_marker chooses another"),
        ("--image-tokens=-1", "image_tokens must not be negative, not -1"),
        ("--image-tokens=x", "--image-tokens must be a number, not 'x'"),
    ):
        [error] = run("count", model, "--chat", str(file), option).errors
        assert says in error
    [error] = run("chat", model, str(file), "--image-tokens", "5").errors
    assert "--image-tokens has no effect without --json" in error


def test_chats_of_a_model_without_a_template(run, tmp_path: Path) -> None:
    messages, template = tmp_path / "messages.json", tmp_path / "template.jinja"
    messages.write_text(json.dumps(MESSAGES))
    template.write_text(TEMPLATE)
    for argv in (["count", LLAMA3, "--chat", str(messages)], ["chat", LLAMA3, str(messages)]):
        [warning] = run(*argv).warnings
        assert "no chat template" in warning and "--template" in warning
        result = run(*argv, "--template", str(template))
        assert result.status == 0 and not result.warnings
    n = ggtok.load(LLAMA3).count_chat(MESSAGES, template=TEMPLATE)
    result = run("count", LLAMA3, "--chat", str(messages), "--template", str(template))
    assert result.out.startswith(b"%d " % n)


# ---- the model ----


def test_the_model(run, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is -m's, else the first argument if it must be a model, else GGTOK_MODEL's."""
    (tree / "model.gguf").write_bytes(Path(LLAMA3).read_bytes())
    (tree / "user").mkdir()
    (tree / "user" / "repo").write_text("hi")

    def refused(name: str) -> None:
        raise AssertionError(f"{name} was asked of a server")

    monkeypatch.setattr("ggtok.sources.find_model", refused)
    expected = run("count", "model.gguf", "a.py")
    assert expected.status == 0
    assert run("count", "-m", "model.gguf", "a.py").out == expected.out
    for first in "user/repo", "user/other", "a.py", "":
        result = run("count", first, "a.py")
        assert result.status == 2 and result.errors[0].startswith("ggtok: error: no model: give -m")
    missing = run("count", "missing.gguf", "a.py")
    assert missing.errors == ["ggtok: error: missing.gguf: no such file"]
    monkeypatch.setenv("GGTOK_MODEL", "model.gguf")
    assert run("count", "a.py").out == expected.out
    assert listed(run("count", "user/repo", "--json")).keys() == {"user/repo"}
    monkeypatch.setenv("GGTOK_MODEL", SPM)
    assert run("count", "model.gguf", "a.py").out == expected.out != run("count", "a.py").out
    assert run("count", "-m", SPM, "a.py").out != expected.out
    asked: list[str] = []
    monkeypatch.setattr("ggtok.sources.find_model", asked.append)
    monkeypatch.setenv("GGTOK_MODEL", "")
    for name in "hf://user/repo/m.gguf", "ollama:llama3", "lmstudio:a/b", "https://h/m.gguf":
        assert run("count", name, "a.py").status == 2
        assert asked.pop() == name


@posix
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no model: give -m MODEL"),
        ([LLAMA3, "-", "-"], "standard input can be read only once"),
        ([LLAMA3, "-", "--chat", "-"], "standard input can be read only once"),
        ([LLAMA3, "a", "--tools", "x"], "--tools has no effect without --chat"),
        ([LLAMA3, "a", "--errors", "skip"], "--errors has no effect without --chat"),
        ([LLAMA3, "a", "--template", "x"], "--template has no effect without --chat"),
        ([LLAMA3, "a", "--image-tokens", "1"], "--image-tokens has no effect without --chat"),
        ([LLAMA3, "a", "--media-marker", "x"], "--media-marker has no effect without --chat"),
        ([LLAMA3, "a", "--json", "--csv"], "--json, --csv, --total, and --tree or --by exclude"),
        ([LLAMA3, "a", "--tree", "--by", "ext"], "--tree and --by exclude each other"),
        ([LLAMA3, "--files0-from", "/dev/stdin"], "/dev/stdin: contains an empty name"),
        ([LLAMA3, "a", "--min", "x"], "--min must be a number"),
    ],
)
def test_usage(argv: list[str], message: str, tmp_path: Path) -> None:
    done = spawn(["count", *argv], tmp_path, b"a\0\0b\0", GGTOK_MODEL="")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"ggtok: error: {message}")


def test_no_names(run) -> None:
    assert run("count", LLAMA3, "--files0-from", "-").out == b"0  total\n"


# ---- processes ----


@posix
def test_closed_pipes_and_locales(tree: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -c 1', "sh", *COMMAND, "count", LLAMA3, *["a.py"] * 20000],
        capture_output=True,
        check=True,
    )
    assert (len(done.stdout), done.stderr) == (1, b"")
    (tree / "é.txt").write_text("é")
    for locale in "C", "en_US.ISO-8859-1":
        env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = spawn(["count", LLAMA3, "é.txt"], tree, **env)
        assert done.stdout == "1  é.txt\n".encode()


@posix
def test_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C stops the command while it reads an endless text, whether or not the vocabulary
    allows the text to be encoded in parts."""
    path = tmp_path / "text"
    os.mkfifo(path)
    for model in LLAMA3, str(fixture("test")):
        process = subprocess.Popen(
            [*COMMAND, "count", model, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with path.open("wb", buffering=0) as text:
            text.write(LINE * 200_000)
            process.send_signal(signal.SIGINT)
            # If the signal arrives just before a blocking read, Python handles it only after the
            # read, which needs more data to return.
            with contextlib.suppress(BrokenPipeError):
                text.write(LINE)
            out, _ = process.communicate(timeout=LIMIT)
        assert (process.returncode, out) == (130, b"")


PEAK = """
import sys
from ggtok import cli
status = cli.main(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(peak.split()[1], file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the peak of a process's memory")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "text"

    def peak(n_lines: int) -> int:
        path.write_bytes(LINE * n_lines)
        argv = [sys.executable, "-c", PEAK, "count", BPE, str(path)]
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        return 1024 * int(done.stderr)

    small, large = peak(300_000), peak(1_000_000)
    assert large - small < 700_000 * len(LINE) // 4


# Runs a command with a fake clock that advances by a number of seconds at each call.
AT_PACE = """
import itertools, sys, types
from ggtok import cli
from ggtok.cli import progress
clock = itertools.count(0, int(sys.argv[1]))
progress.time = types.SimpleNamespace(perf_counter=lambda: next(clock))
sys.exit(cli.main(sys.argv[2:]))
"""


def on_terminal(argv: list[str], stdin: bytes, seconds: int) -> bytes:
    """Returns the command's standard error on a terminal, with a clock that advances by `seconds`
    at each call."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", AT_PACE, str(seconds), *argv]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    thread = threading.Thread(target=process.communicate, args=(stdin,))
    thread.start()
    seen = b""
    try:
        while block := os.read(ours, 1 << 16):
            seen += block
    except OSError:  # how Linux reports the end of file
        pass
    thread.join()
    assert process.wait() == 0
    os.close(ours)
    return seen


@posix
def test_progress(tmp_path: Path) -> None:
    text = LINE * ((6 << 20) // len(LINE))
    path = tmp_path / "text"
    path.write_bytes(text)
    seen = on_terminal(["count", LLAMA3, "-", str(path), str(path)], text, 2)
    assert b" MB/s, " in seen and b"[#" in seen and seen.endswith(b" \r")
    assert on_terminal(["count", LLAMA3, "-", "-q"], b"hi", 2) == b""
    assert on_terminal(["count", LLAMA3, str(path)], b"", 0) == b""


def test_progress_in_words() -> None:
    from ggtok.cli import count_command

    assert progress.of_bytes(10**6, 4 * 10**6, 2.0, ", 7 tokens") == (
        "[#####               ]  25%  0:06 left  1.0 MB, 0 MB/s, 7 tokens"
    )
    assert progress.of_bytes(10**6, 0, 0.5) == "1.0 MB, 2 MB/s"
    assert count_command._size_of(["/dev/null", "missing"]) == 0
    assert not progress.is_shown(quiet=True)


# ---- compressed files, JSON lines ----


def test_compressed_files(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = LINE * 500
    tok = ggtok.load(LLAMA3)
    n = tok.count(text, add_special=False)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text))
    (tmp_path / "b.GZ").write_bytes(gzip.compress(b"") + gzip.compress(text))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(text)[:-20])
    (tmp_path / "no.gz").write_bytes(b"no gzip")
    (tmp_path / "tar.gz").write_bytes(gzip.compress(b"a\0b"))
    for small in 0, 1 << 30:
        monkeypatch.setattr(counting, "_SMALL", small)
        result = run("count", LLAMA3, str(tmp_path), "--json")
        found = listed(result)
        assert found == {str(tmp_path / "a.txt.gz"): n, str(tmp_path / "b.GZ"): n}
        assert result.status == 2
        assert [line.partition(f"{tmp_path}{os.sep}")[2] for line in result.errors] == [
            "cut.gz: the compressed data is cut off",
            "no.gz: not valid gzip data",
        ]
        assert json.loads(result.out)["binary"] == [str(tmp_path / "tar.gz")]


def test_zstd(run, tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "a.zst").write_bytes(zstandard.compress(LINE))
    n = ggtok.load(LLAMA3).count(LINE, add_special=False)
    result = run("count", LLAMA3, str(tmp_path / "a.zst"))
    assert result.out == f"{n}  {tmp_path / 'a.zst'}\n".encode()


@pytest.mark.parametrize("options", [[], ["--special"], ["--parse-special"]])
def test_json_lines(
    run, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line is a text: in plain and compressed files, and on standard input."""
    texts = ["Hello", "", "a\nb <|eot_id|>", "é" * 50, " x"] * 200
    data = "\n".join(json.dumps({"body": text, "id": 1}) for text in texts).encode() + b"\n\n"
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    tok = ggtok.load(LLAMA3)
    special = {"add_special": "--special" in options, "parse_special": "--parse-special" in options}
    n = sum(tok.count(text, **special) for text in texts)
    for small in 0, 1 << 30:
        monkeypatch.setattr(counting, "_SMALL", small)
        argv = ["count", LLAMA3, "--field", "body", "--total", *options]
        assert run(*argv, str(plain)).out == run(*argv, str(packed)).out == b"%d\n" % n
        assert run(*argv, "-", stdin=data).out == run(*argv, stdin=data).out == b"%d\n" % n


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[1]", "the line at byte 15: not a JSON object"),
        (b'{"text": 1}', "the line at byte 15: the field 'text' is not a string"),
        (b'{"body": ""}', "the line at byte 15: the field 'text' is missing"),
        (b"{", "the line at byte 15: not valid JSON: "),
    ],
)
def test_lines_without_a_text(run, line: bytes, message: str, tmp_path: Path) -> None:
    data = b'{"text": "Hi"}\n' + line
    (tmp_path / "a.jsonl").write_bytes(data)
    for path in str(tmp_path / "a.jsonl"), "-":
        name = "standard input" if path == "-" else path
        result = run("count", LLAMA3, "--field", "text", path, stdin=data)
        assert (result.status, len(result.errors)) == (2, 1)
        assert f"{name}: {message}" in result.errors[0] and "errors=" not in result.errors[0]


def test_standard_input_is_what_is_left(run) -> None:
    assert run("count", LLAMA3, stdin=LINE).out == run("count", LLAMA3, "-", stdin=LINE).out != b""


# ---- which rows are printed ----


def test_the_largest_first(run, tree: Path) -> None:
    (tree / "many.txt").write_text("many words " * 20)
    files = listed(run("count", LLAMA3, ".", "--json"))
    order = sorted(files, key=lambda path: -files[path])
    assert list(listed(run("count", LLAMA3, ".", "--json", "--sort"))) == order
    assert list(listed(run("count", LLAMA3, ".", "--json", "--top", "2"))) == order[:2]
    shown = run("count", LLAMA3, ".", "--top", "2").out.decode().splitlines()
    assert [line.split() for line in shown] == [
        *([str(files[path]), path] for path in order[:2]),
        [str(sum(files.values())), "total"],
    ]
    rows = run("count", LLAMA3, ".", "--csv", "--top", "1").out.decode().splitlines()
    assert len(rows) == 2 and rows[1].startswith(order[0])
    by = run("count", LLAMA3, ".", "--by", "ext", "--top", "1").out.decode().splitlines()
    assert len(by) == 2 and by[0].endswith(".md")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--tree", "--sort"], "--tree excludes --sort and --top"),
        (["--tree", "--top", "3"], "--tree excludes --sort and --top"),
        (["--top", "0"], "--top must be at least 1, but is 0"),
        (["--budget", "k"], "--budget must be a number or 'context', not 'k'"),
        (["--budget", "1.5"], "--budget must be a number or 'context', not '1.5'"),
    ],
)
def test_what_can_not_be_printed(run, argv: list[str], message: str) -> None:
    result = run("count", LLAMA3, "a", *argv)
    assert (result.status, len(result.errors)) == (2, 1) and message in result.errors[0]


@pytest.mark.parametrize(("budget", "n"), [("1k", 1000), ("0.5K", 500), ("1M", 10**6), ("7", 7)])
def test_a_budget_in_thousands(run, budget: str, n: int) -> None:
    text = b"a " * 600
    count = ggtok.load(LLAMA3).count(text, add_special=False)
    result = run("count", LLAMA3, "--total", "--budget", budget, stdin=text)
    assert result.out == b"%d\n" % count and result.status == (count > n)
    cut = run("truncate", LLAMA3, "-n", budget, stdin=text)
    assert cut.out == run("truncate", LLAMA3, "-n", str(n), stdin=text).out


def test_a_text_is_counted(run) -> None:
    tok = ggtok.load(BPE)
    assert run("count", BPE, "-p", "Hello there").out.split() == [
        b"%d" % tok.count("Hello there", add_special=False),
        b"-p",
    ]
    n = tok.count("Hello", add_special=True)
    for option in "--special", "--add-special":
        assert run("count", BPE, "-p", "Hello", option, "--total").out == b"%d\n" % n
    result = run("count", BPE, "Hello there")
    assert result.status == 2 and result.out == b"0  total\n"
    assert "to count 'Hello there' itself, use -p" in str(result.hints)


def test_a_budget_of_the_context(run, tmp_path: Path) -> None:
    path = str(tmp_path / "m.gguf")
    gguf = GGUF.read(BPE)
    architecture = ggtok.load(BPE).metadata["general.architecture"]
    gguf.set(f"{architecture}.context_length", 3, "u32")
    gguf.write(Path(path))
    assert ggtok.load(path).context_length == 3
    assert run("count", path, "-p", "a b c", "--budget", "context").status == 0
    result = run("count", path, "-p", "a b c d e", "--budget", "context")
    assert result.status == 1 and "2 more than 3" in str(result.warnings)
    gguf.remove(f"{architecture}.context_length")
    gguf.write(Path(path))
    assert ggtok.load(path).context_length is None
    [error] = run("count", path, "-p", "a", "--budget", "context").errors
    assert "the file has no context length" in error
    assert (
        "must be a number or 'context', not 'x'"
        in run("count", path, "-p", "a", "--budget", "x").errors[0]
    )
