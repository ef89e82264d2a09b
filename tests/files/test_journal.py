"""Untrusted journals: links, forged entries and malformed entries."""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.files.corpus import documents, raw_ids

Entry = dict[str, Any]


class Stop(Exception):
    pass


@pytest.fixture
def begun(tok: ggtok.Tokenizer, tmp_path: Path, small: None) -> Path:
    """Creates a folder with a run that was stopped after some checkpoints."""
    (tmp_path / "a.txt").write_text(" ".join(documents(1, 60)))

    def stop(progress: ggtok.EncodeProgress) -> None:
        if progress.read > 12_000:
            raise Stop

    with pytest.raises(Stop):
        tok.encode_files(tmp_path / "a.txt", tmp_path / "o", progress=stop)
    (tmp_path / "mine").write_text("precious")
    return tmp_path


def line(entry: object) -> bytes:
    text = json.dumps(entry).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read(folder: Path) -> list[Entry]:
    return [json.loads(row[9:]) for row in (folder / "o.journal").read_bytes().splitlines()]


def write(folder: Path, entries: list[Any]) -> None:
    (folder / "o.journal").write_bytes(b"".join(map(line, entries)))


def check_refused(tok: ggtok.Tokenizer, folder: Path, match: str, **options: Any) -> None:
    with pytest.raises(ggtok.GGTokError, match=match):
        tok.encode_files(folder / "a.txt", folder / "o", **options)
    assert (folder / "mine").read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="no links and FIFOs")
@pytest.mark.parametrize("options", [{}, {"resume": False}, {"resume": False, "force": True}])
def test_links_and_fifos(tok: ggtok.Tokenizer, begun: Path, options: dict[str, Any]) -> None:
    """A link or FIFO in place of a journal is neither followed nor truncated, and doesn't block."""
    (begun / "o.journal").unlink()
    (begun / "o.journal").symlink_to("mine")
    check_refused(tok, begun, "o.journal", **options)
    (begun / "o.journal").unlink()
    os.mkfifo(begun / "o.journal")
    check_refused(tok, begun, "not a regular file", **options)


