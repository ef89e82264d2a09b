"""Metrics and logs."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.server import logs, metrics
from ggtok.server.metrics import Metrics
from tests.server.running import numbers
from tests.support.vocabularies import fixture

Serve = Callable[..., TestClient]


def test_metrics(serve: Serve) -> None:
    client = serve(api_keys=["k"])
    assert client.get("/metrics").status_code == 401
    key = {"Authorization": "Bearer k"}
    for content in "Hi there", 7, "Hi there":
        client.post("/tokenize", json={"content": content}, headers=key)
    client.get("/nothing", headers=key)
    answer = client.get("/metrics", headers=key)
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    found = numbers(answer.text)
    assert found['ggtok_requests_total{endpoint="/tokenize",status="200"}'] == 2
    assert found['ggtok_requests_total{endpoint="/tokenize",status="400"}'] == 1
    assert found['ggtok_requests_total{endpoint="/metrics",status="401"}'] == 1
    assert found['ggtok_requests_total{endpoint="other",status="404"}'] == 1
    assert found['ggtok_request_seconds_count{endpoint="/tokenize"}'] == 3
    assert found['ggtok_request_seconds_bucket{endpoint="/tokenize",le="+Inf"}'] == 3
    assert found['ggtok_received_bytes_total{endpoint="/tokenize"}'] == 2 * 22 + 13
    assert found['ggtok_sent_bytes_total{endpoint="/tokenize"}'] > 0
    assert found["ggtok_requests_in_progress"] == 1
    assert found["ggtok_models_loaded"] == found["ggtok_model_loads_total"] == 1
    assert found["ggtok_model_failures_total"] == found["ggtok_model_unloads_total"] == 0
    assert found["ggtok_bodies_bytes"] == found["ggtok_requests_in_threads"] == 0
    assert found[f'ggtok_build_info{{version="{ggtok.__version__}"}}'] == 1


def test_metrics_of_a_mounted_application() -> None:
    app = Starlette(routes=[Mount("/a", server.app(fixture("bpe-llama3")))])
    client = TestClient(app, "http://127.0.0.1")
    assert client.get("/a/health").status_code == 200
    found = numbers(client.get("/a/metrics").text)
    assert found['ggtok_requests_total{endpoint="/health",status="200"}'] == 1


def test_metrics_in_the_format_of_prometheus(serve: Serve) -> None:
    """Each name's help and type precede its values, and buckets never decrease."""
    client = serve()
    client.get("/health")
    lines = client.get("/metrics").text.splitlines()
    known: set[str] = set()
    for line in lines:
        if line.startswith("# TYPE "):
            known.add(line.split()[2])
        elif not line.startswith("#"):
            name = line.partition("{")[0].partition(" ")[0]
            base = name
            for end in "_bucket", "_sum", "_count":
                base = base.removesuffix(end)
            assert {name, base} & known, line
    buckets = [v for k, v in numbers("\n".join(lines)).items() if "_bucket" in k]
    assert buckets == sorted(buckets)


def test_metrics_of_several_processes(tmp_path: Path) -> None:
    gauges: list[metrics.Gauge] = [
        ("models_loaded", "Models.", lambda: 2),
        ("loads_total", "Loads.", lambda: 5),
    ]
    mine = Metrics(["/a"], gauges, str(tmp_path))
    mine.begun()
    mine.ended(0, 200, 0.002, 3, 4)
    mine.begun()
    written = next(tmp_path.iterdir())
    text = mine.text()
    (tmp_path / "1").write_bytes(written.read_bytes())  # a process with id 1 exists
    (tmp_path / str(2**22 + 1)).write_bytes(written.read_bytes())  # no process has this id
    (tmp_path / "2").write_bytes(b"starting")
    found = numbers(mine.text())
    assert found['ggtok_requests_total{endpoint="/a",status="200"}'] == 3
    assert found["ggtok_requests_in_progress"] == 2
    assert found["ggtok_models_loaded"] == 4
    assert found["ggtok_loads_total"] == 15
    assert "# TYPE ggtok_loads_total counter" in text
    assert numbers(text)["ggtok_models_loaded"] == 2
    if os.name != "nt":  # on Windows, the files of running processes can't be deleted
        shutil.rmtree(tmp_path)
        assert mine.text() == text


@pytest.mark.parametrize("status", [299, 0])
def test_metrics_of_rare_statuses(status: int) -> None:
    made = Metrics(["/a"], [])
    made.begun()
    made.ended(0, status, 100.0, 0, 0)
    assert numbers(made.text())['ggtok_requests_total{endpoint="/a",status="other"}'] == 1


def test_logged_requests_have_no_texts(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client = serve()
    with caplog.at_level(logging.DEBUG, "ggtok.server"):
        client.post("/tokenize?secret", json={"content": "secret"})
    found = [r for r in caplog.records if r.name == "ggtok.server.requests"]
    assert len(found) == 1
    line = json.loads(logs.JsonLineFormatter().format(found[0]))
    assert {name: line[name] for name in ("method", "path", "status", "received", "level")} == {
        "method": "POST",
        "path": "/tokenize",
        "status": 200,
        "received": 20,
        "level": "debug",
    }
    assert "secret" not in json.dumps(line)


def test_logged_exceptions_have_no_texts() -> None:
    try:
        raise ValueError("secret")
    except ValueError:
        record = logging.LogRecord("a", 40, "p", 1, "failed\n", None, sys.exc_info())
    line = json.loads(logs.JsonLineFormatter().format(record))
    assert line["message"] == "failed" and line["exception"] == "ValueError"
    assert "test_observed.py" in line["at"][0] and "secret" not in json.dumps(line)


def test_the_configuration_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    loggers = [logging.getLogger(n) for n in ("ggtok.server", "ggtok.server.requests", "uvicorn")]
    before = [(logger.level, logger.handlers, logger.propagate) for logger in loggers]
    try:
        for each_request in False, True:
            logging.config.dictConfig(logs.configuration("info", each_request))
            loggers[1].debug("request", extra={"fields": {"n": int(each_request)}})
            loggers[0].info("started")
        found = [json.loads(line) for line in stream.getvalue().splitlines()]
    finally:
        for logger, (level, handlers, propagate) in zip(loggers, before, strict=True):
            logger.level, logger.handlers, logger.propagate = level, handlers, propagate
            logger.manager._clear_cache()  # type: ignore[attr-defined]
    assert [(line["message"], line.get("n")) for line in found] == [
        ("started", None),
        ("request", 1),
        ("started", None),
    ]
