"""Compares the server's answers with those of llama-server.

    python -m tests.server.parity                        # written requests, 600 generated ones for
                                                         # each of five vocabularies
    python -m tests.server.parity --random 2000 --seed 7
    python -m tests.server.parity --vocab qwen2          # one of llama.cpp's own vocabularies
    python -m tests.server.parity --record               # rewrites answers.json

Both servers get the same bytes. The status, the type of an error, and each field of the body must
be equal. Differences between error messages are only counted: messages from llama-server's own code
are equal, but not those from its JSON library and from templates. The exit status is 1 if there is
a difference that no row of EXPLAINED, OURS, THEIRS or OTHER explains.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.testclient import TestClient

import ggtok
from ggtok import server
from tests.chat.llamaserver import Server, ServerError, write_model
from tests.chat.made import TEMPLATES
from tests.server.generate import Generator, Request
from tests.server.written import REQUESTS
from tests.support.vocabularies import fixture, real

ANSWERS = Path(__file__).with_name("answers.json")
# Vocabularies, each with a template. llama-server has special handlers for some of the templates.
PAIRS = {
    "bpe-llama3": "tools",
    "spm": "harmony",
    "bpe-qwen2": "object arguments",
    "wpm": "refuses system",
    "ugm": "qwen thinker",
}
RECORDED = ("bpe-llama3", "spm")

# Error messages of llama-server for requests that only it rejects. Each is listed in
# docs/serving.md or docs/chat.md.
EXPLAINED = (
    re.compile(r"JSON schema (error|conversion failed)"),
    re.compile(r"The model produced output that does not match the expected"),
)
# Without a projector, llama-server rejects media before it finds other errors.
MEDIA = re.compile(r"^(image|audio|video) input is not supported")
# Fields that only ggtok has, fields that only llama-server has, and fields that may differ, by
# endpoint.
OURS = {
    "/tokenize": {"count"},
    "/detokenize": {"prompt"},
}
THEIRS = {
    "/v1/models": {"data.0.meta.n_params", "data.0.meta.size", "data.0.meta.ftype"},
    "/props": {"default_generation_settings.params", "model_ftype"},
}
OTHER = {
    "/v1/models": {
        "data.0.created",
        "data.0.owned_by",
        "data.0.meta.n_ctx",  # the context size of one slot
    },
    "/props": {
        "default_generation_settings.n_ctx",
        "total_slots",
        "media_marker",
        "endpoint_slots",
        "endpoint_metrics",
        "ui",
        "ui_settings",
        "build_info",
    },
}
OURS["/models"], THEIRS["/models"], OTHER["/models"] = (
    OURS.get("/v1/models", set()),
    THEIRS["/v1/models"],
    OTHER["/v1/models"],
)

Answer = tuple[int, bytes]
SHOWN = 12


@dataclass
class Result:
    counts: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)
    failures: int = 0

    def same(self, kind: str) -> None:
        self.counts[kind] += 1

    def differs(self, kind: str, request: Request, more: str) -> None:
        self.counts[kind] += 1
        self.failures += 1
        if self.counts[kind] <= SHOWN:
            self.shown.append(f"{kind}: {request}\n{more}")


def compare(request: Request, ours: Answer, theirs: Answer, to: Result) -> None:
    theirs_body, ours_body = _body(theirs[1]), _body(ours[1])
    message = _error(theirs_body).get("message", "")
    explained = ours[0] == 200 != theirs[0] and any(row.search(message) for row in EXPLAINED)
    if explained or MEDIA.search(message):
        to.same("explained")
        return
    both = f"  ours   {ours[0]} {ours[1][:600]!r}\n  theirs {theirs[0]} {theirs[1][:600]!r}"
    if ours[0] != theirs[0]:
        to.differs("other status", request, both)
        return
    if theirs[0] != 200:
        wrong = _error(ours_body)
        known = _error(theirs_body)
        if wrong.get("type") != known.get("type") or wrong.get("code") != known.get("code"):
            to.differs("other error", request, both)
        else:
            equal = wrong["message"] == known["message"]
            to.same("same error and message" if equal else "same error")
        return
    path = request.path.partition("?")[0]
    differences = list(_differences(ours_body, theirs_body, ""))
    allowed = OURS.get(path, set()), THEIRS.get(path, set()), OTHER.get(path, set())
    bad = [
        (kind, name, values)
        for kind, name, values in differences
        if name not in allowed[("ours", "theirs", "other").index(kind)]
    ]
    if bad:
        to.differs("other body", request, "\n".join(f"  {row}" for row in bad[:5]) + f"\n{both}")
    else:
        to.same("same body")


def _body(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


def _error(body: Any) -> dict[str, Any]:
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def _differences(ours: Any, theirs: Any, at: str) -> Iterator[tuple[str, str, object]]:
    """Yields the differences as tuples of their kind, the field's path, and the values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours.keys() | theirs.keys():
            where = f"{at}.{name}" if at else name
            if name not in theirs:
                yield "ours", where, ours[name]
            elif name not in ours:
                yield "theirs", where, theirs[name]
            else:
                yield from _differences(ours[name], theirs[name], where)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(*pair, f"{at}.{i}" if at else str(i))
    elif type(ours) is not type(theirs) or ours != theirs:
        yield "other", at, (ours, theirs)


