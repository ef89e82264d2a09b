"""Soaks `ggtok serve` with hostile clients of all kinds, beside a well-behaved client.

    python -m tests.server.attack       # ten minutes, after one without attackers; Linux
    python -m tests.server.attack --seconds 60 --quiet 20

Each attacker is a thread of another process, and repeats one attack without pause. The well-behaved
client sends small requests of several kinds, one after the other, and compares the answers with
ggtok's. Prints its latencies without and with attackers, the memory of the largest process beside
the bound of docs/serving.md, the workers that were lost, and how long the server takes to end while
the attacks go on. The exit status is 1 after a wrong answer, if a process exceeded the bound, if a
worker was lost, or if the end took longer than promised.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter

import ggtok
from tests.server.command import Served, serving
from tests.server.running import ask, connect, until_closed
from tests.support.vocabularies import fixture

MIB = 1 << 20
BOUND = 2355 * MIB  # docs/serving.md: 2.3 GiB per process
END_SECONDS = 10  # docs/serving.md: the server ends within ten seconds
END_ROOM = 3  # seconds for the processes themselves
WORKERS = 2
REPORT_SECONDS = 30
PAUSE = 0.02
HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\n"
LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}"
LONG_TOKEN = b"ab" * 50_000

# ---- attacks ----

Attack = Callable[[str, random.Random], object]


def post(path: str, body: Any) -> Attack:
    """Returns an attack that sends a body and reads the answer. `body`: a function of a number."""
    numbers = itertools.count()

    def attack(url: str, rng: random.Random) -> None:
        ask(url, "POST", path, body(next(numbers)))

    return attack


def abandoned(path: str, body: bytes, n: int) -> Attack:
    """Returns an attack that sends requests on n connections, and closes them at once."""

    def attack(url: str, rng: random.Random) -> None:
        head = HEAD % path.encode() + b"Content-Length: %d\r\n\r\n" % len(body)
        made = [connect(url) for _ in range(n)]
        for each in made:
            each.sendall(head + body)
        time.sleep(rng.random() / 4)
        for each in made:
            each.close()

    return attack


def raw(data: bytes) -> Attack:
    def attack(url: str, rng: random.Random) -> None:
        with connect(url) as sent:
            sent.sendall(data)
            until_closed(sent)

    return attack


def idle(url: str, rng: random.Random) -> None:
    """Opens connections that stop within a request."""
    starts = (
        b"",
        b"GET /hea",
        HEAD % b"/tokenize" + b"Content-Length: 100\r\n\r\n{",
        b"\xff" * 4000,
    )
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            with contextlib.suppress(OSError):
                stack.enter_context(connect(url)).sendall(rng.choice(starts))
        time.sleep(1)


def unread(url: str, rng: random.Random) -> None:
    """Asks for long answers, and doesn't read them."""
    body = json.dumps({"model": "a", "text": "x y " * 200_000}).encode()
    with connect(url) as sent:
        sent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sent.sendall(HEAD % b"/v1/ggtok/spans" + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(5)


def chat(n: int, **more: Any) -> dict[str, Any]:
    return {"model": "chat", "messages": [{"role": "user", "content": f"x{n}"}], **more}


COUNT = "/v1/chat/completions/input_tokens"
ATTACKS: dict[str, Attack] = {
    # Only vLLM's endpoints use a request's template.
    "templates": post("/tokenize", lambda n: chat(n, chat_template="{{ x }}" * 37_000 + str(n))),
    "a huge template": post("/tokenize", lambda n: chat(n, chat_template="{{ x }}" * 2_200_000)),
    "endless templates": post("/tokenize", lambda n: chat(n, chat_template=LOOPS)),
    "long texts of ids": post(
        "/detokenize", lambda n: {"model": "long", "tokens": [259] * 600_000}
    ),
    "longer texts of ids": post(
        "/v1/ggtok/decode", lambda n: {"model": "long", "ids": [[259] * 330]}
    ),
    "separators": post(
        "/v1/ggtok/chunks",
        lambda n: {
            "model": "a",
            "text": "x y " * 60_000,
            "n": 8,
            "at": [f"<{i}>" for i in range(64)],
        },
    ),
    "items": post(
        "/v1/responses/input_tokens",
        lambda n: {"model": "chat", "input": [{"role": "user", "content": "x"}] * 60_000},
    ),
    "nested names": post("/tokenize", lambda n: b'{"model":' + b"[" * (15 * MIB)),
    "nested values": post(COUNT, lambda n: b'{"messages":' + b"[" * 1000 + b"]" * 1000 + b"}"),
    "empty objects": post("/tokenize", lambda n: b'{"content":[' + b"{}," * (5 * MIB) + b"{}]}"),
    "unknown words": post("/v1/ggtok/spans", lambda n: {"model": "a", "text": "\U0001f9ff" * MIB}),
    "a stalled model": abandoned("/tokenize", b'{"model":"stalled","content":"x"}', 8),
    "abandoned work": abandoned("/tokenize", json.dumps(chat(0, chat_template=LOOPS)).encode(), 32),
    "long heads": raw(
        (HEAD % b"/tokenize" + b"Content-Length: 2\r\nX: %s\r\n\r\n{}" % (b"x" * 98_000)) * 32
    ),
    "bodies that are too long": raw(
        HEAD % b"/tokenize"
        + b"Connection: close\r\nContent-Length: 40000000\r\n\r\n"
        + b" " * (4 * MIB)
    ),
    "upgrades": raw(
        HEAD % b"/tokenize"
        + b"Upgrade: h2c\r\nConnection: Upgrade, close\r\nContent-Length: 2\r\n\r\n{}"
    ),
    "idle connections": idle,
    "unread answers": unread,
}


def attack(url: str, results: Any) -> None:
    """Runs the attacks that `results` counts, each in a thread, until the process is terminated."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def repeat(name: str, attack: Attack, rng: random.Random) -> None:
        while True:
            with contextlib.suppress(OSError, HTTPException, ValueError):
                attack(url, rng)
            results[name] += 1
            time.sleep(0.01)

    for i, name in enumerate(results.keys()):
        arguments = name, ATTACKS[name], random.Random(i)
        threading.Thread(target=repeat, args=arguments, daemon=True).start()
    threading.Event().wait()


# ---- the well-behaved client ----


class Client:
    """Sends small requests of several kinds and checks the answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.wrong: list[object] = []
        tok, chats = ggtok.load(fixture("bpe-llama3")), ggtok.load(fixture("bpe-qwen2"))
        hi = [{"role": "user", "content": "Is the kettle on?"}]
        text = "Is the kettle on? " * 20
        ids = tok.encode(text, add_special=False)
        self.requests: list[tuple[str, dict[str, Any], str, object]] = [
            ("/tokenize", {"model": "a", "content": text}, "tokens", ids),
            ("/v1/ggtok/count", {"model": "a", "texts": [text]}, "counts", [tok.count(text)]),
            (COUNT, {"model": "chat", "messages": hi}, "input_tokens", chats.count_chat(hi)),
            ("/detokenize", {"model": "a", "tokens": ids}, "content", text),
        ]

    def measure(self, seconds: float, each: Callable[[], None]) -> list[float]:
        """Sends requests for some seconds; returns their durations. Calls `each` after each."""
        durations: list[float] = []
        end = time.monotonic() + seconds
        for path, body, field, expected in itertools.cycle(self.requests):
            begin = time.monotonic()
            if begin >= end:
                return durations
            status, _, answer = ask(self.url, "POST", path, body)
            durations.append(time.monotonic() - begin)
            if status != 200 or answer[field] != expected:
                self.wrong.append((path, status, str(answer)[:200]))
            each()
            time.sleep(PAUSE)
        return durations


def shown(durations: list[float]) -> str:
    times = [f"{1000 * np.quantile(durations, q):8.1f} ms" for q in (0.5, 0.99, 1)]
    return "p50 {}  p99 {}  longest {}  ({} requests)".format(*times, len(durations))


# ---- the server ----


def write_vocabulary(path: Path) -> Path:
    """Writes an SPM vocabulary with a token of 100 kB."""
    writer = GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(
        [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % i for i in range(256)), LONG_TOKEN]
    )
    writer.add_token_scores([0.0] * 260)
    writer.add_token_types([2, 3, 3, *[6] * 256, 4])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def stalled_server() -> socket.socket:
    """Returns a server that accepts connections and never answers."""
    made = socket.create_server(("127.0.0.1", 0), backlog=1000)

    def accept() -> None:
        kept = []
        with contextlib.suppress(OSError):
            while True:
                kept.append(made.accept()[0])

    threading.Thread(target=accept, daemon=True).start()
    return made


