"""Runs a sample of the inputs of `python -m tests.hostile`, and tests the tool itself.

The sample is the same in every run. Each row runs in a child process, so that a crash fails one
test and its input is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ggtok
from tests.hostile import TESTS, judge, watch
from tests.hostile.judge import LOADED, VAGUE, Verdict
from tests.hostile.kinds import keys_read
from tests.hostile.rows import Trials
from tests.hostile.surroundings import peak_of_rejection
from tests.hostile.table import REFERENCE, ROWS
from tests.hostile.texts import CALLS
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")


@pytest.mark.full
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_sample_of_each_row_has_allowed_outcomes(
    row: watch.Row, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if row in REFERENCE:
        request.getfixturevalue("llama")  # skips if the reference isn't available
    step = len(row) // row.sample | 1  # odd, so that cycles of 2^k inputs are covered
    tally = watch.watch(row, tmp_path / "kept", step)
    assert tally.inputs == len(range(0, len(row), step))
    assert tally.clean, "\n".join(watch.table([tally]))


# ---- the tool detects faults ----


def _crash() -> Verdict:
    os.abort()


def _hang() -> Verdict:
    while True:
        pass


BAD = {
    "crash": _crash,
    "hang": _hang,
    "vague": lambda: judge.of_error(ValueError("wrong"), 10),
    "nothing named": lambda: judge.of_error(ggtok.VocabError("bad vocabulary"), 10),
    "key not in the message": lambda: judge.of_error(ggtok.VocabError("bad", key="a.key"), 10),
    "offset not in the message": lambda: judge.of_error(ggtok.GGUFError("bad", offset=7), 10),
    "offset outside": lambda: judge.of_error(ggtok.GGUFError("bad, at byte 70", offset=70), 10),
    "raw": lambda: judge.of_error(ggtok.VocabError("a.key \x1b[2J", key="a.key"), 10),
    "unencodable": lambda: judge.of_error(ggtok.VocabError("a.key \udcff", key="a.key"), 10),
    "memory": lambda: judge.of_error(ggtok.OutOfMemoryError("out of memory"), 10),
    "raises": lambda: Verdict(1 // 0),
    "sound": lambda: Verdict(LOADED),
}


@pytest.mark.full
@pytest.mark.parametrize("what", BAD)
def test_faults_in_a_row_are_detected(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault happens in the middle of a row, which continues afterwards."""
    sound = ("sound", BAD["sound"])
    row = Trials("made up", lambda: [sound, (what, BAD[what]), sound], timeout=5)
    # The child process looks up its row by name in its own copy of the table.
    code = (
        f"{TESTS}; from tests.hostile import child, table, rows;"
        "from tests.hostile.test_hostile import BAD;"
        f"trials = [('', BAD[what]) for what in ('sound', {what!r}, 'sound')];"
        "table.ROWS.append(rows.Trials('made up', lambda: trials));"
        "child.main(*sys.argv[1:])"
    )
    popen = subprocess.Popen
    monkeypatch.setattr(
        watch.subprocess,
        "Popen",
        lambda command, **options: popen([sys.executable, "-c", code, *command[3:]], **options),
    )
    tally = watch.watch(row, tmp_path)
    assert tally.inputs == 3, tally
    assert tally.outcomes[LOADED] == 2 + (what == "sound")
    assert tally.crashes == (what == "crash")
    assert tally.hangs == (what == "hang")
    assert tally.outcomes[VAGUE] == (what not in ("crash", "hang", "sound"))
    assert tally.clean == (what == "sound")
    assert len(list(tmp_path.iterdir())) == tally.crashes + tally.hangs


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_file_that_loads_is_no_rejection() -> None:
    _, note = peak_of_rejection(fixture("test").read_bytes())
    assert note == "loaded"


def test_every_key_of_the_library_is_tested() -> None:
    keys = keys_read()
    for key in ("tokenizer.ggml.pre", "tokenizer.ggml.middle_token_id", "general.name"):
        assert key in keys


def test_the_command_prints_a_summary(tmp_path: Path) -> None:
    code = f"{TESTS}; import runpy; runpy.run_module('tests.hostile', run_name='__main__')"
    command = [sys.executable, "-c", code, "--kind", "duplicate keys", "--every", "9"]
    done = subprocess.run(
        [*command, "--keep", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("hostile: ") and last.endswith(" 0 crashes, 0 hangs, 0 vague errors")


# ---- texts, all of which are tested ----


@pytest.mark.parametrize("call", CALLS)
def test_errors_locate_lone_surrogates(call: str) -> None:
    tok = ggtok.load(fixture("spm"))
    with pytest.raises(UnicodeEncodeError) as caught:
        CALLS[call](tok, "\u6f22\U0001f44d" * 3000 + "\udcff")
    assert isinstance(caught.value, ggtok.TextEncodeError)
    assert caught.value.start == 6000
    assert "U+DCFF" in str(caught.value) and "6000" in str(caught.value)


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", b"\xc2\x9b2J", b"\xe2\x80\xaegpt", b"\xe2\x96" * 300]
)
def test_text_of_files_is_escaped(name: bytes, tmp_path: Path) -> None:
    """Errors escape text from the file, and the file's name."""
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("tokenizer.ggml.pre", name)
    path = gguf.write(tmp_path / os.fsdecode(b"new\nline\xff.gguf"))
    for source in (path, gguf.dump()):
        with pytest.raises(ggtok.UnknownPreTokenizerError) as caught:
            ggtok.load(source)
        assert str(caught.value).isprintable()