def ask(client: TestClient, request: Request) -> Answer:
    headers = {"Content-Type": "application/json"}
    answer = client.request(request.method, request.path, content=request.data, headers=headers)
    return answer.status_code, answer.content


@contextmanager
def serving(model: Path) -> Iterator[TestClient]:
    """Serves a model under its path as its name, as llama-server does."""
    app = server.app({str(model): model})
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@contextmanager
def both(path: Path, template: str) -> Iterator[tuple[TestClient, Server]]:
    """Starts both servers for a vocabulary and a template."""
    with TemporaryDirectory(prefix="ggtok-server-") as folder:
        model = Path(folder) / "model.gguf"
        write_model(path, model, {"tokenizer.chat_template": template.encode()})
        with Server(model, "") as theirs, serving(model) as ours:
            yield ours, theirs


def vocabulary(name: str) -> Path:
    return fixture(name) if name in PAIRS else real(name)


def run(name: str, requests: Sequence[Request], to: Result) -> None:
    """Compares the answers to requests. If a request crashes llama-server, counts the crash and
    restarts llama-server."""
    template = TEMPLATES[PAIRS.get(name, "tools")]
    left = list(requests)
    while left:
        with both(vocabulary(name), template) as (ours, theirs):
            while left:
                request = left.pop(0)
                answer = ask(ours, request)
                try:
                    compare(request, answer, theirs.exchange(*request), to)
                except ServerError:
                    to.same("llama-server died")
                    if answer[0] >= 500 and not _error(_body(answer[1])):
                        to.differs("we failed", request, repr(answer))
                    break


def record() -> dict[str, Any]:
    """Records llama-server's answers to the handwritten requests, for tests that run without it."""
    recorded: dict[str, Any] = {}
    for name in RECORDED:
        template = TEMPLATES[PAIRS[name]]
        rows = []
        with both(fixture(name), template) as (_, theirs):
            for request in REQUESTS:
                status, data = theirs.exchange(*request)
                body = portable(_body(data))
                for field_path in THEIRS.get(request.path.partition("?")[0], ()):
                    _drop(body, field_path.split("."))
                rows.append([status, body])
        recorded[name] = rows
    return recorded


def _drop(body: Any, path: Sequence[str]) -> None:
    """Removes a field that ggtok's server doesn't have."""
    *above, last = path
    for name in above:
        body = body[int(name)] if isinstance(body, list) else body.get(name, {})
    body.pop(last, None)


def portable(body: Any) -> Any:
    """Returns an answer with the model's temporary path and all times removed."""
    text = re.sub(r"/[^\" ]*/ggtok-server-[^/]*/model\.gguf", "MODEL", json.dumps(body))
    return json.loads(re.sub(r'"created": \d+', '"created": 0', text))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.server.parity")
    parser.add_argument("--vocab", action="append", help=f"{', '.join(PAIRS)} by default")
    parser.add_argument("--random", type=int, default=600, metavar="N", help="for a vocabulary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args(arguments)
    if args.record:
        rows = ",\n".join(
            f'"{name}": [\n' + ",\n".join(map(json.dumps, answers)) + "\n]"
            for name, answers in record().items()
        )
        ANSWERS.write_text("{\n" + rows + "\n}\n")
        return 0
    total = Result()
    for i, name in enumerate(args.vocab or PAIRS):
        begin = time.monotonic()
        generator = Generator(args.seed * 1000 + i, ggtok.load(vocabulary(name)).n_tokens)
        requests = [*REQUESTS, *(generator.request() for _ in range(args.random))]
        run(name, requests, total)
        print(f"{name}: {len(requests)} requests, {time.monotonic() - begin:.1f} s", flush=True)
    for text in total.shown:
        print(text)
    for kind, n in total.counts.most_common():
        print(f"{n:8} {kind}")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
