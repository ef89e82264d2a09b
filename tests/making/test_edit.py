"""ggtok.edit changes the metadata and nothing else, whatever happens meanwhile."""

from __future__ import annotations

import io
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

import ggtok
from ggtok.loading.loaded import JOURNAL
from ggtok.vocabularies.edit import place, saved
from ggtok.vocabularies.edit.header import PADDING, Header
from tests.support.full import full
from tests.support.samples import times
from tests.support.tensors import with_tensors
from tests.support.vocabularies import fixture, fixture_names

NAME = "general.name"
UNDO = saved.UNDO


def tensors(path: Path) -> dict[str, bytes]:
    import gguf

    return {t.name: bytes(t.data.tobytes()) for t in gguf.GGUFReader(path).tensors}


def header_of(path: Path) -> bytes:
    """Returns the header of a file up to the tensors' data."""
    with path.open("rb") as file:
        end = Header(file, str(path)).data_offset
    return path.read_bytes()[:end]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return with_tensors(tmp_path / "model.gguf")


def test_every_length_keeps_the_tensors(tmp_path: Path) -> None:
    """The values fit in place, are too long by a few bytes, or are much longer."""
    seen = set()
    for alignment in (None, 64):
        path = with_tensors(tmp_path / f"{alignment}.gguf", alignment=alignment)
        before = tensors(path)
        ggtok.edit(path, {NAME: "x" * 200})
        for n in [*range(100, 280, times(9, of=1)), *range(196, 204), 0, 5000, 1]:
            size = path.stat().st_size
            planned = ggtok.edit(path, {NAME: "y" * n}, dry_run=True)
            edited = ggtok.edit(path, {NAME: "y" * n})
            assert edited == planned
            seen.add(edited.in_place)
            assert tensors(path) == before, n
            tok = ggtok.load(path)
            assert tok.metadata[NAME] == "y" * n
            assert (path.stat().st_size == size) or not edited.in_place
            assert tok == ggtok.load(path.read_bytes())
    assert seen == {True, False}


def test_values_of_every_type(model: Path) -> None:
    new = {
        "x.bool": True,
        "x.int": 7,
        "x.negative": -7,
        "x.large": 1 << 63,
        "x.float": 0.5,
        "x.str": "caf\u00e9",
        "x.bytes": b"\xff\xfe",
        "x.ints": [1, -2],
        "x.floats": [0.5],
        "x.strings": ["a", "b"],
        "x.bools": [True, False],
    }
    ggtok.edit(model, new)
    tok = ggtok.load(model)
    assert {key: tok.metadata[key] for key in new if not isinstance(new[key], list)} == {
        **{key: value for key, value in new.items() if not isinstance(value, list)},
        "x.bytes": "\udcff\udcfe",
    }
    import gguf

    fields = gguf.GGUFReader(model).fields
    arrays = {key: value for key, value in new.items() if isinstance(value, list)}
    assert {key: fields[key].contents() for key in arrays} == arrays
    edited = ggtok.edit(model, {"x.ints[1]": 5, "x.strings[0]": "long", "x.bool": None})
    assert [(c.key, c.before, c.after) for c in edited.changes] == [
        ("x.ints[1]", -2, 5),
        ("x.strings[0]", "a", "long"),
        ("x.bool", True, None),
    ]
    assert "x.bool" not in ggtok.load(model).metadata


def test_numpy_values(model: Path) -> None:
    import numpy as np

    new = {"x.int": np.int64(7), "x.bool": np.bool_(True), "x.floats": np.array([0.5, 2])}
    ggtok.edit(model, {**new, "x.ints": [np.uint8(3), 4]})
    edited = ggtok.edit(model, {"x.ints[1]": np.int32(5), "x.floats": None, "x.int": None})
    assert [(c.before, c.after) for c in edited.changes] == [(4, 5), ([0.5, 2.0], None), (7, None)]
    assert ggtok.load(model).metadata["x.bool"] is True
    with pytest.raises(ggtok.InvalidTypeError, match=r"^x\.new: a value must be"):
        ggtok.edit(model, {"x.new": np.array(["2026"], "datetime64[s]")})


