"""Measures requests per second and latencies for /tokenize, compared with llama-server.

    python -m tests.server.load                      # the table of docs/serving.md; needs wrk
    python -m tests.server.load --seconds 200 --connections 16 --servers ggtok  # memory, too

llama-server comes from the xllamacpp wheel, and serves a model with one layer
(tests.chat.llamaserver). wrk, on the same machine, sends the same bodies to the servers in turn.
Before a server is timed, its ids are compared with ggtok's.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import ggtok
from tests.bench import corpora
from tests.chat.llamaserver import Servers
from tests.support.vocabularies import real

ROOT = Path(__file__).resolve().parents[2]
BODIES = 64  # number of different bodies, sent in turn
# Each connection sends the bodies in turn and reads the answer before it sends the next one.
SCRIPT = """
local made, n = {{}}, 0
for i = 0, {count} - 1 do
  local file = io.open("{folder}/" .. i, "rb")
  made[i] = wrk.format("POST", "/tokenize", {{["Host"] = "localhost",
                       ["Content-Type"] = "application/json"}}, file:read("*a"))
  file:close()
end
request = function() n = (n + 1) % {count}; return made[n] end
done = function(summary, latency, requests)
  io.write(string.format("RESULT %f %d %f %f %f %f\\n", summary.requests * 1e6 / summary.duration,
    summary.errors.status + summary.errors.read + summary.errors.timeout + summary.errors.connect,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
"""


@dataclass
class Result:
    """The measurements for one server; latencies are in microseconds."""

    per_second: float
    errors: float
    p50: float
    p99: float
    p999: float
    longest: float

    def __str__(self) -> str:
        times = "  ".join(f"{t / 1000:9.2f}" for t in (self.p50, self.p99, self.p999))
        return f"{self.per_second:10.1f}  {times}" + (
            f"  errors: {self.errors:.0f}" * bool(self.errors)
        )


def texts(size: int) -> list[str]:
    """Returns different texts of about this many bytes."""
    count = max(4, min(BODIES, 8_000_000 // size))
    return corpora.cut(corpora.prose().text, size, count)


def measure(url: str, folder: Path, bodies: int, connections: int, seconds: int) -> Result:
    script = folder / "script.lua"
    script.write_text(SCRIPT.format(folder=folder, count=bodies))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s"]
    run = subprocess.run(
        [*command, "-s", str(script), url], capture_output=True, text=True, check=True
    )
    found = re.search(r"^RESULT (.*)$", run.stdout, re.MULTILINE)
    assert found, run.stdout + run.stderr
    return Result(*map(float, found[1].split()))


@contextmanager
def ggtok_serve(model: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Starts the command and yields its address and process id."""
    child = subprocess.Popen(
        [sys.executable, "-m", "ggtok", "serve", str(model), "--port", "0", *options],
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert child.stderr is not None
    try:
        line = child.stderr.readline().decode()
        found = re.search(r"http://\S+", line)
        assert found, line + child.stderr.read().decode()
        yield found[0], child.pid
    finally:
        child.terminate()
        child.wait()


@contextmanager
def llama_server(model: Path) -> Iterator[tuple[str, int]]:
    with Servers(model) as servers, servers.start("{{ messages }}") as server:
        connection = server._connection
        yield f"http://{connection.host}:{connection.port}", server._child.pid


def post(url: str, path: str, body: object) -> object:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    connection.request("POST", path, json.dumps(body))
    return json.loads(connection.getresponse().read())


def memory(pid: int) -> int:
    """Returns the resident memory of a process and its children, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(memory(int(child)) for child in children)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 16, 256])
    parser.add_argument("--sizes", type=int, nargs="*", default=[60, 4096, 1_000_000])
    parser.add_argument(
        "--servers", nargs="*", default=["ggtok", "ggtok --workers 2", "llama-server"]
    )
    parser.add_argument("--model", type=Path, default=real("llama-bpe"))
    args = parser.parse_args()
    tok = ggtok.load(args.model)
    print("server                   bytes  conns  requests/s     p50 ms     p99 ms   p99.9 ms")
    for name in args.servers:
        made = (
            llama_server(args.model)
            if name == "llama-server"
            else ggtok_serve(args.model, *name.split()[1:])
        )
        with made as (url, pid), tempfile.TemporaryDirectory() as temporary:
            for size in args.sizes:
                folder = Path(temporary) / str(size)
                folder.mkdir()
                pieces = texts(size)
                for i, text in enumerate(pieces):
                    (folder / str(i)).write_text(json.dumps({"content": text}))
                answer = post(url, "/tokenize", {"content": pieces[0]})
                assert isinstance(answer, dict)
                assert answer["tokens"] == tok.encode(pieces[0], add_special=False)
                for connections in args.connections:
                    result = measure(url, folder, len(pieces), connections, args.seconds)
                    print(f"{name:20}  {size:8}  {connections:5}  {result}", flush=True)
            print(f"{name:20}  memory {memory(pid) >> 20} MiB", flush=True)


if __name__ == "__main__":
    main()
