"""python -m tests.fuzz.bodies: fuzzes the JSON bodies of the server's endpoints.

    python -m tests.fuzz.bodies --seconds 300 --seed 1
    python -m tests.instrument sanitize -m tests.fuzz.bodies --seconds 3600   # under sanitizers

Calls the application in this process. A body is a known one, of any endpoint, after up to four
changes of its structure: a value replaced, removed, repeated, wrapped, or exchanged with a value of
another body; a field with a name that some endpoint reads; sometimes bytes of the text. A body
whose answer is of a new kind becomes a known one. Each answer must be a result or an error with a
reason, and the same for the same body. Prints each finding, and a summary; the exit status is 1 if
there is a finding.
"""

from __future__ import annotations

import copy
import json
import math
import random
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.server.openapi import ROWS
from tests.fuzz import command
from tests.server.generate import Generator
from tests.server.names import NAMES, POSTS
from tests.support.vocabularies import FIXTURES, fixture

MODELS = {"m": fixture("bpe-llama3"), "chat": FIXTURES / "chat.gguf", "spm": fixture("spm")}
STATUSES = (200, 400, 404, 413, 500, 501)
MOST_KNOWN = 5000
MOST_BYTES = 100_000
TEXTS = (
    *(
        "",
        " ",
        "a",
        "<|eot_id|>",
        "</s>",
        "\0",
        "\ud800",
        "\udcff",
        "\ufeff",
        "e\u0301",
        "👍",
        "%n",
    ),
    *("user", "assistant", "system", "tool", "text", "image_url", "function", "auto", "none"),
    *("{{ x }}", "{% for a in range(99) %}{{ a }}{% endfor %}", "{% if %}", "{{ 'a' * 9999 }}"),
    *("<__media__>", "chatml", "default", "m", "chat", "spm", "x" * 3000, "char", "utf16"),
)
NUMBERS = (
    0,
    1,
    -1,
    7,
    2**31,
    2**32 + 1,
    2**63,
    2**64,
    2**65,
    -(2**63) - 1,
    0.5,
    -0.0,
    1e300,
    1e999,
)
JUNK = (*TEXTS, *NUMBERS, None, True, False, [], {}, [[]], [{}], {"": None}, [None, "a", 1])
VARYING = re.compile(r"[0-9]+|\"[^\"]{0,40}\"|'[^']{0,40}'")  # in messages of the same kind


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of the values in a document: in each list, of the first 12, and of at most
    50 levels."""
    yield path
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value[:12])
    for key, one in inner if len(path) < 50 else ():
        yield from places(one, (*path, key))


def value_at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


class Bodies:
    """Known bodies, and changes of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.known: list[tuple[str, Any]] = [(path, ROWS[path].example) for path in POSTS]
        generator = Generator(seed, ggtok.load(MODELS["m"]).n_tokens)
        for _ in range(300):
            request = generator.request()
            try:
                self.known.append((request.path, json.loads(request.data or b"{}")))
            except ValueError:
                continue

    def make(self) -> tuple[str, bytes]:
        """Returns a path and a body."""
        path, body = self.random.choice(self.known)
        if self.random.random() < 0.1:
            path = self.random.choice(POSTS)
        body = json.loads(json.dumps(body))  # a copy
        for _ in range(self.random.randrange(5)):
            body = self.changed(body)
        if isinstance(body, dict) and self.random.random() < 0.95:
            body.setdefault("model", self.random.choice([*MODELS]))
        data = json.dumps(body, ensure_ascii=self.random.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
        if self.random.random() < 0.05:
            at = self.random.randrange(len(data) + 1)
            data = data[:at] + self.random.randbytes(self.random.randrange(3)) + data[at + 1 :]
        return path, data[:MOST_BYTES]

    def changed(self, body: Any) -> Any:
        rng = self.random
        path = rng.choice([*places(body)])
        old = value_at(body, path)
        kind = rng.randrange(7)
        if kind == 0 and isinstance(old, dict):
            old[rng.choice(NAMES)] = copy.deepcopy(rng.choice(JUNK))
            return body
        if kind == 1 and isinstance(old, (dict, list)) and old:
            del old[rng.choice([*old]) if isinstance(old, dict) else rng.randrange(len(old))]
            return body
        if kind == 2 and isinstance(old, list) and old:
            old.extend([rng.choice(old)] * rng.choice((1, 3, 50)))
            return body
        new: Any = copy.deepcopy(rng.choice(JUNK))
        if kind == 3:
            new = [old] if rng.random() < 0.5 else {rng.choice(NAMES): old}
            for _ in range(rng.choice((0, 0, 3, 100))):
                new = [new]
        elif kind == 4:
            other = rng.choice(self.known)[1]
            new = json.loads(json.dumps(value_at(other, rng.choice([*places(other)]))))
        elif kind == 5 and isinstance(old, str):
            at = rng.randrange(len(old) + 1)
            new = old[:at] + rng.choice(TEXTS) + old[at:]
        elif kind == 6 and isinstance(old, int):
            new = old + rng.choice(NUMBERS)
        if not path:
            return new
        value_at(body, path[:-1])[path[-1]] = new
        return body


def complaint(status: int, text: str) -> str | None:
    """Returns what is wrong with an answer, or None."""
    try:
        found = json.loads(text)
    except ValueError:
        return "not JSON"
    if status not in STATUSES or "Internal Server Error" in text:
        return "an internal error"
    if not isinstance(found, dict) or (status == 200) == ("error" in found):
        return "neither a result nor an error with a reason"
    return None


def fuzz(seed: int, seconds: float = math.inf, inputs: float = math.inf) -> tuple[int, int, int]:
    """Prints the findings. Returns the numbers of inputs, accepted inputs and findings."""
    end = time.monotonic() + seconds
    bodies, kinds = Bodies(seed), set[object]()
    n = accepted = findings = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app = server.app(MODELS)
        with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
            while n < inputs and time.monotonic() < end:
                path, data = bodies.make()
                answer = client.post(path, content=data)
                n += 1
                accepted += answer.status_code == 200
                wrong = complaint(answer.status_code, answer.text)
                repeated = wrong is None and n % 8 == 0 and "duration" not in answer.text
                if repeated and client.post(path, content=data).text != answer.text:
                    wrong = "another answer to the same body"
                if wrong is not None:
                    shown = f"{answer.status_code} {answer.text[:300]}"
                    print(f"{path}: {data[:2000]!r}: {shown}: {wrong}", flush=True)
                    findings += 1
                fields = sorted(answer.json()) if answer.status_code == 200 else answer.text[:200]
                kind = path, answer.status_code, VARYING.sub("", str(fields))
                if kind not in kinds and len(bodies.known) < MOST_KNOWN:
                    kinds.add(kind)
                    try:
                        bodies.known.append((path, json.loads(data)))
                    except ValueError:
                        continue
    return n, accepted, findings


if __name__ == "__main__":
    sys.exit(command.main("python -m tests.fuzz.bodies", __doc__, fuzz))
