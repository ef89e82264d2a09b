"""Links the C library like other projects: with CMake, pkg-config, C++, and together with ggml."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ggtok
from fixtures.build import CHAT
from tests.c.build import object_of
from tests.support.vocabularies import fixture

ROOT = Path(__file__).resolve().parents[2]
LINKED = Path(__file__).resolve().parent / "linked"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not shutil.which("cmake"), reason="needs cmake"
)


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(folder: Path, shared: bool, *options: str) -> Path:
    """Installs the library; returns the folder that contains it."""
    prefix = folder / "prefix"
    options += (f"-DBUILD_SHARED_LIBS={shared:d}", f"-DCMAKE_INSTALL_PREFIX={prefix}")
    options += ("-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_BUILD_TYPE=None")  # to compile faster
    run("cmake", "-S", ROOT / "cext", "-B", folder / "build", *options)
    run("cmake", "--build", folder / "build", "--parallel", "2", "--target", "install")
    return prefix


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("static"), False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("shared"), True)


@pytest.fixture(params=["static", "shared"])
def installed(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.getfixturevalue(request.param)
    return folder


@pytest.mark.full
def test_a_program_links_ggtok_together_with_ggml(installed: Path, tmp_path: Path) -> None:
    run("cmake", "-S", LINKED, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path)
    printed = run(tmp_path / "linked", fixture("bpe-gpt2"), "Hello world")
    ids = ggtok.load(fixture("bpe-gpt2")).encode("Hello world", add_special=False)
    assert printed.split() == [*map(str, ids), "ggml's", "1"]


@pytest.mark.full
def test_global_symbols_have_a_prefix(static: Path) -> None:
    """Without a prefix, symbols such as ggml's gguf_type_name would collide in a program that links
    both libraries."""
    listed = run("nm", "-g", "--defined-only", static / "lib" / "libggtok.a")
    symbols = {line.split()[-1].lstrip("_") for line in listed.splitlines() if " " in line}
    assert len(symbols) > 150
    assert {symbol for symbol in symbols if not symbol.startswith("ggtok_")} == set()


@pytest.mark.full
def test_the_shared_library_exports_only_the_api(shared: Path) -> None:
    listed = run("nm", "-D", "--defined-only", shared / "lib" / "libggtok.so")
    names = {line.split()[-1] for line in listed.splitlines()}
    headers = "".join(path.read_text() for path in (shared / "include").glob("ggtok*.h"))
    declared = set(re.findall(r"\b(ggtok_\w+)\(", headers))
    assert names == declared
    assert {"ggtok_version", "ggtok_encode", "ggtok_safe_cut"} <= names


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="needs pkg-config")
def test_pkg_config_finds_the_library(installed: Path, tmp_path: Path) -> None:
    words = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "--static", "ggtok"],
        env={"PKG_CONFIG_PATH": str(installed / "lib" / "pkgconfig"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    out = tmp_path / "program"
    sources = [LINKED / "main.cpp", tmp_path / "ggml_names.o"]
    run("cc", "-c", LINKED / "ggml_names.c", "-o", sources[1])
    rpath = f"-Wl,-rpath,{installed / 'lib'}"
    run("c++", "-std=c++11", *sources, "-o", out, *words, rpath)
    assert "ggml's" in run(out, fixture("bpe-gpt2"), "Hello")


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="needs pkg-config")
def test_the_program_of_the_page_prints_what_the_page_says(installed: Path, tmp_path: Path) -> None:
    """The program in docs/c.md, built with the page's CMake lines and with its command, prints what
    the page says."""
    page = (ROOT / "docs" / "c.md").read_text("utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    source, chat = (text for language, text in found if language == "c")
    (cmake,) = (text for language, text in found if language == "cmake")
    printed, printed_chat = (text for language, text in found if not language)
    install_by, compile_by = (text for language, text in found if language == "sh")
    assert "cmake -S cext" in install_by  # `install` runs the same command, with more options
    (tmp_path / "program.c").write_text(source)
    head = "cmake_minimum_required(VERSION 3.16)\nproject(example LANGUAGES C)\n"
    (tmp_path / "CMakeLists.txt").write_text(head + cmake)
    text = "Hello, world"
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path / "build")
    shown = run(tmp_path / "build" / "program", fixture("bpe-llama3"), text)
    assert shown.split() == printed.split()
    env = {"PKG_CONFIG_PATH": str(installed / "lib" / "pkgconfig"), "PATH": "/usr/bin:/bin"}
    env["LD_LIBRARY_PATH"] = str(installed / "lib")
    subprocess.run(["bash", "-ec", compile_by], cwd=tmp_path, env=env, check=True)
    program = [str(tmp_path / "program"), str(fixture("bpe-llama3")), text]
    shown = subprocess.run(program, env=env, capture_output=True, text=True, check=True).stdout
    assert shown.split() == printed.split()
    (tmp_path / "program.c").write_text(chat)
    subprocess.run(["bash", "-ec", compile_by], cwd=tmp_path, env=env, check=True)
    program = [str(tmp_path / "program"), str(CHAT)]
    shown = subprocess.run(program, env=env, capture_output=True, text=True, check=True).stdout
    assert shown == printed_chat


def test_the_header_has_the_version_of_the_package() -> None:
    header = (ROOT / "cext" / "ggtok.h").read_text()
    version = re.search(r'#define GGTOK_VERSION "(.*)"', header)
    assert version and version[1] == ggtok.__version__


# Files that count as one, because they call each other for a reason: each dialect is an
# interpreter, whose values, functions and statements contain each other; llama-server's probes of
# a template render it like a request.
RECURSIVE = (
    *("jinja/llama/", "jinja/python/"),
    ("chat/llama_server", "chat/render", "chat/transformers"),
)


def unit_of(file: str) -> str:
    return next((str(unit) for unit in RECURSIVE if file.startswith(unit)), file)


@pytest.mark.full
def test_no_cycles_of_calls(static: Path, tmp_path: Path) -> None:
    """No file of the library calls, even through others, a file that calls it, as its object file
    shows. (tests/test_architecture.py checks the includes.)"""
    built = static.parent / "build" / "CMakeFiles"
    by_name = {
        source.relative_to(ROOT / "cext").with_suffix("").as_posix(): source
        for source in (ROOT / "cext").rglob("*.c")
    }
    objects: dict[str, Path] = {}
    for name, source in by_name.items():
        if name.startswith("python/"):
            include = f"-I{sysconfig.get_path('include')}"
            command = ["cc", "-O0", "-DPy_LIMITED_API=0x030A0000", include]
            objects[name] = object_of(source, command, tmp_path)
        else:
            (objects[name],) = (p for p in built.rglob("*.o") if f"{p}".endswith(f"/{name}.c.o"))
    defined: dict[str, str] = {}
    used: dict[str, set[str]] = {}
    for name, path in objects.items():
        for line in run("nm", "-g", path).splitlines():
            *_, kind, symbol = line.split()
            if kind == "U":
                used.setdefault(unit_of(name), set()).add(symbol)
            else:
                defined[symbol] = unit_of(name)
    calls = {
        unit: {defined[symbol] for symbol in symbols & defined.keys()} - {unit}
        for unit, symbols in used.items()
    }
    assert "api/encode" in calls["api/batch"] and len(calls) > 60
    TopologicalSorter(calls).prepare()  # raises CycleError, which names the files in the cycle


@pytest.mark.full
def test_a_library_without_chat_and_training(tmp_path: Path) -> None:
    prefix = install(tmp_path, False, "-DGGTOK_NO_CHAT=ON", "-DGGTOK_NO_TRAIN=ON")
    headers = {path.name for path in (prefix / "include").iterdir()}
    assert headers == {"ggtok.h", "ggtok_sample.h", "ggtok_trace.h"}
    symbols = run("nm", "-g", prefix / "lib/libggtok.a").split()
    assert {"ggtok_encode", "ggtok_trace"} <= {*symbols}
    assert not [name for name in symbols if re.match("ggtok_(chat|jinja|merge|counts)_", name)]
    source = tmp_path / "program.c"
    source.write_text(
        "#include <ggtok.h>\n#include <ggtok_trace.h>\nint main(int n, char **argv) {\n"
        "    ggtok_tokenizer *tok;\n    ggtok_context *ctx;\n    ggtok_ids ids;\n    (void)n;\n"
        "    return ggtok_load_file(argv[1], NULL, &tok, NULL) ||\n"
        "        ggtok_context_new(tok, &ctx, NULL) ||\n"
        '        ggtok_encode(ctx, "Hi", 2, 0, &ids, NULL) || ids.n != 2;\n}\n'
    )
    program = tmp_path / "program"
    libraries = (f"-I{prefix}/include", prefix / "lib/libggtok.a", "-lm", "-pthread")
    run("cc", source, "-o", program, *libraries)
    run(program, fixture("bpe-llama3"))
