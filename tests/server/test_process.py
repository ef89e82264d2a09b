"""``ggtok serve``: options, log, signals, several processes."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ggtok
from ggtok import cli
from tests.server.command import serving
from tests.server.running import ask, connect, numbers, until_closed
from tests.support import waits
from tests.support.samples import sampled
from tests.support.vocabularies import fixture

BPE, SPM = fixture("bpe-llama3"), fixture("spm")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "other machines can reach 0.0.0.0: give a key with --api-key"),
        (["--host", "::"], "other machines can reach ::"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--limit"], "need --upstream"),
        (["--limit", "x"], "put the models before --limit"),
        (["--upstream", "nonsense"], "must be the address of a server"),
        (["--host", "256.256.256.256", "--no-auth"], "can't listen at"),
        (["--log-level", "all"], "the choices are error"),
    ],
)
def test_options(
    arguments: list[str],
    message: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GGTOK_API_KEY", raising=False)
    assert cli.main(["serve", str(BPE), *arguments]) == 2
    assert message in capfd.readouterr().err


def test_a_process(tmp_path: Path) -> None:
    """The process reports when it is ready, logs JSON that contains no texts, and exits cleanly."""
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(address)
        told.settimeout(waits.LIMIT)
        environment = {"NOTIFY_SOCKET": address, "GGTOK_API_KEY": "secret-key"}
        arguments = [BPE, "--log-requests", "--host", "0.0.0.0", "--allowed-host", "box.example"]
        with serving(arguments, tmp_path / "log", environment) as served:
            assert told.recv(100) == b"READY=1"
            url = served.url.replace("0.0.0.0", "127.0.0.1")
            key = {"Authorization": "Bearer secret-key", "Host": "box.example"}
            body = {"content": "secret-text"}
            assert ask(url, "POST", "/tokenize?secret-query", body, key)[0] == 200
            assert ask(url, "POST", "/tokenize", body)[0] == 401
            assert served.stop() == 0
            assert told.recv(100) == b"STOPPING=1"
            found = [line for line in served.lines() if line["message"] == "request"]
            assert [line["status"] for line in found] == [200, 401]
            assert "secret" not in served.text()


def test_several_processes(tmp_path: Path) -> None:
    with serving([BPE, "--workers", "2"], tmp_path / "log") as served:
        for _ in range(20):
            assert ask(served.url, "GET", "/health")[0] == 200
        found = numbers(ask(served.url, "GET", "/metrics")[2].decode())
        assert found['ggtok_requests_total{endpoint="/health",status="200"}'] == 20
        assert served.stop() == 0


def test_processes_agree_on_the_marker(tmp_path: Path) -> None:
    with serving([BPE, "--workers", "2"], tmp_path / "log") as served:
        waits.until(lambda: served.text().count("Application startup complete") == 2)
        markers = {ask(served.url, "GET", "/props")[2]["media_marker"] for _ in range(30)}
        assert len(markers) == 1
        assert served.stop() == 0


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    with serving([BPE, "--workers", "2"], tmp_path / "log", {"TMPDIR": str(files)}) as served:
        waits.until(lambda: served.text().count("Application startup complete") == 2)
        assert list(files.iterdir())
        served.process.kill()
        served.process.wait()
        waits.until(lambda: served.text().count("Finished server process") == 2)
        waits.until(lambda: not _answers(served.url))
        assert not list(files.iterdir())


def _answers(url: str) -> bool:
    try:
        connect(url).close()
    except ConnectionRefusedError:
        return False
    return True


class Clients:
    """Threads that send requests until the server exits, and check each answer."""

    def __init__(self, url: str, answers: list[list[int]], text: str, count: int = 8) -> None:
        self.wrong: list[object] = []
        self.served = 0
        self._answers = answers
        self._address = urlsplit(url)
        self._body = json.dumps({"content": text})
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        host, port = self._address.hostname or "", self._address.port
        while not self._stop.is_set():
            connection = http.client.HTTPConnection(host, port, timeout=waits.LIMIT)
            try:
                while not self._stop.is_set():
                    connection.request("POST", "/tokenize", self._body)
                    answer = connection.getresponse()
                    data = json.loads(answer.read())
                    if answer.status != 200 or data["tokens"] not in self._answers:
                        self.wrong.append((answer.status, data))
                    self.served += 1
            except (ConnectionError, http.client.BadStatusLine):
                if self._stop.is_set():
                    return
            except Exception as e:
                self.wrong.append(e)
                return
            finally:
                connection.close()

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.wrong, self.wrong[:3]


@pytest.mark.parametrize("workers", sampled([2, 1], 2))
def test_sigterm_under_load(workers: int, tmp_path: Path) -> None:
    """Every answer that has begun is completed correctly, and then the process exits."""
    text = "Hi there. " * 3000  # long enough to be encoded on a worker thread
    ids = ggtok.load(BPE).encode(text, add_special=False)
    with serving([BPE, "--workers", workers], tmp_path / "log") as served:
        clients = Clients(served.url, [ids], text)
        try:
            waits.until(lambda: clients.served > 20)
            idle = connect(served.url)
            idle.sendall(b"GET /hea")
            assert served.stop() == 0
            assert not until_closed(idle)
            idle.close()
        finally:
            clients.finish()


def test_a_file_replaced_under_load(tmp_path: Path) -> None:
    """Each answer comes from either the old or the new model, and soon only from the new one."""
    text = "Hi there, World."
    model = Path(shutil.copy(BPE, tmp_path / "model.gguf"))
    new = Path(shutil.copy(SPM, tmp_path / "new.gguf"))
    answers = [ggtok.load(path).encode(text, add_special=False) for path in (BPE, SPM)]
    with serving([model], tmp_path / "log") as served:
        clients = Clients(served.url, answers, text)
        try:
            waits.until(lambda: clients.served > 20)
            os.replace(new, model)
            body = {"content": text}
            waits.until(
                lambda: ask(served.url, "POST", "/tokenize", body)[2]["tokens"] == answers[1]
            )
            os.truncate(model, 100)
            n = clients.served
            waits.until(lambda: clients.served > n + 200)
        finally:
            clients.finish()
        assert served.process.poll() is None


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with serving([BPE], tmp_path / "log") as served, connect(served.url) as slow:
        head = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
        slow.sendall(head)
        assert ask(served.url, "GET", "/health")[0] == 200
        served.process.send_signal(signal.SIGINT)
        waits.until(lambda: "Shutting down" in served.text())
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(waits.LIMIT) == 0