def resident(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class Watch:
    """The memory of the server's processes, and which workers it has had."""

    def __init__(self, served: Served) -> None:
        self.pid = served.process.pid
        self.first = set(self.workers())
        self.lost: set[int] = set()
        self.most = 0
        self.begin = self.reported = time.monotonic()

    def workers(self) -> list[int]:
        """Returns the children of the parent process; one of them only tracks shared resources."""
        text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [*map(int, text.split())]

    def look(self) -> None:
        workers = self.workers()
        self.lost |= self.first - set(workers)
        self.most = max(self.most, *map(resident, (self.pid, *workers)))
        now = time.monotonic()
        if now > self.reported + REPORT_SECONDS:
            self.reported = now
            sizes = "  ".join(f"{resident(pid) >> 20:5} MiB" for pid in (self.pid, *workers))
            print(f"{now - self.begin:6.0f} s  {sizes}", flush=True)


@contextlib.contextmanager
def attacking(url: str, names: Iterable[str]) -> Iterator[dict[str, int]]:
    with multiprocessing.get_context("spawn").Manager() as manager:
        results: Any = manager.dict(dict.fromkeys(names, 0))
        process = multiprocessing.get_context("spawn").Process(
            target=attack, args=(url, results), daemon=True
        )
        process.start()
        try:
            yield results
        finally:
            process.terminate()
            process.join()


def soak(served: Served, seconds: float, quiet: float, names: Iterable[str]) -> bool:
    client = Client(served.url)
    client.measure(2, lambda: None)  # loads the models
    watch = Watch(served)
    print("without attackers:", shown(alone := client.measure(quiet, watch.look)), flush=True)
    with attacking(served.url, names) as results:
        beside = client.measure(seconds, watch.look)
        done = dict(results)
        begin = time.monotonic()
        status = served.stop()
        took = time.monotonic() - begin
    ratio = np.quantile(beside, 0.99) / np.quantile(alone, 0.99)
    print("with attackers:   ", shown(beside))
    print(f"p99: {ratio:.1f} times that without attackers")
    print(f"largest process: {watch.most >> 20} MiB; the bound is {BOUND >> 20} MiB")
    print(f"workers lost: {len(watch.lost)}; wrong answers: {len(client.wrong)}")
    print(f"SIGTERM: {took:.1f} s, status {status}")
    print("attacks:", ", ".join(f"{n} {name}" for name, n in done.items()))
    for wrong in client.wrong[:5]:
        print(wrong)
    within = watch.most <= BOUND and took <= END_SECONDS + END_ROOM and status == 0
    return within and not client.wrong and not watch.lost


def main() -> int:
    warnings.simplefilter("ignore", ggtok.VocabWarning)
    parser = argparse.ArgumentParser(prog="python -m tests.server.attack")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--quiet", type=float, default=60, help="seconds without attackers")
    parser.add_argument("--attacks", nargs="*", default=[*ATTACKS], choices=ATTACKS, metavar="NAME")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, stalled_server() as stalled:
        folder = Path(temporary)
        models = {
            "a": fixture("bpe-llama3"),
            "chat": fixture("bpe-qwen2"),
            "long": write_vocabulary(folder / "long.gguf"),
            "stalled": f"http://127.0.0.1:{stalled.getsockname()[1]}/m.gguf",
        }
        arguments = [*(f"{name}={source}" for name, source in models.items())]
        with serving([*arguments, "--workers", str(WORKERS)], folder / "log") as served:
            good = soak(served, args.seconds, args.quiet, args.attacks)
            print("\n".join(served.text().splitlines()[-3:]) if not good else "", end="")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
