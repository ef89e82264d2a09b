"""``ggtok parity`` with xllamacpp, and with a fake llama-cpp-python.

llama-cpp-python has no wheels, and building it would take too long. The fake has the part of its
interface that parity uses, and calls the llama.cpp in xllamacpp.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

import ggtok
from ggtok.inspect.parity import compare, process, worker
from tests.cli.command import BPE, LLAMA3, SPM
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

STAND_IN = """
from ggtok.inspect.parity.worker import XLlamaCppBackend

class Llama:
    def __init__(self, model_path, *, vocab_only=False, kv_overrides=None, verbose=True):
        assert vocab_only and not verbose
        self._path, self._backend = model_path, XLlamaCppBackend()
        try:
            self._backend.load(model_path, kv_overrides or {})
        except Exception:
            raise ValueError(f"Failed to load model from file: {model_path}")

    def tokenize(self, text, add_bos=True, special=False):
        print("noise", flush=True)
        [ids] = self._backend.tokenize(self._path, [text], add_bos, special)
        return ids

    def close(self):
        self._backend.free(self._path)
"""


def test_no_difference(run) -> None:
    result = run("parity", LLAMA3, "--texts", "60", "--seed", "3")
    assert (result.status, result.errors) == (0, [])
    assert result.out.startswith(b"60 texts, each encoded in 4 ways, with the llama.cpp of xllama")
    assert result.out.endswith(b": no difference\n")


def test_seeds(run, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    def generated(tok: ggtok.Tokenizer, n: int, seed: int) -> None:
        seeds.append(seed)
        raise ggtok.InvalidValueError("enough")

    monkeypatch.setattr(compare, "generate_texts", generated)
    for options in [], ["--seed", "0"], ["--seed", "7"]:
        assert run("parity", LLAMA3, *options).status == 2
    assert seeds == [1, 0, 7]


def test_files_that_llama_cpp_reads_otherwise(run) -> None:
    """For a big-endian file, for overrides, and for another pre-tokenizer, llama.cpp loads a
    rewritten file."""
    big = str(fixture("big-endian"))
    assert run("parity", big, "--texts", "20", "-q").status == 0
    kv = "tokenizer.ggml.add_bos_token=bool:false"
    result = run("parity", LLAMA3, "--texts", "20", "--pre", "qwen2", "--override-kv", kv, "-q")
    assert (result.status, result.errors) == (0, [])


def test_differences(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences are found, reduced and shown. Here, ggtok's pre-tokenizer is changed to cause
    them."""
    real_load = ggtok.load
    monkeypatch.setattr(ggtok, "load", lambda data, overrides: real_load(data, pre="gpt-2"))
    text = b"plain\nIn 2024, 123456 things\x1b\n"
    result = run("parity", LLAMA3, "--text", "-", stdin=text)
    lines = result.out.decode().splitlines()
    assert result.status == 1
    assert lines[0].startswith("2 texts, ") and lines[0].endswith(": 6 differences")
    assert lines[2].startswith("  llama.cpp  ") and lines[3].startswith("  ggtok      ")
    assert lines[2] != lines[3] and "\x1b" not in result.out.decode()
    found = json.loads(run("parity", LLAMA3, "--text", "-", "--json", stdin=text).out)
    assert (found["texts"], found["differences"], found["deaths"]) == (2, 6, 0)
    first = found["first"][0]
    assert first["llama.cpp"] != first["ggtok"] and len(first["text"]) < 12


def test_a_crash_is_survived(run) -> None:
    """A code point above U+10FFFF makes llama.cpp abort, but the command continues."""
    result = run("parity", BPE, "--text", "-", stdin=b"one\n\xf5\x90\x80\x80\nthree\n")
    assert (result.status, result.errors) == (0, [])
    assert result.out.startswith(b"3 texts, ")
    assert result.warnings == [
        "ggtok: warning: llama.cpp crashed on 1 of the texts, or refused them; these are "
        "not compared"
    ]


