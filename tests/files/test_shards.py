"""Shards: each document is in exactly one of them, even if the call was interrupted."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.corpora import shards
from ggtok.corpora.sources import SourceFile
from ggtok.corpora.summary import EncodeProgress
from tests.files.corpus import documents, files_of, ids_of, raw_ids


def sources(sizes: list[int]) -> list[SourceFile]:
    return [SourceFile(str(i), "text", "", size, 0) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "n", "expected"),
    [
        ([1, 1, 1, 1], 2, [2, 2]),
        ([1, 1, 1], 3, [1, 1, 1]),
        ([9, 1, 1, 1], 2, [1, 3]),
        ([1, 1, 1, 9], 2, [3, 1]),
        ([0, 0, 0], 2, [2, 1]),
        ([100, 1, 1, 1], 3, [1, 2, 1]),
        ([5], 1, [1]),
        ([2, 3, 5, 5, 3, 2], 4, [2, 1, 1, 2]),
    ],
)
def test_split(sizes: list[int], n: int, expected: list[int]) -> None:
    parts = shards.split_sources(sources(sizes), n)
    assert [source for part in parts for source in part] == sources(sizes)
    assert [len(part) for part in parts] == expected


def test_split_at_random() -> None:
    r = random.Random(1)
    for _ in range(300):
        sizes = [r.randrange(100) for _ in range(r.randrange(1, 40))]
        n = r.randrange(1, len(sizes) + 1)
        parts = shards.split_sources(sources(sizes), n)
        assert len(parts) == n and all(parts)
        assert [source for part in parts for source in part] == sources(sizes)
        largest = max(sum(source.size for source in part) for part in parts)
        assert largest <= sum(sizes) / n + 2 * max(sizes)


def test_shards_are_the_output_in_parts(tok: ggtok.Tokenizer, tmp_path: Path, small: None) -> None:
    """Resumed calls write the same shards, too. Repeating a completed call writes nothing, and
    outputs aren't sources."""
    folder, texts = tmp_path / "in", documents(1, 12)
    folder.mkdir()
    for i, text in enumerate(texts):
        (folder / f"{i:02}.txt").write_text(text)
    out = folder / "o.bin"
    seen: list[EncodeProgress] = []
    whole = tok.encode_files(folder, out, shards=3, progress=seen.append)
    names = [f"o-0000{i}-of-00003.bin" for i in range(3)]
    found = [ids for name in names for ids in raw_ids(folder / name)]
    assert found == ids_of(tok, texts, tok.eos_id)
    assert (whole.documents, whole.ids, whole.sources) == (12, sum(map(len, found)), 12)
    assert [Path(name).name for name in whole.files[::3]] == names
    assert not whole.already_complete and not out.exists()
    assert (seen[-1].ids, seen[-1].read, seen[-1].total) == (whole.ids, whole.bytes, whole.bytes)
    assert [p.ids for p in seen] == sorted(p.ids for p in seen)
    expected = files_of(folder, "o")

    again = tok.encode_files(folder, out, shards=3)
    assert again.already_complete and again == whole and again.resumed == whole.ids
    for path in folder.glob("o*"):
        path.unlink()
    r = random.Random(1)

    def stop(_: EncodeProgress) -> None:
        if r.random() < 0.2:
            raise KeyboardInterrupt

    stops = 0
    while True:
        try:
            summary = tok.encode_files(folder, out, shards=3, progress=stop)
            break
        except KeyboardInterrupt:
            stops += 1
            assert stops < 99
    assert stops and files_of(folder, "o") == expected and summary == whole
    for path in folder.glob("o-00001*"):
        path.unlink()
    seen.clear()
    summary = tok.encode_files(folder, out, shards=3, progress=seen.append)
    assert files_of(folder, "o") == expected and not summary.already_complete
    assert seen[0].bytes_before > 0 and seen[-1].bytes == whole.bytes
    tok.encode_files(folder, folder / "p", shards=2, exclude="o*")
    assert (folder / "p-00001-of-00002").exists()


def test_what_can_not_be_sharded(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    rows: list[tuple[Any, type[Exception], str]] = [
        (2, ValueError, "2 shards of 1 source files: a shard has whole files"),
        (0, ValueError, "shards must be at least 1, but is 0"),
        ("x", TypeError, "shards must be an integer"),
    ]
    for n, error, message in rows:
        with pytest.raises(error, match=message):
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o", shards=n)
    assert tok.encode_files(tmp_path / "a.txt", tmp_path / "o", shards=1).documents == 1
    assert shards.existing_outputs(str(tmp_path / "o")) == [str(tmp_path / "o-00000-of-00001")]
    assert shards.existing_outputs(str(tmp_path / "p")) == [str(tmp_path / "p")]


@pytest.mark.parametrize("end", ["", ".manifest.json", ".journal"])
def test_an_output_of_its_own_is_not_its_shards(end: str, tmp_path: Path) -> None:
    """If any file of the output `o` exists, older shards of `o` are ignored. Otherwise, --verify
    could overlook a damaged output and report that the shards are complete."""
    (tmp_path / "o-00000-of-00001.manifest.json").touch()
    (tmp_path / f"o{end}").touch()
    assert shards.existing_outputs(str(tmp_path / "o")) == [str(tmp_path / "o")]
