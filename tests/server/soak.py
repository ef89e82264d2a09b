"""Measures the memory of `ggtok serve` during minutes of mixed requests and floods.

    python -m tests.server.soak                 # ten minutes; Linux
    python -m tests.server.soak --seconds 60

A server with three models receives some requests of all kinds each second. Two models fit in
memory, and one file is replaced now and then. Each answer is compared with ggtok's. Every 20
seconds there is a flood: idle connections, incomplete requests, and bodies that are too long,
malformed or large. Prints the process's resident memory and open files every half minute. The exit
status is 1 after a wrong answer, or if memory grew by more than a tenth in the last third of the
time.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import ggtok
from tests.server.command import Served, serving
from tests.server.load import memory
from tests.server.running import ask, connect
from tests.support.vocabularies import fixture

MIB = 1 << 20
FLOOD_SECONDS = 20
REPORT_SECONDS = 30
PAUSE = 0.05
TEXTS = ("Is the kettle on?", "Grüße 👍 " * 300, "a b\n" * 20_000, "", "<s>[INST] \0")


def flood(url: str, rng: random.Random) -> None:
    """Opens many connections that misbehave, and sends large bodies."""
    head = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
    starts = (
        b"",
        b"GET /hea",
        head + b"Content-Length: 100\r\n\r\n{",
        head + b"Content-Length: 99999999\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\nffffff\r\n" + b" " * 1000,
        b"\xff" * 40_000,
    )
    with ExitStack() as stack:
        for _ in range(500):
            connection = stack.enter_context(connect(url))
            with suppress(ConnectionError):
                connection.sendall(rng.choice(starts))
        for _ in range(10):
            size = rng.randrange(4 * MIB)
            ask(url, "POST", "/tokenize", {"model": "a", "content": "x y " * (size // 4)})
            ask(url, "POST", "/tokenize", b"[" * rng.randrange(MIB))


class Asker:
    """Sends requests of random kinds and checks the answers."""

    def __init__(
        self, url: str, toks: dict[str, list[ggtok.Tokenizer]], rng: random.Random
    ) -> None:
        self.url, self.toks, self.rng = url, toks, rng
        self.wrong: list[object] = []
        self.n = 0

    def __call__(self) -> None:
        rng, name = self.rng, self.rng.choice(list(self.toks))
        text = rng.choice(TEXTS)
        path, body = rng.choice(
            (
                ("/tokenize", {"content": text, "add_special": True}),
                ("/tokenize", {"prompt": text}),
                ("/v1/ggtok/count", {"texts": [text] * 20}),
                ("/v1/ggtok/spans", {"text": text}),
                ("/v1/chat/completions/input_tokens", {"messages": [{"role": "user"}]}),
                ("/nothing", {}),
            )
        )
        status, _, answer = ask(self.url, "POST", path, {"model": name, **body})
        self.n += 1
        if path in ("/tokenize", "/v1/ggtok/count"):
            parse = path == "/tokenize"
            right = [len(tok.encode(text, parse_special=parse)) for tok in self.toks[name]]
            count = answer["count"] if path == "/tokenize" else answer["counts"][0]
            if status != 200 or count not in right:
                self.wrong.append((name, path, status, text[:20], count, right))


def soak(served: Served, seconds: float, replaced: Path) -> int:
    rng = random.Random(1)
    kinds = [fixture("bpe-llama3"), fixture("spm")]
    asker = Asker(
        served.url,
        {
            "a": [ggtok.load(kinds[0])],
            "b": [ggtok.load(kind) for kind in kinds],
            "c": [ggtok.load(fixture("ugm"))],
        },
        rng,
    )
    begin = last_flood = last_report = time.monotonic()
    floods, curve = 0, list[int]()
    while (now := time.monotonic()) < begin + seconds:
        asker()
        if now > last_flood + FLOOD_SECONDS:
            flood(served.url, rng)
            new = replaced.with_name("new")
            shutil.copy(kinds[floods % 2], new)
            os.replace(new, replaced)
            floods, last_flood = floods + 1, time.monotonic()
        if now > last_report + REPORT_SECONDS:
            curve.append(memory(served.process.pid) >> 20)
            files = len(os.listdir(f"/proc/{served.process.pid}/fd"))
            print(f"{now - begin:6.0f} s  {curve[-1]:5} MiB  {files:4} files", flush=True)
            last_report = now
        time.sleep(PAUSE)
    print(f"{asker.n} requests, {floods} floods, {len(asker.wrong)} wrong answers")
    for wrong in asker.wrong[:5]:
        print(wrong)
    third = len(curve) // 3
    grown = third > 0 and max(curve[-third:]) > 1.1 * max(curve[third:-third])
    return 1 if asker.wrong or grown else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.server.soak")
    parser.add_argument("--seconds", type=float, default=600)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        replaced = Path(shutil.copy(fixture("spm"), folder / "b.gguf"))
        models = [f"a={fixture('bpe-llama3')}", f"b={replaced}", f"c={fixture('ugm')}"]
        with serving([*models, "--max-loaded", "2"], folder / "log") as served:
            return soak(served, args.seconds, replaced)


if __name__ == "__main__":
    sys.exit(main())