def test_links_where_the_system_has_no_flag_for_them(
    tok: ggtok.Tokenizer, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (begun / "o.journal").unlink()
    (begun / "o.journal").symlink_to("mine")
    monkeypatch.setattr("ggtok.base.files._NO_FOLLOW", 0)
    check_refused(tok, begun, "a symbolic link")


def test_forged_renames(tok: ggtok.Tokenizer, begun: Path) -> None:
    """An entry can't name files. An entry that says that the output is complete renames only files
    whose names follow from the output's name.

    Claim corpora.4.
    """
    whole = tok.encode_files(begun / "a.txt", begun / "p")
    entries = read(begun)
    (begun / "evil").write_text("evil")
    write(begun, [*entries, {"renames": [[str(begun / "evil"), str(begun / "mine")]]}])
    check_refused(tok, begun, "the entry at byte [0-9]+ is malformed")
    write(begun, [*entries, {"complete": True}])
    check_refused(tok, begun, r"o.manifest.json.partial|is missing")
    assert (begun / "evil").read_text() == "evil"
    again = tok.encode_files(begun / "a.txt", begun / "o", resume=False)
    assert again.ids == whole.ids and raw_ids(begun / "o") == raw_ids(begun / "p")


def with_(key: str, value: object) -> Callable[[Entry], object]:
    def change(entry: Entry) -> object:
        return {**entry, key: value}

    return change


def without(key: str) -> Callable[[Entry], object]:
    return lambda entry: {k: v for k, v in entry.items() if k != key}


POSITIONS = [[], [0, 0, 0, 0], [0, 0, 0, 3, False], [0, -1, 0, 0, False], [0, 0, 0, 0, 1]]
POSITIONS += [[0, "0", 0, 0, False], [0, 1 << 63, 0, 0, False], [1.5, 0, 0, 0, False]]
CHECKPOINTS: list[Callable[[Entry], object]] = [
    lambda _: None,
    lambda _: [],
    lambda _: 3,
    *(without(key) for key in ("position", "counts", "opened", "data", "index", "sources")),
    *(with_("position", position) for position in POSITIONS),
    *(with_("counts", counts) for counts in ([], {"no": 1}, {"ids": -1}, {"ids": "1"}, None)),
    *(with_("data", state) for state in ([], [1, 2, 3], [1, 1, 2, 1], [0, 1 << 32, 0, 0], "1234")),
    *(with_("opened", state) for state in ([], [0, 0], [1 << 62, 0, 0], [0, 1 << 62, 0], 0)),
    with_("sources", [16, 0, 0, 0]),
]


@pytest.mark.parametrize("number", range(len(CHECKPOINTS)))
def test_malformed_checkpoints(tok: ggtok.Tokenizer, begun: Path, number: int) -> None:
    """A malformed checkpoint with a correct CRC-32 raises an error that names the journal and the
    entry."""
    entries = read(begun)
    last = entries[-1]["checkpoint"]
    write(begun, [*entries, {"checkpoint": CHECKPOINTS[number](last)}])
    check_refused(tok, begun, r"o.journal: the entry at byte [0-9]+ is malformed; remove the file")


PLAN = {"ggtok": "1", "model": {}, "options": {"errors": "raise"}}


@pytest.mark.parametrize(
    "entry",
    [
        {},
        [],
        "plan",
        {"plan": PLAN, "sources": []},
        {"plan": None},
        {"plan": {**PLAN, "model": []}},
        {"plan": {**PLAN, "options": {}}},
        {"plan": {**PLAN, "options": {"errors": 3}}},
        {"plan": {**PLAN, "ggtok": 1}},
        {"sources": 3},
        {"sources": [["a", 1]]},
        {"sources": [["a", -1, 0, 0]]},
        {"sources": [[1, 1, 0, 0]]},
        {"sources": [["a", 1, "0", 0]]},
        {"sources": [["a", 1, 0, "0"]]},
        {"sources": [["a", 1, 0]]},
        {"unknown": 1},
    ],
)
def test_other_malformed_entries(tok: ggtok.Tokenizer, begun: Path, entry: object) -> None:
    write(begun, [{"sources": []}, entry])
    check_refused(tok, begun, r"o.journal: the entry at byte [0-9]+ is malformed; remove the file")


def test_impossible_checkpoints(tok: ggtok.Tokenizer, begun: Path) -> None:
    """Well-formed checkpoints that no run can have written are rejected."""
    entries = read(begun)
    last = entries[-1]["checkpoint"]
    counts = {**last["counts"], "ids": last["counts"]["ids"] + 1}
    write(begun, [*entries, {"checkpoint": {**last, "counts": counts}}])
    check_refused(tok, begun, "its last checkpoint contradicts itself; resume=False")
    position, state = [9, 0, 0, 0, False], [72, 0, 72, 0]
    write(begun, [*entries, {"checkpoint": {**last, "position": position, "sources": state}}])
    check_refused(tok, begun, "o.journal: is malformed")


def test_nested_entries(tok: ggtok.Tokenizer, begun: Path) -> None:
    text = b'{"checkpoint": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with (begun / "o.journal").open("ab") as file:
        file.write(b"%08x %s\n" % (zlib.crc32(text), text))
    check_refused(tok, begun, "is malformed")


def test_manifests_that_are_malformed(tok: ggtok.Tokenizer, begun: Path) -> None:
    """A malformed manifest counts as missing, so its files aren't recognized as the output of an
    earlier run."""
    tok.encode_files(begun / "a.txt", begun / "o")
    path = begun / "o.manifest.json"
    manifest = json.loads(path.read_bytes())
    rows = [[], {}, {**manifest, "model": []}, {**manifest, "files": [{"name": 1, "bytes": 2}]}]
    rows += [{**manifest, "counts": {"ids": []}}, {**manifest, "sources": [{"path": 1}]}]
    for row in rows:
        path.write_text(json.dumps(row))
        check_refused(tok, begun, "has no manifest of encode_files")
        check_refused(tok, begun, "has no manifest of encode_files", resume=False)
    path.write_text("[" * 100_000)
    check_refused(tok, begun, "has no manifest of encode_files")