def test_an_error_of_ggtok_is_a_difference() -> None:
    class Refuses:
        n_tokens = 0

        def encode(self, text: bytes, **_: bool) -> list[int]:
            raise ggtok.VocabError("can't")

    with process.LlamaCpp("xllamacpp") as llama:
        found = compare.compare(Refuses(), llama.load(BPE), iter([b"abc"]), 1)  # type: ignore[arg-type]
    assert found.different == 4
    assert (found.first[0].ggtok, len(found.first)) == ("can't", 1)


def test_files_that_llama_cpp_refuses(run, tmp_path: Path) -> None:
    with process.LlamaCpp("xllamacpp") as llama:
        with pytest.raises(process.LlamaCppLoadError):
            llama.load(tmp_path / "missing.gguf")
        assert llama.load(BPE).tokenize(b"a", False, False)  # the child process was restarted
    assert run("parity", str(tmp_path)).status == 2
    result = run("parity", str(fixture("none")))
    assert (result.status, result.errors[0][-17:]) == (2, "has no vocabulary")


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a folder for the fake llama_cpp.py, and hides xllamacpp."""
    monkeypatch.syspath_prepend(str(tmp_path))
    packages = {k: v for k, v in worker.PACKAGES.items() if k == "llama-cpp-python"}
    monkeypatch.setattr(compare, "PACKAGES", packages)
    return tmp_path / "llama_cpp.py"


@pytest.mark.skipif(find_spec("llama_cpp") is not None, reason="the real one is installed")
def test_llama_cpp_python(run, other_package: Path) -> None:
    result = run("parity", SPM)
    assert result.errors == [
        "ggtok: error: no llama.cpp to compare with: pip install xllamacpp, or llama-cpp-python"
    ]
    other_package.write_text("raise RuntimeError('no shared library')")
    assert run("parity", SPM).errors[0].endswith("llama-cpp-python doesn't work: no shared library")
    other_package.write_text(STAND_IN)
    result = run("parity", SPM, "--texts", "30")
    assert (result.status, result.errors) == (0, [])
    assert b"the llama.cpp of llama-cpp-python of unknown version: no difference" in result.out
    with process.LlamaCpp("llama-cpp-python") as llama:
        with pytest.raises(process.LlamaCppLoadError, match="Failed to load model"):
            llama.load(other_package)
        bad = GGUF.read(BPE)
        vocab = llama.load(bad.write(other_package.with_name("m.gguf")))
        assert vocab.tokenize(b"Hello", True, False) == ggtok.load(BPE).encode(b"Hello")


def test_structures_of_another_build(monkeypatch: pytest.MonkeyPatch) -> None:
    from ggtok.inspect.parity import worker

    backend = worker.XLlamaCppBackend()
    backend.check()
    monkeypatch.setitem(worker._DEFAULTS, "load_mode", 0)
    with pytest.raises(process.LlamaCppLoadError, match="pip install xllamacpp=="):
        backend.check()


LIBRARY = str(worker.shared_object())


def test_a_library_that_the_user_names(run, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("parity", LLAMA3, "--texts", "20", "--library", LIBRARY)
    assert (result.status, result.errors) == (0, [])
    assert f"with the llama.cpp of {LIBRARY} (ggml 0." in result.out.decode()
    monkeypatch.setenv("GGTOK_LLAMA_LIBRARY", LIBRARY)
    found = json.loads(run("parity", LLAMA3, "--texts", "20", "--json").out)
    assert found["llama.cpp"].startswith(f"{LIBRARY} (ggml ") and found["known"] == []
    assert run("parity", LLAMA3, "--library", "").status == 2


def test_an_older_build_says_why_its_ids_differ(run) -> None:
    """b11549 ignores the file's key normalizer.nfc."""
    model = str(fixture("ugm-nfc"))
    result = run("parity", model, "--text", "-", stdin="n\u0303 cafe\u0301\n".encode())
    assert result.status == 1
    last = result.out.decode().splitlines()[-1]
    assert last.startswith("known: the file asks for NFC (tokenizer.ggml.normalizer.nfc), and")
    result = run("parity", model, "--text", "-", stdin=b"in NFC anyway\n")
    assert (result.status, b"known" in result.out) == (0, False)


