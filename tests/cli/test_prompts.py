"""``ggtok prompts``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.build import CHAT
from ggtok.cli import input_texts
from ggtok.corpora import jsonl
from tests.cli.command import Result

ROME = {"role": "user", "content": "What is the weather in Rome?"}
SUNNY = {"role": "assistant", "content": "Sunny."}
THANKS = {"role": "user", "content": "Thanks"}
SYSTEM = {"role": "system", "content": "Be brief."}
Call = Callable[..., Result]
DATED = "{{ strftime_now('%d %B') }}{% for m in messages %}<{{ m.content }}>{% endfor %}"


@pytest.fixture
def call(run) -> Call:
    """Runs the command with arguments of any type."""
    return lambda *args: run(*map(str, args))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    requests = {"a": [ROME], "grown": [ROME, SUNNY, THANKS], "other": [SYSTEM, ROME]}
    for name, messages in requests.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"messages": messages}))
    return tmp_path


def test_two_requests(call: Call, files: Path) -> None:
    grown = call("prompts", CHAT, files / "a.json", files / "grown.json")
    assert grown.status == 0
    assert "0 lost" in grown.out.decode() and "A: end\n" in grown.out.decode()
    assert 'B: messages[1].content: "Sunny.' in grown.out.decode()
    other = call("prompts", CHAT, files / "a.json", files / "other.json")
    assert other.status == 1 and "A: template: " in other.out.decode()
    found = json.loads(
        call("prompts", CHAT, files / "a.json", files / "other.json", "--json").out.decode()
    )
    assert found["lost"] + found["common"] == found["a"]["n_tokens"] > found["lost"] > 10


def test_a_log(call: Call, files: Path) -> None:
    lines = [
        {"messages": [ROME]},
        {"request": {"messages": [SYSTEM, ROME]}, "time": "2026-01-01T00:00:00Z"},
        {"body": {"messages": [ROME, SUNNY, THANKS]}, "timestamp": 1e9},
    ]
    log = files / "log.jsonl"
    log.write_text("\n\n".join(map(json.dumps, lines)))
    shown = call("prompts", CHAT, log)
    assert shown.status == 1
    rows = [row.split() for row in shown.out.decode().splitlines()]
    assert rows[0][:5] == ["line", "tokens", "kept", "lost", "where"]
    assert [row[0] for row in rows[1:]] == ["1", "3", "5"]
    assert rows[1][2] == "0" and rows[2][4] == "template"
    assert rows[3][2:] == [rows[1][1], "0"]  # all of the first prompt
    only = call("prompts", CHAT, log, "--last", "1")
    assert int(only.out.decode().splitlines()[3].split()[3]) > 10


def test_a_compressed_log(call: Call, files: Path) -> None:
    log, compressed = files / "log.jsonl", files / "log.jsonl.gz"
    log.write_text("\n".join(json.dumps({"messages": [each]}) for each in (ROME, SUNNY)))
    compressed.write_bytes(gzip.compress(log.read_bytes()))
    plain = call("prompts", CHAT, log)
    assert plain.status == 1 and call("prompts", CHAT, compressed).out == plain.out
    compressed.write_bytes(compressed.read_bytes()[:-9])
    failed = call("prompts", CHAT, compressed)
    assert failed.status == 2 and f"{compressed}: " in failed.errors[0]


def test_long_lines(call: Call, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line may extend over blocks, but has a limit."""
    monkeypatch.setattr(input_texts, "BLOCK", 7)
    log = files / "log.jsonl"
    log.write_text("\n\n".join(json.dumps({"messages": [each]}) for each in (ROME, SUNNY)) + "\n")
    found = json.loads(call("prompts", CHAT, log, "--json").out)
    assert [row["line"] for row in found] == [1, 3]
    monkeypatch.setattr(jsonl, "LIMIT", 60)
    failed = call("prompts", CHAT, log)
    assert failed.status == 2
    assert f"{log}: a line: it is longer than" in failed.errors[0]


def test_the_time_of_a_request(call: Call, files: Path) -> None:
    (files / "dated.jinja").write_text(DATED)
    lines = [{"request": {"messages": [ROME]}, "time": f"2026-03-0{day}"} for day in (1, 1, 2)]
    (files / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    shown = call("prompts", CHAT, files / "log.jsonl", "--template", files / "dated.jinja")
    rows = [row.split() for row in shown.out.decode().splitlines()[1:]]
    assert rows[1][3] == "0" and rows[2][4] == "request" and rows[2][5].startswith(("1", "01"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "line 1: not a request: an object with 'messages' is expected"),
        (
            "{\n",
            "line 1: not valid JSON: Expecting property name enclosed in double quotes: line 1",
        ),
        ('{"messages": [], "time": "noon"}', "its time is neither ISO 8601 nor seconds: 'noon'"),
        ('{"messages": 3}', "line 1: "),
    ],
)
def test_wrong_lines(call: Call, files: Path, text: str, message: str) -> None:
    (files / "log.jsonl").write_text(text)
    failed = call("prompts", CHAT, files / "log.jsonl")
    assert failed.status == 2 and message in failed.errors[0]


def test_wrong_arguments(call: Call, files: Path) -> None:
    a = files / "a.json"
    (files / "no.json").write_text("{}")
    for words, message in (
        ([], "give two files with a request each, or a log"),
        ([a, a, a], "give two files with a request each, or a log"),
        ([a, files / "no.json"], "no.json: not a request"),
        ([a, "--last", "0"], "--last must be at least 1, but is 0"),
        (["-", "-"], "standard input can be read only once"),
    ):
        failed = call("prompts", CHAT, *words)
        assert failed.status == 2 and message in failed.errors[0]
