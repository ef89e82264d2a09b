"""Unusual servers' answers to requests for ranges, and the ways in which calls to a worker end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patch import GGUF
from tests.support.servers import File, Server
from tests.support.vocabularies import fixture
from tests.web.hosts import NODE_NEEDED, ROOT, WASM, JsError, Node, Tokenizer
from tests.web.hosts import node as node_command

HALF = 1 << 19  # bytes: half of the first request


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose vocabulary follows an array of 3 MB."""
    gguf = GGUF.read(fixture("bpe-llama3"))
    known = gguf.raw
    gguf.raw = {}
    gguf.set("long", [7] * (3 << 18), "u32")
    gguf.raw |= known
    return gguf.write(tmp_path_factory.mktemp("web") / "long.gguf")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def load(node: Node, server: Server, file: File) -> Tokenizer:
    server.files["/long.gguf"] = file
    return Tokenizer(node, server.url("/long.gguf"))


@pytest.mark.parametrize("known", [True, False])
def test_answers_shorter_than_the_range_are_continued(
    node: Node, server: Server, load_fixture: Any, long: Path, known: bool
) -> None:
    def without_size(status: int, headers: dict[str, str]) -> int:
        if not known and status == 206:
            headers["Content-Range"] = headers["Content-Range"].partition("/")[0] + "/*"
        return status

    js = load(node, server, File(long, length=False, breaks=[HALF] * 99, lie=without_size))
    assert js.encode("Hello world") == load_fixture("bpe-llama3").encode("Hello world")
    size = long.stat().st_size
    assert js.info["bytesRead"] == size
    begins = [request.headers["range"].split("=")[1].split("-")[0] for request in server.requests]
    assert begins == [str(at) for at in (*range(0, size, HALF), *([] if known else [size]))]
    js.free()


@pytest.mark.parametrize(
    ("size", "name", "code"), [("10", "FormatError", "gguf"), ("0", "NetworkError", "range")]
)
def test_a_size_that_is_too_small_is_an_error(
    node: Node, server: Server, long: Path, size: str, name: str, code: str
) -> None:
    def lie(status: int, headers: dict[str, str]) -> int:
        assert len(server.requests) < 20
        headers["Content-Range"] = headers["Content-Range"].partition("/")[0] + f"/{size}"
        return status

    with pytest.raises(JsError) as raised:
        load(node, server, File(long, lie=lie))
    assert (raised.value.name, raised.value.data["code"]) == (name, code)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("how", "code"), [({"breaks": [100]}, "network"), ({"statuses": [(204, {})]}, "status")]
)
def test_answers_without_the_bytes_are_errors(
    node: Node, server: Server, long: Path, how: dict[str, Any], code: str
) -> None:
    with pytest.raises(JsError) as raised:
        load(node, server, File(long, **how))
    assert (raised.value.name, raised.value.data["code"]) == ("NetworkError", code)


def test_files_that_can_not_be_read_are_errors(node: Node, tmp_path: Path) -> None:
    for path in tmp_path, tmp_path / "missing.gguf":
        with pytest.raises(JsError) as raised:
            Tokenizer(node, path)
        assert (raised.value.name, raised.value.data["code"]) == ("GgtokError", "io")


# ---- workers ----


def script(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """Runs statements in Node that load a tokenizer with `load(options)`."""
    command = node_command()
    if command is None:
        pytest.skip(NODE_NEEDED)
    path = folder / "script.mjs"
    path.write_text(
        f"""
        import {{ readFileSync }} from "node:fs";
        import {{ WorkerTokenizer }} from "{(ROOT / "web" / "js" / "index.js").as_uri()}";
        const wasm = readFileSync(new URL("{WASM.as_uri()}"));
        const url = new URL("{fixture("bpe-llama3").as_uri()}");
        const load = (options) => WorkerTokenizer.load(url, {{ wasm, ...options }});
        const say = (error) => console.log(error.name, error.message);
        {body}
        """
    )
    return subprocess.run([command, path], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("budget", ["Infinity", "1e10", "30000"])
def test_a_call_keeps_node_running(tmp_path: Path, budget: str) -> None:
    """An idle tokenizer doesn't keep Node running: the script ends."""
    done = script(
        tmp_path,
        f"const tok = await load({{ budget: {budget} }}); console.log(await tok.count('Hello'));",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")


@pytest.mark.parametrize("budget", ["0", "-1", "NaN", "'fast'"])
def test_invalid_budgets_are_refused(tmp_path: Path, budget: str) -> None:
    done = script(tmp_path, f"await load({{ budget: {budget} }}).catch(say);")
    assert done.stdout == "ArgumentError budget must be a positive number\n"


def test_the_error_of_a_callback_is_passed_on(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        "const onProgress = () => { throw new Error('mine'); };"
        "await load({ onProgress }).catch(say);",
    )
    assert (done.returncode, done.stdout) == (0, "Error mine\n")