def test_warnings_of_the_edited_vocabulary(model: Path) -> None:
    """A warning that the file had before isn't repeated, nor are those of a faulty vocabulary."""
    key = "tokenizer.ggml.eos_token_id"
    edited = ggtok.edit(model, {key: 99999})
    assert edited.warnings[0].startswith(f"key '{key}' is 99999, but the vocabulary has")
    assert not ggtok.edit(model, {"general.name": "x"}).warnings
    assert not ggtok.edit(model, {"general.name": "x"}).warnings  # nothing changes
    faulty = {"tokenizer.ggml.pre": "unknown"}
    assert not ggtok.edit(model, faulty, dry_run=True, force=True).warnings


def test_many_elements(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many elements of an array are changed at once: the array isn't decoded and encoded for each
    of them."""
    from ggtok.vocabularies.edit.header import ARRAY, Header

    encoded = Header.encoded
    arrays = []

    def counted(self: Header, kind: int, *args: object) -> object:
        arrays.append(kind == ARRAY)
        return encoded(self, kind, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Header, "encoded", counted)
    key, types = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
    changes = {f"{key}[{id}]": f"token {id}" for id in range(0, 680, 2)}
    changes |= {f"{types}[{id}]": 4 for id in range(600)}
    edited = ggtok.edit(model, changes, force=True)
    assert sum(arrays) == 1 and len(edited.changes) == len(changes)
    monkeypatch.undo()
    tok = ggtok.load(model)
    texts = ggtok.vocabulary(model).texts
    assert [texts[id] for id in range(0, 680, 2)] == [b"token %d" % id for id in range(0, 680, 2)]
    assert texts[1] == ggtok.vocabulary(fixture("bpe-llama3")).texts[1]
    assert tok.n_tokens == 680
    # If an element and the whole array are both changed, the later change wins.
    a, b = [str(i) for i in range(680)], [f"x{i}" for i in range(680)]
    for later in ({f"{key}[0]": "y", key: a}, {key: b, f"{key}[1]": "1", key + "[0]": "0"}):
        ggtok.edit(model, later, force=True)
        assert ggtok.vocabulary(model).texts[:2] == [b"0", b"1"]


def test_undo_restores_every_byte(model: Path) -> None:
    original = model.read_bytes()
    for changes in ({NAME: "a"}, {NAME: "b" * 5000}, {"tokenizer.ggml.pre": "qwen2"}):
        ggtok.edit(model, changes)
        assert model.read_bytes() != original
        assert ggtok.undo(model) == str(model)
        assert model.read_bytes() == original
        with pytest.raises(ggtok.FileError, match="nothing to undo"):
            ggtok.undo(model)
        assert os.listdir(model.parent) == [model.name]
    ggtok.edit(model, {NAME: "a"})
    with model.open("r+b") as file:
        file.seek(100)
        file.write(b"!")
    with pytest.raises(ggtok.FileError, match="isn't as the edit left it"):
        ggtok.undo(model)


def test_undo_walks_back_every_step(model: Path) -> None:
    """The edits fit in place, don't fit, change nothing, or restore an earlier state."""
    states = [model.read_bytes()]
    for value in ("a" * 200, "b" * 200, "c" * 5000, "c" * 5000, "d", "a" * 200, "b" * 200, None):
        ggtok.edit(model, {NAME: value})
        if model.read_bytes() != states[-1]:
            states.append(model.read_bytes())
    assert len(states) == 8
    names = {UNDO, *(f"{UNDO}-{n}" for n in range(2, 8))}
    assert {*os.listdir(model.parent)} == {model.name, *(f"{model.name}{name}" for name in names)}
    ggtok.undo(model)
    ggtok.edit(model, {NAME: "another"})
    ggtok.undo(model)
    for state in states[-2::-1]:
        assert model.read_bytes() == state or ggtok.undo(model)
        assert model.read_bytes() == state
    assert os.listdir(model.parent) == [model.name]


def test_an_undo_file_whose_edit_never_happened(model: Path) -> None:
    """The process was killed between saving the header and renaming the new file."""
    original = model.read_bytes()
    ggtok.edit(model, {NAME: "a" * 200})
    edited, header = model.read_bytes(), header_of(model)
    saved.save_header(str(model), f"{model}{UNDO}-2", header, b"never written", len(edited))
    ggtok.edit(model, {NAME: "b"})
    ggtok.undo(model)
    assert model.read_bytes() == edited
    ggtok.undo(model)
    assert model.read_bytes() == original
    assert os.listdir(model.parent) == [model.name]


def test_nothing_to_change_writes_nothing(model: Path) -> None:
    """Values that the file stores in the same bytes aren't changes: 0.1 is stored in single
    precision."""
    values = {NAME: "a", "x.float": 0.1, "x.floats": [0.1, 1], "x.nan": float("nan"), "x.s": ["a"]}
    ggtok.edit(model, values)
    before, time = model.stat()[:7], model.stat().st_mtime_ns  # without the time of access
    (model.parent / f"{model.name}{UNDO}").unlink()
    elements = {"x.floats[0]": 0.1, "x.floats[1]": 1, "x.s[0]": b"a", "x.float": 0.1}
    for again in (values, elements):
        assert ggtok.edit(model, again).changes == ()
    assert (model.stat()[:7], model.stat().st_mtime_ns) == (before, time)
    assert not os.path.exists(f"{model}{UNDO}")
    assert len(repr(ggtok.edit(model, again))) < 1000  # without the headers


@pytest.mark.parametrize("name", fixture_names())
def test_a_new_file_of_every_fixture(name: str, tmp_path: Path) -> None:
    path, out = fixture(name), tmp_path / "out.gguf"
    edited = ggtok.edit(path, {NAME: "new name"}, out=out)
    assert (edited.path, edited.in_place) == (str(out), False)
    was, tok = ggtok.load(path), ggtok.load(out)
    assert dict(tok.metadata) == {**was.metadata, NAME: "new name"}
    assert tok.n_tokens == was.n_tokens
    assert edited.size == out.stat().st_size
    assert out.read_bytes()[:8] == Path(path).read_bytes()[:8]  # the byte order and the version
    undone = ggtok.edit(out, {NAME: was.metadata.get(NAME)}, out=tmp_path / "back.gguf")
    assert ggtok.load(undone.path) == was


def test_split_models(model: Path, tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{i}-of-00002.gguf" for i in (1, 2))
    first.write_bytes(model.read_bytes())
    second.write_bytes(model.read_bytes())
    data = second.read_bytes()
    ggtok.edit(second, {NAME: "first"})
    assert ggtok.load(first).metadata[NAME] == "first"
    assert second.read_bytes() == data
    with pytest.raises(ggtok.InvalidValueError, match=r"must end with -00001-of-00002\.gguf"):
        ggtok.edit(first, {NAME: "x"}, out=tmp_path / "x.gguf")
    ggtok.edit(first, {NAME: "x"}, out=tmp_path / "n-00001-of-00002.gguf")
    # An interrupted edit of the first file is also found by the name of any other file.
    data = first.read_bytes()
    header = header_of(first)
    saved.save_header(str(first), f"{first}{JOURNAL}", header, header, len(data), journal=True)
    with pytest.raises(ggtok.FileError, match="is running or was interrupted"):
        ggtok.load(second)
    assert ggtok.recover(second)
    assert not ggtok.recover(second)
    assert first.read_bytes() == data


def test_wrong_changes(model: Path) -> None:
    before = model.read_bytes()
    value, type_ = ggtok.InvalidValueError, ggtok.InvalidTypeError
    for changes, error, message in (
        ({"missing": None}, value, "missing: the file has no such key"),
        ({"missing[1]": 5}, value, "missing: the file has no such array"),
        ({"tokenizer.ggml.token_type[9999]": 1}, value, "the array has 680 elements"),
        ({"tokenizer.ggml.bos_token_id": "x"}, type_, "bos_token_id is uint32, not str"),
        ({"tokenizer.ggml.bos_token_id": -1}, value, "is uint32, which can't be -1"),
        ({"tokenizer.ggml.bos_token_id": True}, type_, "is uint32, not bool"),
        ({"tokenizer.ggml.tokens": "x"}, type_, "tokens is an array, not str"),
        ({"tokenizer.ggml.pre": 5}, type_, "pre is a string, not int"),
        ({"x": object()}, type_, "x: a value must be bool, int"),
        ({"x": []}, type_, "the type of an empty array is unknown"),
        ({"x": 1 << 70}, value, "can't be 1180591620717411303424"),
        ({"x": -(10**5000)}, value, "x is int64, which can't be a number of 16610 bits"),
        ({"x": "a\ud800"}, value, "x: the character 1 is a lone surrogate"),
        ({"x\ud800": 1}, value, "the character 1 is a lone surrogate"),
        ({"tokenizer.ggml.tokens[" + "9" * 5000 + "]": "x"}, value, "the array has 680 elements"),
        ({"tokenizer.ggml.tokens[" + "0" * 5000 + "680]": "x"}, value, r"tokens\[680\]: the array"),
        ({"x" * 70000: 1}, value, "keys have 1 to 65535 bytes"),
        ({"": 1}, value, "keys have 1 to 65535 bytes"),
        ({5: 1}, type_, "a key must be str, not int"),
        ({"general.alignment": 64}, value, "general.alignment says where the tensors are"),
        ({"split.count": 3}, value, "split.count says"),
        ([("a", 1)], type_, "changes must be a mapping"),
        ({"tokenizer.ggml.pre": "no-such"}, ggtok.UnknownPreTokenizerError, "no-such"),
        ({"tokenizer.chat_template": "{% if %}"}, ggtok.TemplateError, "chat_template: .*force"),
    ):
        with pytest.raises(error, match=message):
            ggtok.edit(model, changes)  # type: ignore[arg-type]
        assert model.read_bytes() == before
    assert os.listdir(model.parent) == [model.name]
    ggtok.edit(model, {"tokenizer.chat_template": "{% if %}"}, force=True)
    assert ggtok.load(model).chat_template == "{% if %}"


def test_files_that_are_not_changed_in_place(model: Path, tmp_path: Path) -> None:
    for folder, name, why in (
        ("blobs", "sha256-" + "0" * 64, "blob of Ollama's"),
        ("models--a--b/snapshots/c", "model.gguf", "cache of the Hugging Face Hub"),
    ):
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True)
        path.write_bytes(model.read_bytes())
        link = tmp_path / f"link-{path.parent.name}.gguf"
        link.symlink_to(path)
        for each in (path, link):
            with pytest.raises(ggtok.InvalidValueError, match=why):
                ggtok.edit(each, {NAME: "x"})
            assert ggtok.edit(each, {NAME: "x"}, dry_run=True).changes
        ggtok.edit(path, {NAME: "x"}, out=tmp_path / "copy.gguf")
    os.link(model, tmp_path / "other.gguf")
    with pytest.raises(ggtok.InvalidValueError, match="hard links"):
        ggtok.edit(model, {NAME: "x"})


def test_links_stay_links(model: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(model)
    for value in ("x", "x" * 5000):
        ggtok.edit(link, {NAME: value})
        assert link.is_symlink()
        assert ggtok.load(model).metadata[NAME] == value


def test_wrong_files(model: Path, tmp_path: Path) -> None:
    for dry_run in (False, True):
        with pytest.raises(ggtok.FileError, match="No such file") as missing:
            ggtok.edit(tmp_path / "missing.gguf", {NAME: "x"}, dry_run=dry_run)
        assert isinstance(missing.value, FileNotFoundError)
        with pytest.raises(ggtok.FileError, match="Is a directory"):
            ggtok.edit(tmp_path, {NAME: "x"}, dry_run=dry_run)
    (tmp_path / "text.txt").write_text("text")
    with pytest.raises(ggtok.GGUFError):
        ggtok.edit(tmp_path / "text.txt", {NAME: "x"})
    with pytest.raises(ggtok.InvalidValueError, match="exists and is not a GGUF file"):
        ggtok.edit(model, {NAME: "x"}, out=tmp_path / "text.txt")
    with pytest.raises(ggtok.InvalidValueError, match="is the source itself"):
        ggtok.edit(model, {NAME: "x"}, out=model)
    data = model.read_bytes()
    for size in range(0, len(data) - 2000, 997):
        model.write_bytes(data[:size])
        with pytest.raises(ggtok.GGUFError):
            ggtok.edit(model, {NAME: "x"})
        assert model.read_bytes() == data[:size]


# ---- interruptions ----


def in_child(run: Callable[[], None]) -> int:
    """Runs a function in a forked process; returns how the process ended."""
    pid = os.fork()
    if pid == 0:
        try:
            run()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def after(first: Callable[[], None], function: Callable[..., object]) -> Callable[..., object]:
    def both(*args: object, **kwargs: object) -> object:
        first()
        return function(*args, **kwargs)

    return both


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("value", ["fits", "longer" * 1000])
def test_killed_at_every_step(model: Path, value: str) -> None:
    """The process is killed before each system call that changes a file, and in the middle of a
    write."""
    original = model.read_bytes()
    was = ggtok.load(model)
    ends = set()
    for step in range(100):
        count = iter(range(1000))

        def stop_at(count=count, step=step) -> None:
            if next(count) == step:
                os.kill(os.getpid(), signal.SIGKILL)

        def run(stop_at=stop_at) -> None:
            for name in ("fsync", "replace", "unlink"):
                setattr(place.os, name, after(stop_at, getattr(os, name)))

            def write(file, header: bytes) -> None:
                file.seek(0)
                for at in range(0, len(header), 1 + len(header) // 7):
                    stop_at()
                    file.write(header[at : at + 1 + len(header) // 7])
                    file.flush()

            place._write_at_start = write
            ggtok.edit(model, {NAME: value})

        ended = in_child(run)
        ends.add(ended)
        if os.path.exists(f"{model}{JOURNAL}"):
            with pytest.raises(ggtok.FileError, match="is running or was interrupted"):
                ggtok.load(model)
            assert ggtok.recover(model)
        assert not ggtok.recover(model)
        if ggtok.load(model).metadata.get(NAME) == value:  # the edit was completed
            ggtok.undo(model)
        assert model.read_bytes() == original
        assert ggtok.load(model) == was
        for other in model.parent.iterdir():
            if other != model:
                other.unlink()
        if ended == 0:
            break
    assert ends == {0, -signal.SIGKILL}
    assert step > 4


@full
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_at_random_moments(model: Path) -> None:
    rng = random.Random(4)
    program = (
        "import ggtok, sys\n"
        "print(flush=True)\n"
        "for i in range(10**6):\n"
        "    ggtok.edit(sys.argv[1], {'general.name': str(i) * (1 + i % 40)})\n"
    )
    before = tensors(model)
    vocabulary = ggtok.load(model)
    for _ in range(50):
        child = subprocess.Popen([sys.executable, "-c", program, model], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(rng.random() / 10)
        child.kill()
        child.wait()
        child.stdout.close()
        ggtok.recover(model)
        assert tensors(model) == before
        tok = ggtok.load(model)
        assert [tok.token_text(i) for i in range(680)] == [
            vocabulary.token_text(i) for i in range(680)
        ]


def test_one_edit_at_a_time(model: Path) -> None:
    with place.open_locked(str(model)):
        with pytest.raises(ggtok.FileError, match="is being edited by another process"):
            ggtok.edit(model, {NAME: "x"})
        ggtok.edit(model, {NAME: "x"}, dry_run=True)


def test_a_file_that_another_edit_replaced(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is opened before the other edit ends, and locked after it."""
    fcntl = pytest.importorskip("fcntl")
    lock = fcntl.flock

    def edited_before(file: object, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        assert not ggtok.edit(model, {NAME: "x" * 5000}).in_place
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", edited_before)
    with pytest.raises(ggtok.FileError, match="was replaced while it was opened"):
        ggtok.edit(model, {NAME: "y"})
    assert ggtok.load(model).metadata[NAME] == "x" * 5000
    ggtok.undo(model)
    assert NAME not in ggtok.load(model).metadata


def test_devices_are_neither_read_nor_replaced(model: Path, tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs FIFOs")
    fifo, link = tmp_path / "fifo.gguf", tmp_path / "link.gguf"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    for out in fifo, link:
        for force in False, True:
            with pytest.raises(ggtok.FileError, match="not a regular file"):
                ggtok.edit(model, {NAME: "x"}, out=out, force=force)
    for path in fifo, link:
        for dry_run in True, False:
            with pytest.raises(ggtok.FileError, match="not a regular file"):
                ggtok.edit(path, {NAME: "x"}, dry_run=dry_run)
    assert fifo.is_fifo()


def test_a_header_that_can_not_be_written(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = model.read_bytes()
    sync = place.sync

    def fail(file: BinaryIO) -> None:
        if getattr(file, "name", None) == str(model):
            raise OSError(5, "Input/output error")
        sync(file)

    monkeypatch.setattr(place, "sync", fail)
    with pytest.raises(ggtok.FileError, match=r"Input/output error.*model\.gguf"):
        ggtok.edit(model, {"tokenizer.ggml.bos_token_id": 663})
    monkeypatch.undo()
    assert model.read_bytes() != data
    assert ggtok.recover(model)
    assert model.read_bytes() == data


def test_damaged_journals(model: Path) -> None:
    data = model.read_bytes()
    journal = Path(f"{model}{JOURNAL}")
    for content in (b"", b"ggtok-journal 2\n{}", os.urandom(1000), b"ggtok-journal 2\n" * 99):
        journal.write_bytes(content)
        with pytest.raises(ggtok.FileError, match="is damaged"):
            ggtok.recover(model)
        assert model.read_bytes() == data
    journal.unlink()
    saved.save_header(str(model), str(journal), b"old", b"new", 5, journal=True)
    with pytest.raises(ggtok.FileError, match="has changed its size"):
        ggtok.recover(model)
    assert model.read_bytes() == data


def test_a_full_disk(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = model.read_bytes()
    monkeypatch.setattr(
        place.shutil, "disk_usage", lambda path: place.shutil._ntuple_diskusage(9, 9, 9)
    )
    with pytest.raises(ggtok.FileError, match="only 9 are free"):
        ggtok.edit(model, {NAME: "x" * 9000})
    assert model.read_bytes() == data
    assert os.listdir(model.parent) == [model.name]


def test_padding_is_reused(model: Path) -> None:
    size = model.stat().st_size
    ggtok.edit(model, {NAME: "x" * 500})
    larger = model.stat().st_size
    assert larger > size
    ggtok.edit(model, {NAME: "x"})
    assert model.stat().st_size == larger
    assert PADDING in ggtok.load(model).metadata
    assert ggtok.edit(model, {NAME: "x" * 400}).in_place
    assert ggtok.edit(model, {NAME: "x" * 500}).in_place
    assert PADDING not in ggtok.load(model).metadata


def test_the_reference_loads_edited_files(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    from tests.support.llamacpp import LlamaCpp

    path = with_tensors(tmp_path / "model.gguf")
    changes = {"tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.pre": "qwen2", NAME: "x" * 99}
    ggtok.edit(path, changes)
    text = b"Hello, world's 12345 <|eot_id|> caf\xc3\xa9"
    tok = ggtok.load(path)
    with LlamaCpp() as reference:
        vocabulary = reference.load(path)
        assert tok.encode(text, parse_special=True) == vocabulary.tokenize(text, True, True)


# ---- files that others wrote next to the model ----


def forged(model: Path, name: str, old: bytes, *, present: bytes | None = None) -> Path:
    """Writes a well-formed journal or undo file that names the model's present header as the new
    one."""
    path = Path(f"{model}{name}")
    present = header_of(model) if present is None else present
    size = model.stat().st_size - len(present) + len(old)
    saved.save_header(str(model), str(path), old, present, size, journal=name == JOURNAL)
    return path


def other_header(model: Path, change: str) -> bytes:
    """Returns a header that must not replace the model's, of the same size if possible."""
    data = header_of(model)
    with model.open("rb") as file:
        header = Header(file, str(model))
    table = bytearray(header.tensors)
    table[-8] ^= 32  # the last tensor's position
    return {
        "bytes": b"#!/bin/sh\n" + bytes(len(data) - 10),
        "cut off": data[: header.size - 9] + bytes(9),
        "padding": data[: header.size],
        "zeros": bytes(len(data)),
        "empty": b"",
        "trailing": data + bytes(64),
        "tensors": data[: header.size - len(table)] + table + data[header.size :],
    }[change]


@pytest.mark.parametrize("name", [JOURNAL, UNDO])
@pytest.mark.parametrize(
    "change", ["bytes", "cut off", "padding", "zeros", "empty", "trailing", "tensors"]
)
def test_only_headers_of_the_same_model_are_restored(model: Path, name: str, change: str) -> None:
    data = model.read_bytes()
    path = forged(model, name, other_header(model, change))
    restore = ggtok.recover if name == JOURNAL else ggtok.undo
    for each in (restore, ggtok.undo):
        with pytest.raises(ggtok.FileError, match=re.escape(path.name)):
            each(model)
    if name == JOURNAL:
        with pytest.raises(ggtok.FileError, match="was interrupted"):
            ggtok.edit(model, {NAME: "x"})
    assert model.read_bytes() == data
    path.unlink()
    assert os.listdir(model.parent) == [model.name]


def test_an_interruption_leaves_only_bytes_of_both_headers(model: Path) -> None:
    """A journal is believed only if each of the file's bytes comes from one of its headers."""
    old = header_of(model)
    ggtok.edit(model, {"tokenizer.ggml.bos_token_id": 663})
    os.unlink(f"{model}{UNDO}")
    edited, new = model.read_bytes(), header_of(model)
    assert old != new and len(old) == len(new)
    rng = random.Random(1)
    mixtures = [bytes(rng.choice(pair) for pair in zip(old, new, strict=True)) for _ in range(20)]
    at = next(i for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] == pair[1])
    wrong = bytearray(new)
    wrong[at] ^= 1
    for start, valid in [(old, True), (new, True), *((m, True) for m in mixtures), (wrong, False)]:
        model.write_bytes(bytes(start) + edited[len(start) :])
        path = forged(model, JOURNAL, old, present=new)
        if valid:
            assert ggtok.recover(model)
            assert header_of(model) == old
            continue
        with pytest.raises(ggtok.FileError, match="has changed since an edit was interrupted"):
            ggtok.recover(model)
        assert model.read_bytes() == bytes(start) + edited[len(start) :]
        path.unlink()


@pytest.mark.parametrize("name", [JOURNAL, UNDO])
def test_malformed_saved_headers(model: Path, name: str) -> None:
    """Every change of a byte and every shorter file is an error, and is never restored."""
    data = model.read_bytes()
    path = forged(model, name, header_of(model))
    whole = path.read_bytes()
    rng = random.Random(1)
    damaged = [whole[:n] for n in rng.sample(range(len(whole)), 50)]
    for at in [*range(72), *rng.sample(range(72, len(whole)), 100)]:
        damaged.append(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
    for fields in (b"[" * 100_000, b"{}", b"[]", b"null", b'{"file_size": "x"}'):
        damaged.append(b"ggtok-journal 1\n" + fields + b"\n")
    damaged.append(b"ggtok-journal 2\n" + b"\xff" * 24 + whole[40:])
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ggtok.FileError, match=re.escape(path.name)):
            ggtok.undo(model)
    assert model.read_bytes() == data


@pytest.mark.skipif(not hasattr(os, "chown"), reason="needs owners of files")
def test_saved_headers_of_other_users(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else who can create files in the folder can't change the model."""
    status, data = model.stat(), model.read_bytes()
    for name in (JOURNAL, UNDO):
        path = forged(model, name, header_of(model))
        real = os.fstat

        def other_owner(handle: int, real=real, path=path) -> os.stat_result:
            found = real(handle)
            if not os.path.samestat(found, path.stat()):
                return found
            return os.stat_result((*found[:4], status.st_uid + 7, *found[5:10]))

        monkeypatch.setattr(saved.os, "fstat", other_owner)
        with pytest.raises(ggtok.FileError, match="another user owns it"):
            ggtok.undo(model)
        monkeypatch.undo()
        path.unlink()
    assert model.read_bytes() == data


def test_malformed_headers_are_errors_of_the_file(model: Path) -> None:
    """Header reads headers that the C library hasn't loaded, since a journal may contain them."""
    whole = header_of(model)
    rng = random.Random(2)
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 4))):
            at = rng.randrange(min(len(data), rng.choice((64, 2000, len(data)))))
            data[at] = rng.choice((0, 1, 255, rng.randrange(256)))
        try:
            header = Header(io.BytesIO(bytes(data)), "x")
            assert header.size <= len(data)
            assert header.data_offset - header.size < header.alignment
        except ggtok.GGTokError:
            pass


def test_a_file_that_ends_in_the_padding_before_its_data(model: Path) -> None:
    with model.open("rb") as file:
        header = Header(file, str(model))
    assert header.data_offset - header.size > 1
    data = model.read_bytes()
    for size in (header.size, header.size + 1, header.data_offset - 1):
        for value in ("x", "x" * 5000):
            model.write_bytes(data[:size])
            planned = ggtok.edit(model, {NAME: value}, dry_run=True)
            assert not planned.in_place
            assert ggtok.edit(model, {NAME: value}) == planned
            assert model.stat().st_size == planned.size
            assert ggtok.load(model).metadata[NAME] == value
            ggtok.undo(model)
            assert model.read_bytes() == data[:size]


@pytest.mark.skipif(os.name != "posix", reason="needs file modes")
def test_private_models_have_private_files(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that an edit writes has the mode of the model, or fewer bits."""
    modes: dict[str, int] = {}
    monkeypatch.setattr(saved, "sync", recording(modes, model, saved.sync))
    monkeypatch.setattr(place, "sync", saved.sync)
    model.chmod(0o600)
    for value in ("a" * 200, "b", "c" * 5000):
        ggtok.edit(model, {NAME: value})
    ggtok.undo(model)
    ggtok.undo(model)
    record_modes(modes, model.parent)
    assert len(modes) >= 8
    assert {*modes.values()} == {0o600}
    model.chmod(0o640)
    ggtok.edit(model, {NAME: "d"})
    assert Path(f"{model}{UNDO}-2").stat().st_mode & 0o777 == 0o640


def record_modes(modes: dict[str, int], folder: Path) -> None:
    modes.update((each.name, each.stat().st_mode & 0o777) for each in folder.iterdir())


def recording(
    modes: dict[str, int], model: Path, sync: Callable[[BinaryIO], None]
) -> Callable[[BinaryIO], None]:
    def record(file: BinaryIO) -> None:
        record_modes(modes, model.parent)
        sync(file)

    return record