def test_overlong_text_is_a_known_difference(run, monkeypatch: pytest.MonkeyPatch) -> None:
    real_load = ggtok.load

    class Newer:
        """A tokenizer that replaces overlong UTF-8, as newer builds of llama.cpp do."""

        def __init__(self, tok: ggtok.Tokenizer) -> None:
            self._tok = tok

        def encode(self, text: bytes, **flags: bool) -> list[int]:
            return self._tok.encode(text.replace(b"\xc1\xa9", b"\xff\xff"), **flags)

        def __getattr__(self, name: str) -> object:
            return getattr(self._tok, name)

    monkeypatch.setattr(ggtok, "load", lambda data, overrides: Newer(real_load(data)))
    result = run("parity", LLAMA3, "--text", "-", stdin=b"a\xc1\xa9b\nplain\n")
    assert result.status == 1
    last = result.out.decode().splitlines()[-1]
    assert last.startswith("known: 4 of the differences are in texts with overlong UTF-8 or values")


C_API = (
    "llama_log_set llama_model_default_params llama_model_load_from_file llama_model_free "
    "llama_model_get_vocab llama_tokenize"
).split()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_libraries_that_cannot_be_used(run, tmp_path: Path) -> None:
    def message(library: Path) -> str:
        result = run("parity", LLAMA3, "--library", str(library))
        assert result.status == 2
        [error] = result.errors
        return error.removeprefix(f"ggtok: error: {library}: ")

    def compiled(name: str, code: str, *flags: str) -> Path:
        (tmp_path / "x.c").write_text(code)
        command = ["cc", "-shared", "-fPIC", "-o", name, "x.c", *flags]
        subprocess.run(command, check=True, cwd=tmp_path)
        return tmp_path / name

    assert message(tmp_path / "missing.so").startswith("no such file; --library names llama.cpp's")
    old = compiled("old.so", "void llama_log_set(void) {}")
    assert message(old).startswith("it has no function llama_model_default_params, so it isn't")
    functions = "".join(f"void {name}(void) {{}}\n" for name in C_API)
    other = compiled("other.so", functions)
    assert message(other).startswith("its structures aren't those of b11549")
    compiled("libpart.so", "int part;")
    whole = compiled("whole.so", "", "-Wl,--no-as-needed", "-L.", "-lpart")
    assert (
        message(whole)
        == "it needs libpart.so: put the folder with that library into LD_LIBRARY_PATH"
    )
    text = tmp_path / "text.so"
    text.write_text("no library")
    assert message(text).startswith("can't load it: ") and str(text) not in message(text)
    assert "invalid ELF header" in message(text) or "file too short" in message(text)


def test_a_library_for_a_newer_system() -> None:
    error = "/lib/libc.so.6: version `GLIBC_2.38' not found (required by /x/libllama.so)"
    advice = compare._load_advice(__file__, error)
    assert advice.startswith("this library was built for a newer system: GLIBC_2.38 is missing.")
    assert "LD_PRELOAD" in advice


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no model: give a GGUF file or a model's name, or set GGTOK_MODEL"),
        ([BPE, "x"], "unexpected argument: 'x'"),
        ([BPE, "--texts", "0"], "--texts must be at least 1"),
        ([BPE, "--text", "-", "--seed", "2"], "--text excludes --texts and --seed"),
    ],
)
def test_usage(run, argv: list[str], message: str) -> None:
    assert run("parity", *argv).errors == [f"ggtok: error: {message}"]
