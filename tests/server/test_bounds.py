"""Requests can't make the server use memory or time without bound, or wait for each other."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.server import bodies, decoded, metrics, model_facts, serving
from ggtok.server import native as native_module
from ggtok.server import registry as registry_module
from ggtok.server.chat_prompts import RESPONSES, convert_body
from ggtok.server.fields import valid_ids
from ggtok.server.openapi import ROWS
from ggtok.server.refusals import Refusal
from ggtok.server.registry import Registry
from ggtok.server.vllm import LONGEST_TEMPLATE
from ggtok.server.workers import Workers, unless_disconnected
from tests.server.command import serving as command
from tests.server.names import NAMES, POSTS
from tests.server.running import ask, connect, exchange, listening, running, until_closed
from tests.support import waits
from tests.support.samples import sampled
from tests.support.vocabularies import FIXTURES, fixture

MODEL, NEOX, SPM = fixture("bpe-llama3"), fixture("bpe-neox"), fixture("spm")
HEAD = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = server.app({"a": MODEL, "neox": NEOX})
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as made:
        yield made


# ---- memory before checks ----


@pytest.mark.parametrize(
    ("path", "field", "copies"),
    [
        ("/detokenize", "tokens", 2),
        ("/api/detokenize", "tokens", 1),
        ("/v1/ggtok/decode", "ids", 1),
    ],
)
def test_long_texts_are_refused_before_they_are_decoded(
    path: str, field: str, copies: int, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some vocabularies have tokens of hundreds of spaces."""
    tok = ggtok.load(NEOX)
    size, longest = max((len(tok.token_to_piece(id)), id) for id in range(tok.n_tokens))
    monkeypatch.setattr(decoded, "MOST", 100_000)

    def post(n: int) -> Any:
        ids = [longest] * n
        body = {"model": "neox", field: [ids[: n // 2], ids[n // 2 :]] if field == "ids" else ids}
        return client.post(path, json=body)

    fitting = 100_000 // copies // size
    assert post(fitting).status_code == 200
    decoded_lists: list[object] = []

    def record(*args: object, **options: object) -> list[str]:
        decoded_lists.append(args)
        return []

    monkeypatch.setattr(ggtok.Tokenizer, "decode", record)
    monkeypatch.setattr(ggtok.Tokenizer, "decode_batch", record)
    refused = post(fitting + 1)
    assert refused.status_code == 413
    assert "at most" in refused.text and not decoded_lists


def test_only_one_long_text_is_decoded_at_a_time(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small body whose text is long waits for its turn, and isn't answered on the event loop."""
    monkeypatch.setattr(decoded, "LARGE", 100)
    names: list[tuple[str, bool]] = []
    decode = ggtok.Tokenizer.decode

    def record(*args: Any, **options: Any) -> str:
        held = client.app.state.bodies.large.locked()  # type: ignore[attr-defined]
        names.append((threading.current_thread().name, held))
        return decode(*args, **options)

    monkeypatch.setattr(ggtok.Tokenizer, "decode", record)
    for n in (5, 400):
        body = {"model": "a", "tokens": [5] * n}
        assert client.post("/detokenize", json=body).status_code == 200
        assert client.post("/detokenize", json=body).status_code == 200
    assert [held for _, held in names] == [False, False, True, True]
    assert {name for name, held in names if held} == {"ggtok-server"}


# ---- work without bound ----


def test_many_separators_are_refused(client: TestClient) -> None:
    body = {"model": "a", "text": "x y " * 100, "n": 8}
    most = native_module._MOST_SEPARATORS
    at = [f"<{i}>" for i in range(most)]
    assert client.post("/v1/ggtok/chunks", json={**body, "at": at}).status_code == 200
    refused = client.post("/v1/ggtok/chunks", json={**body, "at": [*at, "|"]})
    assert refused.status_code == 400 and "separators" in refused.text


@pytest.mark.parametrize("kind", ["message", "function_call"])
def test_many_items_become_one_message(kind: str) -> None:
    """The parts of one message come from many items. Copying the list for each item would exceed
    the limit of steps."""
    item: dict[str, Any] = {"type": kind, "arguments": "", "call_id": "1", "name": "f"}
    if kind == "message":
        item |= {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    [message] = convert_body({"input": [item] * 60_000}, RESPONSES)["messages"]
    assert len(message["content" if kind == "message" else "tool_calls"]) == 60_000


def test_names_are_compared_once() -> None:
    """Ten thousand names are compared with a few names each, not with each other."""

    class Name(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)

    models = [registry_module.AllowedModel(Name(f"m{i}"), f"m{i}", "") for i in range(2000)]
    registry_module._check_names(models)
    assert Name.compared < 10_000
    with pytest.raises(ggtok.InvalidValueError, match="two models have the name 'm1'"):
        registry_module._check_names([*models, models[1]])


def test_errors_list_few_names() -> None:
    registry = Registry({f"m{i}": MODEL for i in range(1000)})
    for name in (None, "other"):
        with pytest.raises(Refusal) as e:
            registry.get(name)
        assert len(e.value.message) < 400 and "and 980 more" in e.value.message


# ---- repr of foreign values ----


class _Unprintable(dict[str, Any]):
    def __repr__(self) -> str:
        raise AssertionError("repr of a value from a request")


@pytest.mark.parametrize("value", [_Unprintable(), [_Unprintable()], "x" * 10**6, 10**18])
def test_rejected_values_are_not_formatted(value: object) -> None:
    registry = Registry({"a": MODEL, "b": SPM})
    tok = ggtok.load(SPM)
    for function in (registry.model_named, lambda value: valid_ids([1, value], "i", tok)):
        with pytest.raises((Refusal, ggtok.TokenIdError)) as e:
            function(value)
        assert len(str(e.value)) < 400


@pytest.mark.parametrize("path", sampled(POSTS, 3))
def test_deeply_nested_values(path: str, client: TestClient) -> None:
    """A value with 1,000 levels in any field gets an answer, or an error with a reason."""
    deep = b"[" * 1000 + b"]" * 1000, b'{"type":' * 900 + b"1" + b"}" * 900
    for name in NAMES:
        for value in deep:
            fields = {**(ROWS[path].example or {}), "model": "a"}
            fields.pop(name, None)
            body = bodies.dump(fields)[:-1] + b',"%s":%s}' % (name.encode(), value)
            answer = client.post(path, content=body)
            assert "Internal Server Error" not in answer.text, name
            assert answer.status_code in (200, 400, 404, 500, 501), (name, answer.text[:300])


def test_bodies_of_many_parts_are_refused(client: TestClient) -> None:
    """A parser makes objects under the GIL: millions of them would stall all requests."""
    most = bodies.MOST_PARTS

    def answer(data: bytes) -> Any:
        return client.post("/tokenize", content=b'{"model":"a","content":[%s]}' % data)

    fitting = b"1" + b",{}" * (most - 4)  # 2 members, an object, a list
    members = b"{%s}" % b",".join(b'"%d":1' % i for i in range(most - 5))
    for data in fitting, members:
        assert "lists, objects and members" not in answer(data).text
    more = fitting + b",[]", b"[" * most, b'"\\"",' + fitting + b",[]", members + b",[]"
    for data in more:
        refused = answer(data)
        assert refused.status_code == 400
        assert f"more than {most} lists, objects and members" in refused.text
    for text in (b'"' + b"{" * most + b'"', b'"\\"' + b"[" * most + b'"', b'"%s"' % (b":" * most)):
        assert answer(text).status_code == 200


# ---- shared queues ----


@contextmanager
def blocked_loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Models whose source begins with "stalled" aren't loaded until the end. Yields the sources of
    those that are being loaded."""
    end, loading, load = threading.Event(), set[str](), ggtok.load

    def stalling(source: Any, *args: Any, **options: Any) -> ggtok.Tokenizer:
        if str(source).startswith("stalled"):
            loading.add(source)
            end.wait(waits.LIMIT)
        return load(source, *args, **options)

    monkeypatch.setattr(registry_module.ggtok, "load", stalling)
    try:
        yield loading
    finally:
        end.set()


def test_loading_delays_only_requests_for_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {f"s{i}": f"stalled{i}" for i in range(8)}
    body = {"content": "Hi " * 10_000}  # too long for the event loop
    with (
        blocked_loads(monkeypatch) as loading,
        running({"loaded": MODEL, "file": SPM, **sources}, threads=1) as url,
    ):
        assert ask(url, "POST", "/tokenize", {**body, "model": "loaded"})[0] == 200
        waiting = []
        for name in [*sources] * 3:
            waiting.append(connect(url))
            data = json.dumps({"model": name, "content": "Hi"}).encode()
            waiting[-1].sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(data) + data)
        waits.until(lambda: len(loading) == len(sources))
        for name in ("loaded", "file"):  # the second isn't loaded yet
            assert ask(url, "POST", "/tokenize", {**body, "model": name})[0] == 200
        for each in waiting:
            each.close()


def test_small_requests_do_not_wait_for_large_ones() -> None:
    app = server.app({"m": MODEL}, threads=1)
    end = threading.Event()
    chat = {"messages": [{"role": "user", "content": "Hi"}]}
    with listening(app) as url:
        assert ask(url, "POST", "/apply-template", chat)[0] == 200
        app.state.workers._answers.submit(end.wait)
        try:
            assert ask(url, "POST", "/apply-template", chat)[0] == 200
        finally:
            end.set()


def test_templates_of_requests_do_not_delay_small_requests() -> None:
    """A small body with a slow template waits for the thread of large bodies."""
    app = server.app({"m": FIXTURES / "chat.gguf"}, threads=1)
    end = threading.Event()
    chat = {"messages": [{"role": "user", "content": "Hi"}]}
    slow = json.dumps({**chat, "chat_template": "{{ messages }}"}).encode()
    with listening(app) as url:
        assert ask(url, "POST", "/tokenize", chat)[0] == 200
        app.state.workers._answers.submit(end.wait)
        try:
            with connect(url) as waiting:
                waiting.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(slow) + slow)
                waits.until(lambda: app.state.workers.pending == 1)
                assert ask(url, "POST", "/tokenize", chat)[0] == 200
                assert app.state.workers.pending == 1
        finally:
            end.set()


@pytest.mark.parametrize(
    ("path", "name"), [("/tokenize", "chat_template"), ("/v1/ggtok/count_chat", "template")]
)
def test_long_templates_of_requests_are_refused(path: str, name: str) -> None:
    """A compiled template takes about 100 times its size."""
    chat = {"messages": [{"role": "user", "content": "Hi"}]}
    with running({"m": FIXTURES / "chat.gguf"}) as url:
        for more, expected in (0, 200), (1, 400):
            template = "{{ messages[0].content }}".ljust(LONGEST_TEMPLATE + more)
            status, _, answer = ask(url, "POST", path, {**chat, name: template})
            assert status == expected, answer
        assert "262145 characters; at most 262144 are allowed" in answer["error"]["message"]


def test_a_file_that_can_not_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """If looking at a loaded model's file takes long, the model is used as it is."""
    end = threading.Event()
    with running({"m": MODEL}, threads=1) as url:
        assert ask(url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
        monkeypatch.setattr(registry_module, "CHECK_SECONDS", 0.0)
        monkeypatch.setattr(registry_module, "_stamp", lambda model: end.wait(waits.LIMIT))
        try:
            assert ask(url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
        finally:
            end.set()


def test_abandoned_requests_are_dropped() -> None:
    """Requests of clients that have gone away leave the queue before a thread works on them."""
    app = server.app({"m": MODEL}, threads=1)
    workers, end = app.state.workers, threading.Event()
    with listening(app) as url:
        assert ask(url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
        workers._answers.submit(end.wait)
        try:
            data = json.dumps({"content": "Hi " * 10_000}).encode()
            waiting = [connect(url) for _ in range(20)]
            for each in waiting:
                each.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(data) + data)
            waits.until(lambda: workers.pending == len(waiting))
            assert app.state.bodies.held == len(waiting) * len(data)
            for each in waiting:
                each.close()
            waits.until(lambda: workers.pending == 0 and app.state.bodies.held == 0)
        finally:
            end.set()


def test_work_that_has_begun_keeps_its_place() -> None:
    """A client that goes away can't make the server begin further work that needs much memory."""

    async def scenario() -> None:
        workers, end, begun = Workers(Registry({}), threads=2), threading.Event(), threading.Event()
        large = asyncio.Semaphore(1)

        def work(ready: object) -> bool:
            begun.set()
            return end.wait(waits.LIMIT)

        async def answer() -> bool:
            async with large:
                return await workers.run(work)

        gone = asyncio.Event()

        async def receive() -> dict[str, str]:
            await gone.wait()
            return {"type": "http.disconnect"}

        task = asyncio.create_task(unless_disconnected(answer(), receive))
        await asyncio.to_thread(begun.wait, waits.LIMIT)
        gone.set()
        await asyncio.sleep(0.05)
        assert large.locked() and not task.done() and workers.pending == 1
        end.set()
        with pytest.raises(ClientDisconnect):
            await task
        assert not large.locked() and workers.pending == 0
        workers.close()

    asyncio.run(scenario())


# ---- connections ----


def test_waiting_heads_are_bounded_together() -> None:
    app = server.app({"m": MODEL}, threads=1)
    end = threading.Event()
    with listening(app) as url:
        assert ask(url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
        app.state.workers._answers.submit(end.wait)
        data = json.dumps({"content": "Hi " * 10_000}).encode()
        first = HEAD + b"Content-Length: %d\r\n\r\n" % len(data) + data
        head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n"
        with connect(url) as sent:
            sent.sendall(first + head % (b"x" * 12_000) * 4)
            assert b"HTTP/1.1 431 " in until_closed(sent)
        end.set()
        with connect(url) as sent:
            sent.sendall(
                first + head % (b"x" * 500) * 30 + head.replace(b"X", b"Connection") % b"close"
            )
            assert until_closed(sent).count(b"HTTP/1.1 200 ") == 32


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(("options", "status"), [({}, 413), ({"api_keys": ["k"]}, 401)])
def test_refusals_can_be_read_while_the_body_is_sent(
    options: dict[str, Any], status: int, framing: str
) -> None:
    """The server reads on after an early answer: otherwise, the client would get a reset."""
    size = 4 << 20
    lengths = {"length": b"Content-Length: %d" % size, "chunked": b"Transfer-Encoding: chunked"}
    with running({"m": MODEL}, max_body=1000, **options) as url, connect(url) as sent:
        sent.sendall(HEAD + b"Connection: close\r\n" + lengths[framing] + b"\r\n\r\n")
        block = b"x" * 65_536
        for _ in range(size // len(block)):
            sent.sendall(b"10000\r\n" + block + b"\r\n" if framing == "chunked" else block)
        answer = until_closed(sent)
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
        assert answer.endswith(b"}")


@pytest.mark.parametrize("upgrade", [b"websocket", b"h2c"])
@pytest.mark.parametrize("connection", [b"close", b"Upgrade, close", b"close, Upgrade", b"Upgrade"])
def test_upgrades_are_answered(upgrade: bytes, connection: bytes) -> None:
    head = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
    head += b"Upgrade: %s\r\nConnection: %s\r\n" % (upgrade, connection)
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with running({"m": MODEL}) as url:
        answers = exchange(url, head + b'Content-Length: 17\r\n\r\n{"content": "Hi"}' + last)
    assert answers.count(b"HTTP/1.1 200 ") == (1 if b"close" in connection else 2)
    assert b'"tokens":[' in answers


# ---- processes ----


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs limits of files")
def test_metrics_without_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, a process counts its own requests: a mapped file without room would end
    it at its first request."""

    def full(self: Path, mode: str) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(metrics.Path, "open", full)
        made = metrics.Metrics(["a"], [], str(tmp_path))
    made.begun()
    made.ended(0, 200, 0.1, 1, 1)
    assert 'endpoint="a",status="200"} 1' in made.text()
    assert not list(tmp_path.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(serving.tempfile, "mkdtemp", lambda prefix: full(tmp_path, ""))
        assert serving._metrics_folder() is None


def test_metrics_files_have_all_their_pages(tmp_path: Path) -> None:
    metrics.Metrics(["a"] * 100, [], str(tmp_path))
    (path,) = tmp_path.iterdir()
    assert path.stat().st_blocks * 512 >= path.stat().st_size


@pytest.mark.full
@pytest.mark.parametrize("workers", [1, 2])
def test_a_busy_thread_does_not_delay_the_end(tmp_path: Path, workers: int) -> None:
    """SIGTERM ends the server ten seconds later at the latest, whatever its threads do."""
    program = (
        "import sys, time\n"
        "import ggtok.server.native as native\n"
        "from ggtok.server import application\n"
        "from ggtok.server.endpoints import Endpoint\n"
        "stuck = Endpoint('POST', ('/stuck',), lambda call: time.sleep(600))\n"
        "application.ENDPOINTS += (stuck,)\n"
        "application.ROWS = (*application.ROWS[:-1], '/stuck', application.METRICS)\n"
    )
    (tmp_path / "sitecustomize.py").write_text(program)
    environment = {"PYTHONPATH": str(tmp_path)}
    arguments = [MODEL, "--workers", str(workers)]
    with command(arguments, tmp_path / "log", environment) as served:
        waits.until(lambda: "startup complete" in served.text())
        with connect(served.url) as sent:
            sent.sendall(b"POST /stuck HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
            pattern = b"ggtok_requests_in_threads 1"
            waits.until(lambda: pattern in ask(served.url, "GET", "/metrics")[2])
            assert served.stop() == 0


def test_the_log_is_json(tmp_path: Path) -> None:
    """Also the warnings of models, and everything else that Python writes to standard error."""
    model = fixture("bpe-ambiguous")
    with command([model], tmp_path / "log") as served:
        assert ask(served.url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
        assert served.stop() == 0
        first, *lines = served.text().splitlines()
        assert first.startswith("ggtok: note: serving")
        found = [json.loads(line) for line in lines]
        assert any("looks like a control token" in line["message"] for line in found)


@pytest.mark.skipif(os.name == "nt", reason="names that aren't Unicode")
def test_file_names_that_are_not_utf_8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.gguf"
    try:
        Path(os.fsdecode(path)).write_bytes(MODEL.read_bytes())
    except OSError:
        pytest.skip("the file system refuses the name")
    with TestClient(server.app([os.fsdecode(path)]), "http://127.0.0.1") as made:
        (row,) = made.get("/v1/models").json()["data"]
        assert row["id"] == "caf\ufffd.gguf"
        assert made.get("/").status_code == 200
        for name in (row["id"], None):
            answer = made.post("/tokenize", json={"model": name, "content": "Hi"})
            assert answer.json()["tokens"]
        answer = made.get("/v1/ggtok/vocabulary", params={"model": row["id"]})
        assert answer.content.startswith(b"GGUF")


def test_long_templates_are_not_compiled_for_props(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling a template takes a hundred times its size in memory."""
    path = tmp_path / "long.gguf"
    template = "{{ x }}" * 200_000
    ggtok.edit(MODEL, {"tokenizer.chat_template": template}, out=path, force=True)
    compiled: list[object] = []
    monkeypatch.setattr(model_facts.api, "server_chat", lambda *args: compiled.append(args))
    with TestClient(server.app({"m": path}), "http://127.0.0.1") as made:
        assert made.get("/props").json()["chat_template"] == template
    assert not compiled


def test_long_work_leaves_room_for_short() -> None:
    """A full queue of long work refuses only more long work."""

    async def both() -> int:
        workers = Workers(Registry({}), threads=1, waiting=1)
        gate = threading.Event()
        long = [asyncio.ensure_future(workers.run(lambda _: gate.wait(30))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="too many requests"):
            await workers.run(lambda _: True)
        found = await workers.run(lambda _: 7, short=True)
        gate.set()
        await asyncio.gather(*long)
        workers.close()
        return found

    assert asyncio.run(both()) == 7
