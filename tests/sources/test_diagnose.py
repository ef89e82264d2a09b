"""If a file isn't a GGUF file, or is truncated, the message says what the file is."""

from __future__ import annotations

import gzip
import io
import os
import struct
import zipfile
from pathlib import Path

import pytest

import ggtok
from ggtok.base import diagnose
from ggtok.errors import GGUFError
from ggtok.sources import listing
from tests.support.vocabularies import fixture

MODEL = fixture("bpe-llama3").read_bytes()


def archive() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as z:
        z.writestr("model/data.pkl", b"x")
    return made.getvalue()


SAFETENSORS = b'{"__metadata__":{"format":"pt"}}'
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 4368438944\n" % (
    b"0" * 64
)

# The file's contents, and a pattern for the message.
ROWS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not a GGUF file but an empty one: download it again"),
    "LFS pointer": (POINTER, "but a Git LFS pointer, .*'git lfs pull'"),
    "safetensors": (
        struct.pack("<Q", len(SAFETENSORS)) + SAFETENSORS + bytes(100),
        "but a safetensors file: convert it to GGUF first, .*convert_hf_to_gguf.py",
    ),
    "zip": (archive(), r"but a zip archive \(.*unpack it"),
    "PyTorch, older": (b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.ctorch", "a model file of PyTorch"),
    "GGML": (b"tjgg" + bytes(100), "but a GGML file, the format before GGUF"),
    "HTML": (b"\n<!DOCTYPE html><html>", "but a web page: .*/resolve/, not /blob/"),
    "JSON": (b'{\n  "version": "1.0"}', "but JSON: pass the GGUF file"),
    "gzip": (gzip.compress(MODEL), "but a compressed file: decompress it"),
    "Zstandard": (b"\x28\xb5\x2f\xfd" + bytes(100), "but a compressed file"),
    "zeros": (bytes(5000), "but a file of zeros, .*download it again"),
    "something": (b"something else", "not a GGUF file: it does not begin with 'GGUF'$"),
    "a few letters": (b"GG", "not a GGUF file: it does not begin with 'GGUF'$"),
    "cut off in the header": (
        MODEL[:20],
        r"cut off: it has 20 bytes, .* \(the file ends inside the GGUF header, .*download it again",
    ),
    "cut off in the keys": (MODEL[:200], "cut off: it has 200 bytes"),
    "cut off in the tokens": (MODEL[: len(MODEL) // 2], "cut off: .*tokenizer.ggml.*download it"),
    # A file that isn't truncated: the message doesn't say so.
    "malformed": (MODEL[:40] + b"\xff" * 200, "^((?!cut off).)*$"),
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("way", ["path", "bytes", "file", "list"])
def test_files_that_are_something_else(tmp_path: Path, row: str, way: str) -> None:
    data, says = ROWS[row]
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    if way == "list":
        (model,) = listing.list_models([str(tmp_path)])
        assert model.error is not None
        with pytest.raises(GGUFError, match=says):
            raise GGUFError(model.error)
        return
    with path.open("rb") as f, pytest.raises(GGUFError, match=says) as caught:
        ggtok.load({"path": path, "bytes": data, "file": f}[way])
    if way != "bytes":
        assert str(caught.value).startswith(f"{path}: ")


def test_a_large_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(MODEL[:2000])
    monkeypatch.setattr(diagnose, "_MOST", 1999)
    monkeypatch.setattr(diagnose, "_HEAD", 100)
    with pytest.raises(GGUFError, match=r"^((?!cut off).)*$"):
        ggtok.load(path)
    assert diagnose._read_head(path.__fspath__()) == (MODEL[:100], 2000)


def test_a_file_that_is_gone_or_no_file(tmp_path: Path) -> None:
    """The file may be gone, or replaced by something else, by the time the message is created."""
    assert diagnose._read_head(str(tmp_path / "none")) == (b"", None)
    assert diagnose._read_head(os.devnull) == (b"", None)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")  # a FIFO without a writer
        assert diagnose._read_head(str(tmp_path / "pipe")) == (b"", None)
    assert (
        diagnose.explain_parse_error("bad", None, str(tmp_path / "none"), None, lambda _: True)
        == "bad"
    )
