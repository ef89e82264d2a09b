"""The npm package and the generated files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import ggtok
from tests.web.hosts import NODE_NEEDED, ROOT, WASM, node

JS = ROOT / "web" / "js"
TYPES = (JS / "index.d.ts").read_text("utf-8")

NAMES = """
const ggtok = await import(process.argv[1]);
const methods = ({ prototype }) => Object.getOwnPropertyNames(prototype);
const module = new WebAssembly.Module(require("node:fs").readFileSync(process.argv[2]));
console.log(JSON.stringify({
  exports: Object.keys(ggtok),
  errors: Object.keys(ggtok).filter((name) => ggtok[name].prototype instanceof Error),
  tokenizer: methods(ggtok.Tokenizer),
  worker: methods(ggtok.WorkerTokenizer),
  imports: WebAssembly.Module.imports(module),
  module: WebAssembly.Module.exports(module).map(({ name }) => name),
  custom: WebAssembly.Module.customSections(module, "name").length,
}));
"""


@pytest.fixture(scope="module")
def names() -> dict[str, list[str]]:
    command = node()
    if not command:
        pytest.skip(NODE_NEEDED)
    script = f"(async () => {{{NAMES}}})()"
    words = [command, "-e", script, (JS / "index.js").as_uri(), str(WASM)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_types_are_those_of_the_code(names: dict[str, list[str]]) -> None:
    declared = re.findall(r"^export (?:class|function|const) (\w+)", TYPES, re.MULTILINE)
    assert sorted(declared) == sorted(names["exports"])
    body = re.search(r"^export class Tokenizer \{\n(.*?)^\}", TYPES, re.DOTALL | re.MULTILINE)
    assert body
    methods = set(re.findall(r"^  (\w+)\(", body[1], re.MULTILINE))
    assert methods == set(names["tokenizer"]) - {"constructor"}
    assert methods == set(names["worker"]) - {"constructor"}
    for name in names["errors"]:
        assert re.search(rf"^export class {name} extends \w+ \{{", TYPES, re.MULTILINE), name


@pytest.mark.full
def test_typescript_accepts_the_types(names: dict[str, list[str]]) -> None:
    """consumer.ts, which uses every export and method, passes TypeScript's strict rules."""
    folder = Path(__file__).parent
    text = (folder / "consumer.ts").read_text("utf-8")
    imported = re.search(r"import \{([^}]*)\} from", text)
    assert imported and set(imported[1].replace(",", " ").split()) == set(names["exports"])
    for method in {*names["tokenizer"]} - {"constructor"}:
        assert re.search(rf"\btok\.{method}\(", text), method
    compiler = ROOT / "web" / "node_modules" / "typescript" / "bin" / "tsc"
    assert compiler.exists(), "run npm ci --prefix web --ignore-scripts"
    command = [str(node()), str(compiler), "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_module_needs_a_clock_and_nothing_else(names: dict[str, list[str]]) -> None:
    assert [found["name"] for found in names["imports"]] == ["clock_time_get"]  # type: ignore[index]
    source = (ROOT / "web" / "wasm" / "exports.c").read_text("utf-8")
    exported = set(re.findall(r"EXPORT\((\w+)\)", source)) - {"name"}
    assert set(names["module"]) == {*exported, "memory", "_initialize"}
    assert not names["custom"]
    assert not re.search(rb"/(home|tmp|usr|root)/", WASM.read_bytes())


def test_every_exported_function_is_called(names: dict[str, list[str]]) -> None:
    sources = "".join(path.read_text("utf-8") for path in JS.rglob("*.js"))
    for name in names["module"]:
        assert re.search(rf'["\'.]{name}\b', sources), name


def test_the_version_is_the_library_s() -> None:
    package = json.loads((JS / "package.json").read_text("utf-8"))
    assert package["version"] == ggtok.__version__
    assert not package.keys() & {"dependencies", "devDependencies", "peerDependencies"}


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
def test_the_packed_package_runs_outside_the_sources(tmp_path: Path) -> None:
    """The files that npm publishes include all that they import, and run outside the sources."""
    shutil.copytree(JS, tmp_path / "web" / "js", ignore=shutil.ignore_patterns("*.wasm"))
    (tmp_path / "ggtok" / "page").mkdir(parents=True)
    shutil.copy(WASM, tmp_path / "ggtok" / "page")
    npm = ["npm", "pack", "--offline", "--pack-destination", str(tmp_path)]
    subprocess.run(npm, cwd=tmp_path / "web" / "js", check=True, capture_output=True)
    (packed,) = tmp_path.glob("*.tgz")
    installed = tmp_path / "app" / "node_modules" / "ggtok"
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    shutil.move(tmp_path / "package", installed)
    code = {p.relative_to(JS) for p in JS.rglob("*") if p.suffix in (".js", ".ts", ".md", ".json")}
    found = {p.relative_to(installed) for p in installed.rglob("*") if p.is_file()}
    assert found == {*code, Path("ggtok.wasm")}
    model = (ROOT / "fixtures" / "gguf" / "bpe-llama3.gguf").as_uri()
    (tmp_path / "app" / "app.mjs").write_text(
        f"""
        import {{ readFileSync }} from "node:fs";
        import {{ fileURLToPath }} from "node:url";
        import {{ init, load, WorkerTokenizer }} from "ggtok";
        await init(readFileSync(fileURLToPath(import.meta.resolve("ggtok/ggtok.wasm"))));
        const tok = await load("{model}");
        const other = await WorkerTokenizer.load("{model}");
        console.log([...tok.encode("Hi")].join(), (await other.encode("Hi")).join());
        """
    )
    command = node()
    assert command, NODE_NEEDED
    done = subprocess.run([command, tmp_path / "app" / "app.mjs"], capture_output=True, text=True)
    assert done.stdout.split() == ["662,39,72"] * 2, done.stderr


@pytest.mark.full
def test_generated_files_are_current_and_reproducible(tmp_path: Path) -> None:
    """Building in another folder produces the committed bytes."""
    pytest.importorskip("ziglang", reason="needs the extra web")
    for name in ("cext", "tools", "web", "ggtok"):
        skipped = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=skipped)
    command = [sys.executable, "-m", "tools.web", "--check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
