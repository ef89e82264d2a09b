"""``ggtok extract``: writes the same vocabulary, without the weights."""

from __future__ import annotations

import json
import os
import struct
import warnings
from pathlib import Path

import pytest

import ggtok
from tests.cli.command import BPE, LLAMA3, SPM, spawn
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF
from tests.support.servers import File, Server
from tests.support.vocabularies import fixture, fixture_names

TEXTS = [b"Hello, world! 12345", "É ∑ 日本 \U0001fae8".encode(), b" <s></s><|eot_id|>\n\n  a\xff"]


def ids(path: str | Path) -> list[list[int]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(path)
    return [tok.encode(text, parse_special=special) for text in TEXTS for special in (False, True)]


def reference_ids(llama: LlamaCpp, path: Path) -> list[list[int]]:
    vocab = llama.load(path)
    return [vocab.tokenize(text, True, special) for text in TEXTS for special in (False, True)]


@pytest.mark.parametrize("name", [n for n in fixture_names() if n not in ("none", "test")])
def test_equal_ids_and_values(run, name: str, llama: LlamaCpp, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    result = run("extract", str(fixture(name)), str(out))
    assert (result.status, result.errors) == (0, [])
    assert result.out == f"{out}: {out.stat().st_size / 1000:.1f} kB\n".encode()
    other = tmp_path / "other.gguf"
    assert run("extract", str(fixture(name)), "-o", str(other)).status == 0
    assert other.read_bytes() == out.read_bytes()
    was, now = GGUF.read(fixture(name)), GGUF.read(out)
    assert (now.version, now.order) == (3, "<")
    assert list(now.raw) == list(was.raw)
    if was.order == "<":
        assert now.raw == was.raw
    else:
        for key in map(bytes.decode, was.raw):
            assert (now.type(key), now.get(key)) == (was.type(key), was.get(key)), key
    assert ids(out) == ids(fixture(name)) == reference_ids(llama, out)


def test_every_type_of_value(run, tmp_path: Path) -> None:
    """Values of all types are copied exactly in both byte orders, even a NaN's payload and a bool
    with the value 2."""
    raw = {  # values in big-endian order, by type
        0: b"\x01", 1: b"\xfe", 2: b"\x01\x02", 3: b"\xff\x02", 4: b"\1\2\3\4", 5: b"\xf1\2\3\4",
        6: b"\x7f\xa0\x12\x34", 7: b"\x02", 10: bytes(range(1, 9)), 11: bytes(range(0xF1, 0xF9)),
        12: b"\x7f\xf4\1\2\3\4\5\6",
    }  # fmt: skip
    big, little = GGUF.read(fixture("big-endian")), {}
    for kind, value in raw.items():
        two = value + bytes(len(value))
        big.raw[b"x.%d" % kind] = struct.pack(">I", kind) + value
        big.raw[b"x.array.%d" % kind] = struct.pack(">IIQ", 9, kind, 2) + two
        swapped = value[::-1]
        little[b"x.%d" % kind] = struct.pack("<I", kind) + swapped
        little[b"x.array.%d" % kind] = struct.pack("<IIQ", 9, kind, 2) + swapped + bytes(len(value))
    big.raw[b"x.none"] = struct.pack(">IIQ", 9, 8, 0)
    little[b"x.none"] = struct.pack("<IIQ", 9, 8, 0)
    path, out, again = big.write(tmp_path / "big.gguf"), tmp_path / "out", tmp_path / "again"
    assert run("extract", str(path), str(out)).status == 0
    read = GGUF.read(out).raw
    assert {key: read[key] for key in little} == little
    assert run("extract", "-m", str(out), str(again)).status == 0
    assert again.read_bytes() == out.read_bytes()


def with_weights(path: Path) -> Path:
    """Writes the same vocabulary to a file with tensors, using the gguf package."""
    import numpy as np
    from gguf import GGUFWriter

    source = GGUF.read(LLAMA3)
    writer = GGUFWriter(str(path), "llama")
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", "llama-bpe")
    for key in "tokens", "token_type", "merges":
        writer.add_array(f"tokenizer.ggml.{key}", source.array(f"tokenizer.ggml.{key}"))
    for i in range(3):
        writer.add_tensor(f"blk.{i}.weight", np.ones((1000, 100), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_no_tensors(run, llama: LlamaCpp, tmp_path: Path) -> None:
    from gguf import GGUFReader

    path, out = with_weights(tmp_path / "model.gguf"), tmp_path / "out.gguf"
    assert run("extract", str(path), str(out)).status == 0
    assert out.stat().st_size < path.stat().st_size - 3 * 400_000
    assert len(GGUFReader(path).tensors) == 3 and GGUFReader(out).tensors == []
    assert ids(out) == ids(path) == reference_ids(llama, out)


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """Writes a split model: all key/value pairs are in the first file."""
    paths = [tmp_path / f"model-0000{i}-of-00002.gguf" for i in (1, 2)]
    first, second = GGUF.read(LLAMA3), GGUF(3, "<")
    for number, part in enumerate([first, second]):
        part.set("split.no", number, "u16")
        part.set("split.count", 2, "u16")
        part.set("split.tensors.count", 0, "i32")
        part.write(paths[number])
    return paths


def test_split_models(run, shards: list[Path], llama: LlamaCpp, tmp_path: Path) -> None:
    for path in shards:
        out = tmp_path / "out.gguf"
        assert run("extract", str(path), str(out)).status == 0
        assert out.read_bytes() == Path(LLAMA3).read_bytes()
        assert reference_ids(llama, out) == ids(path)
    shards[0].unlink()
    assert "is missing" in run("extract", str(shards[1]), str(out)).errors[0]


def test_remote_headers(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    path, out, local = with_weights(tmp_path / "m.gguf"), tmp_path / "out", tmp_path / "local"
    path.write_bytes(path.read_bytes() + bytes(8 << 20))
    assert run("extract", str(path), str(local)).status == 0
    with Server() as server:
        server.files["/model.gguf"] = File(path)
        result = run("extract", server.url("/model.gguf"), str(out), "--json")
        assert server.sent < 3 << 20
    assert out.read_bytes() == local.read_bytes()
    assert json.loads(result.out) == {"path": str(out), "bytes": out.stat().st_size}


def test_models_of_other_tools(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model's name may resolve to a local file; extract refuses to overwrite that file."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--user--repo"
    (folder / "blobs").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("a" * 40)
    snapshot = folder / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    blob = folder / "blobs" / "b"
    blob.write_bytes(Path(SPM).read_bytes())
    (snapshot / "model.gguf").symlink_to(blob)
    name, out = "hf://user/repo/model.gguf", tmp_path / "out.gguf"
    assert run("extract", name, str(out)).status == 0
    assert out.read_bytes() == Path(SPM).read_bytes()
    assert run("extract", name, str(blob)).status == 2


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no /dev/stdout")
def test_streams(run, tmp_path: Path) -> None:
    """Only the file is written to standard output."""
    result = spawn(["extract", BPE, "/dev/stdout"], tmp_path)
    assert (result.returncode, result.stdout) == (0, Path(BPE).read_bytes())
    for command in ("extract", BPE, "-"), ("encode", BPE, BPE, "-o", "-"):
        assert "standard output" in run(*command).errors[0]


def test_faults_name_the_file(run, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(Path(BPE).read_bytes()[:1000])
    for command in "extract", "doctor", "parity":
        words = [str(path), *(["out.gguf"] if command == "extract" else [])]
        assert run(command, *words).errors[0].startswith(f"ggtok: error: {path}: ")
    with (
        os.fdopen(os.open(path, os.O_RDONLY), "rb") as file,
        pytest.raises(ggtok.GGUFError, match=r"^the open file: "),
    ):
        ggtok.load(file)


def test_the_source_is_refused(run, shards: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(Path(BPE).read_bytes())
    (tmp_path / "link.gguf").symlink_to(path)
    os.link(path, tmp_path / "hard.gguf")
    cases = [(path, path), (path, tmp_path / "link.gguf"), (tmp_path / "link.gguf", path)]
    cases += [(path, tmp_path / "hard.gguf"), (path, tmp_path / "." / "x" / ".." / "model.gguf")]
    cases += [(a, b) for a in shards for b in shards]
    cases += [(shards[0], tmp_path / "model-00007-of-00002.gguf")]
    (tmp_path / "x").mkdir()
    before = {p: p.read_bytes() for p in tmp_path.glob("*.gguf")}
    for source, out in cases:
        result = run("extract", str(source), str(out))
        assert result.status == 2
        assert result.errors == [
            f"ggtok: error: {out} is the source itself: choose another name"
        ], (
            source,
            out,
        )
    assert {p: p.read_bytes() for p in tmp_path.glob("*.gguf")} == before


def test_nothing_half_written_stays(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.gguf"
    out.write_bytes(b"GGUF was there")

    for error in OSError(28, "No space left on device"), KeyboardInterrupt():

        def fail(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(os, "replace", fail)
        result = run("extract", BPE, str(out))
        assert result.status == (2 if isinstance(error, OSError) else 130)
        assert os.listdir(tmp_path) == ["out.gguf"]
        assert out.read_bytes() == b"GGUF was there"
    monkeypatch.undo()
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(Path(BPE).read_bytes()[:5000])
    for source in str(bad), str(fixture("none").with_name("README.md")), "", str(tmp_path):
        result = run("extract", source, str(out))
        assert (result.status, len(result.errors)) == (2, 1), source
    result = run("extract", BPE, str(tmp_path / "missing" / "out.gguf"))
    assert result.errors == [
        f"ggtok: error: {tmp_path / 'missing' / 'out.gguf'}: the folder {tmp_path / 'missing'} "
        "doesn't exist"
    ]
    assert run("extract", BPE, str(tmp_path)).errors == [
        f"ggtok: error: {tmp_path}: Is a directory"
    ]
    assert sorted(os.listdir(tmp_path)) == ["bad.gguf", "out.gguf"]


def test_faulty_vocabularies(run, tmp_path: Path) -> None:
    """A vocabulary that llama.cpp can't load is rejected, except for an unknown pre-tokenizer,
    which a newer llama.cpp may know."""
    source, out = GGUF.read(BPE), tmp_path / "out.gguf"
    source.set("tokenizer.ggml.pre", "tomorrow")
    path = source.write(tmp_path / "model.gguf")
    result = run("extract", str(path), str(out))
    assert (result.status, result.errors) == (0, [])
    assert len(result.warnings) == 1 and "know the pre-tokenizer 'tomorrow'" in result.warnings[0]
    assert out.read_bytes() == path.read_bytes()
    assert run("extract", str(path), str(out), "-q").warnings == []
    out.unlink()
    source.remove("tokenizer.ggml.tokens")
    result = run("extract", str(source.write(path)), str(out))
    assert (result.status, len(result.errors), out.exists()) == (2, 1, False)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no model: give a GGUF file or a model's name"),
        ([BPE], "no file to write: give its name after the model's"),
        ([BPE, "a", "b"], "unexpected argument: 'b'"),
        (["missing.gguf", "out"], "missing.gguf: no such file"),
    ],
)
def test_usage(run, argv: list[str], message: str) -> None:
    result = run("extract", *argv)
    assert result.status == 2
    assert result.errors[0].lower().startswith(f"ggtok: error: {message}".lower())
