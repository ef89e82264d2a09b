"""The ids that the formats' own readers read equal the ids from ``encode`` for each document."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok.corpora import id_formats, vocabulary_hash
from tests.files import megatron
from tests.files.corpus import Ids, cut, documents, files_of, ids_of, raw_ids
from tests.support import samples
from tests.support.full import Lazy
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

pa: Any = Lazy("pyarrow")

Load = Callable[[str], ggtok.Tokenizer]
TEXTS = [text.replace("\n", " ") for text in documents(1, 300)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("\n".join(TEXTS))
    return path


def read_raw(folder: Path, dtype: str) -> Ids:
    return raw_ids(folder / "o", np.dtype(dtype).newbyteorder("<").str)


def read_npy(folder: Path, dtype: str) -> Ids:
    ids, offsets = (np.load(folder / name, mmap_mode="r") for name in ("o", "o.offsets.npy"))
    assert ids.dtype == dtype and offsets.dtype == np.int64
    return cut(ids, offsets)


def read_arrow(folder: Path, dtype: str) -> Ids:
    with pa.memory_map(str(folder / "o")) as file:
        reader = pa.ipc.open_file(file)
        table = reader.read_all()
        assert reader.num_record_batches > 3
        table.validate(full=True)
    assert table.schema == pa.schema(
        [pa.field("ids", pa.large_list(getattr(pa, dtype)()), nullable=False)]
    )
    return table["ids"].to_pylist()


def read_megatron(folder: Path, dtype: str) -> Ids:
    module = megatron.module()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = module.IndexedDataset(str(folder / "o"), mmap=True)
    assert np.dtype(data.index.dtype) == dtype
    assert list(data.document_indices) == list(range(len(data) + 1))
    ids = [data[i].tolist() for i in range(len(data))]
    assert ids == by_layout(folder / "o.bin", folder / "o.idx")
    return ids


def by_layout(data: Path, index: Path) -> Ids:
    """Reads Megatron's files according to their documented layout, without Megatron's code."""
    head = index.read_bytes()
    magic, version, code, n, n_documents = struct.unpack_from("<9sQBQQ", head)
    assert (magic, version, n_documents) == (b"MMIDIDX\0\0", 1, n + 1)
    lengths = np.frombuffer(head, "<i4", n, 34)
    pointers = np.frombuffer(head, "<i8", n, 34 + 4 * n)
    last = np.frombuffer(head, "<i8", n + 1, 34 + 12 * n)
    assert len(head) == 34 + 12 * n + 8 * (n + 1) and last.tolist() == list(range(n + 1))
    kind = np.dtype({4: "<i4", 8: "<u2"}[code])
    ids = data.read_bytes()
    return [
        np.frombuffer(ids, kind, length, at).tolist()
        for length, at in zip(lengths, pointers, strict=True)
    ]


def by_layout_in(folder: Path, dtype: str) -> Ids:
    return by_layout(folder / "o.bin", folder / "o.idx")


READERS = {"raw": read_raw, "npy": read_npy, "arrow": read_arrow, "megatron": read_megatron}
FORMATS = ["raw", "npy", "megatron", pytest.param("arrow", marks=pytest.mark.full)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["uint16", "uint32", "int32"])
def test_read_back(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, source: Path, format: Any, dtype: Any
) -> None:
    if (format, dtype) == ("megatron", "uint32"):
        return  # test_sources.py tests the error for this case
    summary = tok.encode_files(source, tmp_path / "o", format=format, dtype=dtype, separator="\n")
    ids = READERS[format](tmp_path, dtype)
    assert ids == ids_of(tok, TEXTS, tok.eos_id)
    assert summary.documents == len(ids) and summary.ids == sum(map(len, ids))
    assert set(map(Path, summary.files)) == set(tmp_path.iterdir()) - {source}


@pytest.mark.parametrize("format", FORMATS)
def test_outputs_without_documents(tok: ggtok.Tokenizer, tmp_path: Path, format: Any) -> None:
    """Outputs without documents, and documents without ids, are readable."""
    (tmp_path / "in.txt").write_bytes(b"")
    made: Any = {"format": format, "dtype": "uint16"}
    tok.encode_files(tmp_path / "in.txt", tmp_path / "o", errors="skip", **made)
    if format != "arrow":
        # Megatron can't map an empty file.
        read = READERS[format] if format != "megatron" else by_layout_in
        assert read(tmp_path, "uint16") == []
        (tmp_path / "in.txt").write_bytes(b"\n\na\n")
        made |= {"errors": "replace", "add_special": False, "eos": False, "separator": "\n"}
        tok.encode_files(tmp_path / "in.txt", tmp_path / "o", resume=False, **made)
        assert READERS[format](tmp_path, "uint16") == [[], [], tok.encode("a", add_special=False)]
    else:
        assert pa.ipc.open_file(tmp_path / "o").read_all().num_rows == 0


def test_names(tok: ggtok.Tokenizer, tmp_path: Path, source: Path) -> None:
    rows: list[tuple[Any, str, set[str]]] = [
        ("raw", "t.bin", {"t.bin", "t.bin.offsets"}),
        ("npy", "t.npy", {"t.npy", "t.offsets.npy"}),
        ("npy", "t", {"t", "t.offsets.npy"}),
        ("megatron", "t", {"t.bin", "t.idx"}),
        ("megatron", "t.bin", {"t.bin", "t.idx"}),
        *([("arrow", "t.arrow", {"t.arrow"})] if samples.FULL else []),
    ]
    for n, (format, out, names) in enumerate(rows):
        folder = tmp_path / str(n)
        folder.mkdir()
        summary = tok.encode_files(source, folder / out, format=format)
        assert {path.name for path in folder.iterdir()} == names | {f"{out}.manifest.json"}
        assert [Path(name).name for name in summary.files][-1] == f"{out}.manifest.json"


def test_the_extension_selects_the_format(
    tok: ggtok.Tokenizer, tmp_path: Path, source: Path
) -> None:
    """Without `format`, the file extension selects the format. If the two disagree, the error names
    the right format."""
    for out, format in (("t.npy", "npy"), ("t.NPY", "npy"), ("t.bin", "raw"), ("t.tokens", "raw")):
        assert tok.encode_files(source, tmp_path / out, resume=False, force=True).format == format
    assert np.load(tmp_path / "t.npy").dtype == np.uint16
    rows: list[tuple[str, Any, str]] = [
        ("u.npy", "raw", r"a .npy file can't have the format 'raw', only 'npy'"),
        ("u.arrow", "npy", r"a .arrow file can't have the format 'npy', only 'arrow'"),
        ("u.bin", "npy", r"a .bin file can't have the format 'npy', only 'raw'"),
        ("u.parquet", None, r"u.parquet: ids aren't written as .parquet; name the output .*u.bin"),
        ("u.bin.gz", "raw", r"ids aren't written as .gz"),
        ("u.idx", "megatron", r"ids aren't written as .idx"),
        ("u.npy", "zip", "format must be one of"),
    ]
    for out, format, message in rows:
        with pytest.raises(ggtok.InvalidValueError, match=message):
            tok.encode_files(source, tmp_path / out, format=format)
    assert not list(tmp_path.glob("u*"))


@pytest.mark.full
def test_the_extension_selects_arrow(tok: ggtok.Tokenizer, tmp_path: Path, source: Path) -> None:
    for out in ("t.arrow", "t.feather", "t.ipc"):
        assert tok.encode_files(source, tmp_path / out).format == "arrow"
        assert pa.ipc.open_file(tmp_path / out).read_all().num_rows == 1


def test_dtypes(tok: ggtok.Tokenizer) -> None:
    """The dtype "auto" is the smallest type that fits all ids; for Megatron, its own rule
    applies."""
    from ggtok.corpora.id_formats import choose_format

    rows = [
        ("raw", 65536, "uint16"),
        ("raw", 65537, "uint32"),
        ("npy", 65536, "uint16"),
        ("arrow", 200000, "uint32"),
        ("megatron", 65499, "uint16"),
        ("megatron", 65500, "int32"),
    ]
    for format, n, dtype in rows:
        assert choose_format(format, "auto", n)[1] == dtype
    module = megatron.module()
    for n in (65499, 65500):
        chosen = module.DType.optimal_dtype(n)
        assert np.dtype(chosen) == choose_format("megatron", "auto", n)[1]
    with pytest.raises(ggtok.InvalidValueError, match=r"ids below 65,536.*65537 tokens"):
        choose_format("raw", "uint16", 65537)


def test_a_document_too_long_for_megatron(
    tok: ggtok.Tokenizer, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_formats, "_MOST", 100)
    with pytest.raises(ggtok.FileError, match=r"a document has \d+ ids, and Megatron's index"):
        tok.encode_files(source, tmp_path / "o", format="megatron")


@pytest.mark.parametrize(
    ("name", "adds"),
    [("bpe-llama3", False), ("spm", True), ("ugm", True), ("wpm", True), ("bpe-gpt2", True)],
)
@pytest.mark.parametrize("add_special", [True, False])
def test_documents_end_with_one_eos(
    tmp_path: Path, source: Path, name: str, adds: bool, add_special: bool
) -> None:
    """Documents end with one EOS, even if the vocabulary adds EOS itself. They begin with BOS only
    if add_special is set."""
    gguf = GGUF.read(fixture(name))
    gguf.set("tokenizer.ggml.eos_token_id", 3)
    if name != "wpm":  # in WPM, 3 is SEP, which is always added
        gguf.set("tokenizer.ggml.add_eos_token", adds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(gguf.dump())
    tok.encode_files(source, tmp_path / "o", separator="\n", add_special=add_special)
    plain = [tok.encode(text, add_special=add_special) for text in TEXTS]
    ids = raw_ids(tmp_path / "o")
    if adds and add_special:
        assert all(each[-1] == 3 for each in plain) and ids == plain
    else:
        assert ids == [[*each, 3] for each in plain]
    tok.encode_files(source, tmp_path / "p", separator="\n", add_special=add_special, eos=False)
    assert raw_ids(tmp_path / "p") == plain


def test_no_eos(load_fixture: Load, tmp_path: Path, source: Path) -> None:
    tok = load_fixture("wpm")
    assert tok.eos_id is None
    with pytest.raises(ggtok.InvalidValueError, match="no EOS token: pass eos=False"):
        tok.encode_files(source, tmp_path / "o")
    tok.encode_files(source, tmp_path / "o", eos=False, separator="\n")
    assert raw_ids(tmp_path / "o") == ids_of(tok, TEXTS, None)
    with pytest.raises(ggtok.VocabError):
        load_fixture("none").encode_files(source, tmp_path / "q", eos=False)


@pytest.mark.parametrize("name", ["spm", "ugm", "rwkv", "plamo2", "bpe-gemma4", "test"])
def test_long_documents_of_other_models(
    load_fixture: Load, tmp_path: Path, small: None, name: str
) -> None:
    """Long documents are encoded in parts if the vocabulary type allows this, otherwise as a
    whole."""
    tok = load_fixture(name)
    text = " ".join(documents(2, 100)).encode()
    (tmp_path / "a.txt").write_bytes(text)
    tok.encode_files(tmp_path / "a.txt", tmp_path / "o", eos=False, dtype="int32", threads=2)
    assert raw_ids(tmp_path / "o", "<i4") == [tok.encode(text)]


def test_the_manifest(tok: ggtok.Tokenizer, tmp_path: Path, source: Path) -> None:
    import json
    import zlib

    (tmp_path / "more.jsonl").write_text('{"text": "a"}\n{}\n' * 3)
    for format in ("raw", "npy", "megatron", *(["arrow"] if samples.FULL else [])):
        out = tmp_path / f"o.{format}"
        summary = tok.encode_files(
            [source, tmp_path / "more.jsonl"], out, format=format, separator="\n", errors="skip"
        )
        manifest = json.loads((tmp_path / f"o.{format}.manifest.json").read_text())
        assert manifest["counts"] == {name: getattr(summary, name) for name in manifest["counts"]}
        assert [row["documents"] for row in manifest["sources"]] == [300, 3]
        assert manifest["model"]["n_tokens"] == tok.n_tokens
        assert manifest["versions"]["ggtok"] == ggtok.__version__
        for file in manifest["files"]:
            data = (tmp_path / file["name"]).read_bytes()
            assert len(data) == file["bytes"]
            assert f"{zlib.crc32(data[file['header_bytes'] :]):08x}" == file["crc32"]


def test_the_models_identity(tmp_path: Path, source: Path) -> None:
    """A vocabulary has the same identity whether it is loaded from a path or from memory. If the
    memory isn't kept, the identity is a hash of the tokens and their ids."""
    path = fixture("bpe-llama3")
    data = path.read_bytes()
    hashes = [
        vocabulary_hash.identity(ggtok.load(source)._loaded)["sha256"]
        for source in (path, data, bytearray(data), bytearray(data))
    ]
    assert hashes[0] == hashes[1] != hashes[2] == hashes[3]
    split = tmp_path / "m-00001-of-00002.gguf"
    split.write_bytes(data)
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(b"")
    tok = ggtok.load(tmp_path / "m-00002-of-00002.gguf")
    assert vocabulary_hash.identity(tok._loaded)["sha256"] == hashes[0]
    split.unlink()
    with pytest.raises(FileNotFoundError):
        vocabulary_hash.identity(tok._loaded)
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(data)
    tok = ggtok.load(copy)
    copy.unlink()
    with pytest.raises(FileNotFoundError):
        tok.encode_files(source, tmp_path / "o")


@pytest.mark.full
def test_threads_and_batches_change_nothing(
    tok: ggtok.Tokenizer, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are identical for every number of threads."""
    made = []
    for threads in (1, 2, 7):
        folder = tmp_path / str(threads)
        folder.mkdir()
        tok.encode_files(source, folder / "o", separator="\n", threads=threads, format="arrow")
        made.append(files_of(folder, "o"))
    assert made[0] == made[1] == made[2]
