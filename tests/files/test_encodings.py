"""Files in UTF-16 and UTF-32 are named, whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.corpora.documents import other_encoding

TEXT = "Some text.\nAnother line: Grüße\n" * 3
ENCODINGS = {
    "utf-16": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    "utf-32-be": "UTF-32",
}


def encoded(encoding: str, text: str = TEXT) -> bytes:
    bom = "\ufeff" if encoding.endswith("be") else ""  # Python adds the other marks itself
    return (bom + text).encode(encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("name", "options"),
    [("a.txt", {}), ("a.txt", {"separator": "\n"}), ("a.jsonl", {}), ("a.jsonl", {"chat": True})],
)
def test_encode_files(
    tok: ggtok.Tokenizer, tmp_path: Path, encoding: str, name: str, options: dict[str, Any]
) -> None:
    if options.get("chat"):
        options = {"chat": {"template": "{{ messages }}"}}
    (tmp_path / name).write_bytes(encoded(encoding))
    named = ENCODINGS[encoding]
    with pytest.raises(
        ggtok.DocumentError,
        match=rf"{name}: .*: {named} \(its byte order mark\), not UTF-8: "
        rf"'iconv -f {named} -t UTF-8' converts it; errors='skip' .--errors skip. drops",
    ) as raised:
        tok.encode_files(tmp_path / name, tmp_path / "o", **options)
    assert raised.value.kind == "invalid_utf8"


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("documents", ["lines", "whole"])
def test_train(tmp_path: Path, encoding: str, documents: Any) -> None:
    (tmp_path / "a.txt").write_bytes(encoded(encoding))
    (tmp_path / "b.txt").write_bytes(b"\0binary")
    (tmp_path / "c.txt").write_text(TEXT)
    with pytest.raises(
        ggtok.FileError,
        match=rf"a.txt: {ENCODINGS[encoding]} .*; errors='skip' .* skips such files",
    ):
        ggtok.train(tmp_path / "a.txt", 300, documents=documents)
    with pytest.raises(ggtok.FileError, match=r"b.txt: a binary file.*; errors='skip' .* skips"):
        ggtok.train(tmp_path / "b.txt", 300, documents=documents, errors="replace")
    some = ggtok.train(tmp_path, 300, documents=documents, errors="skip")
    alone = ggtok.train(tmp_path / "c.txt", 300, documents=documents)
    assert some.merges and some.merges == alone.merges


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"\xff\xfe", "UTF-16"),
        (b"\xff\xfe\0", "UTF-16"),
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\0\0\xfe\xff", "UTF-32"),
        (b"\xff", None),
        (b"\xef\xbb\xbf", None),
        (b"", None),
    ],
)
def test_marks(start: bytes, expected: str | None) -> None:
    assert other_encoding(start) == expected
