"""Local HTTP servers, well-behaved or not, for tests that download files.

with Server() as server:
    server.files["/model.gguf"] = File(path_or_bytes)                # ranges, ETag
    server.files["/other.gguf"] = File(data, ranges=False)           # or without ranges
    url = server.url("/model.gguf")
    ...
    server.requests                                                  # the requests so far
    server.sent                                                      # bytes, with headers
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class File:
    """A file, and how the server answers requests for it."""

    content: bytes | Path
    ranges: bool = True
    etag: str | None = '"one"'
    modified: str | None = None
    # For the first requests, in order: after how many bytes of the body to break the connection.
    breaks: list[int] = field(default_factory=list)
    # For the first requests, in order: the status and headers of an answer without a body.
    statuses: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    redirect: str | None = None
    pause: float = 0.0  # seconds to wait before sending each block
    block: int = 1 << 16  # bytes to send at once
    length: bool = True  # whether to send Content-Length; if not, the body ends with the connection
    chunked: bool = False
    # Changes the headers of an answer and returns its status: (status, headers) -> status.
    lie: Callable[[int, dict[str, str]], int] | None = None
    # Called before each answer.
    before: Callable[[File], None] | None = None

    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def open(self) -> Any:
        if isinstance(self.content, bytes):
            return io.BytesIO(self.content)
        return self.content.open("rb")


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    status: int = 0


class Server:
    """Serves `files` and `json` by path, and counts the bytes sent, including headers."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.json: dict[str, Any] = {}
        self.requests: list[Request] = []
        self.sent = 0
        self._http = _HTTPServer(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def url(self, path: str) -> str:
        return self.origin + path

    def gets(self) -> list[Request]:
        return [request for request in self.requests if request.method == "GET"]

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        for connection in self._http.connections:  # connections that were kept alive
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: Server

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.connections: list[socket.socket] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client closed the connection


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each answer would take 40 ms longer
    server: _HTTPServer

    def setup(self) -> None:
        # A small send buffer, so that few bytes count as sent without reaching the client.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        self.server.connections.append(self.request)
        super().setup()

    def log_message(self, *_: object) -> None:
        pass

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.server.owner.sent += len(data)

    def do_CONNECT(self) -> None:
        owner = self.server.owner
        owner.requests.append(Request(self.command, self.path, {}))
        self._write(b"HTTP/1.1 502 Said\r\nContent-Length: 0\r\n\r\n")

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        owner = self.server.owner
        path = unquote(urlsplit(self.path).path)
        request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
        if path == "/api/agent-harnesses":  # huggingface_hub requests this once per process
            self._head(request, 404, {"Content-Length": "0"})
            return
        owner.requests.append(request)
        if path in owner.json:
            answer = owner.json[path]
            status, headers, body = 200, {"Content-Type": "application/json"}, b""
            if isinstance(answer, tuple):
                status, more, answer = answer
                headers.update(more)
            body = json.dumps(answer).encode()
            headers["Content-Length"] = str(len(body))
            self._head(request, status, headers)
            if self.command == "GET":
                self._write(body)
            return
        file = owner.files.get(path)
        if file is None:
            self._head(request, 404, {"Content-Length": "0"})
            return
        if file.before:
            file.before(file)
        if file.statuses:
            status, headers = file.statuses.pop(0)
            self._head(request, status, {"Content-Length": "0", **headers})
        elif file.redirect:
            headers = {"Location": file.redirect, "Content-Length": "0"}
            if file.lie:
                file.lie(302, headers)
            self._head(request, 302, headers)
        else:
            self._send(request, file)

    def _head(self, request: Request, status: int, headers: dict[str, str]) -> None:
        request.status = status
        lines = [f"HTTP/1.1 {status} Said", *(f"{k}: {v}" for k, v in headers.items())]
        self._write("\r\n".join([*lines, "", ""]).encode())

    def _send(self, request: Request, file: File) -> None:
        size = file.size()
        start, end, status = 0, size, 200
        headers = {}
        if file.etag:
            headers["ETag"] = file.etag
        if file.modified:
            headers["Last-Modified"] = file.modified
        if (file.etag and self.headers.get("If-None-Match") == file.etag) or (
            file.modified and self.headers.get("If-Modified-Since") == file.modified
        ):
            self._head(request, 304, headers)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted and file.ranges:
            start, end = int(wanted[1]), min(int(wanted[2] or size) + 1, size)
            if start >= size:
                headers |= {"Content-Range": f"bytes */{size}", "Content-Length": "0"}
                self._head(request, 416, headers)
                return
            status = 206
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        if file.chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif file.length:
            headers["Content-Length"] = str(end - start)
        else:
            headers["Connection"] = "close"
            self.close_connection = True
        if file.lie:
            status = file.lie(status, headers)
        self._head(request, status, headers)
        if self.command == "HEAD":
            return
        until = start + file.breaks.pop(0) if file.breaks else end
        with file.open() as f:
            f.seek(start)
            while start < end:
                if file.pause:
                    time.sleep(file.pause)
                block = f.read(min(file.block, end - start, max(until - start, 0)))
                if not block:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self._write(b"%x\r\n%s\r\n" % (len(block), block) if file.chunked else block)
                start += len(block)
        if file.chunked:
            self._write(b"0\r\n\r\n")


# ---- a Hub ----


class Hub(Server):
    """A server with the part of the Hugging Face Hub's API that lists and downloads the files of a
    revision. Downloads redirect to another origin (`store`), as they do on the Hub for large files.
    To use the server, set HF_ENDPOINT to its `origin`."""

    COMMIT = "0123456789abcdef0123456789abcdef01234567"

    def __init__(self, store: Server) -> None:
        super().__init__()
        self.store = store

    def add(
        self, repo: str, files: dict[str, bytes | Path], revision: str = "main", **options: Any
    ) -> None:
        self.json[f"/api/models/{repo}/tree/{revision}"] = [
            {"type": "file", "path": name, "size": 1, "oid": "0" * 40} for name in files
        ]
        for name, content in files.items():
            blob = hashlib.sha256(f"{repo}/{revision}/{name}".encode()).hexdigest()
            self.store.files[f"/{blob}"] = File(content, **options)

            def hub_headers(status: int, headers: dict[str, str], blob: str = blob) -> int:
                headers["X-Repo-Commit"] = self.COMMIT
                headers["X-Linked-Etag"] = f'"{blob}"'
                headers["X-Linked-Size"] = str(self.store.files[f"/{blob}"].size())
                return status

            self.files[f"/{repo}/resolve/{revision}/{name}"] = File(
                b"", redirect=self.store.url(f"/{blob}?signature=secret"), lie=hub_headers
            )

    def fail(self, repo: str, status: int, code: str) -> None:
        """Makes the server answer every request about the repository with this status and with
        the header `X-Error-Code: code`."""
        answer = (status, {"X-Error-Code": code}, {"error": code})
        self.json[f"/api/models/{repo}/tree/main"] = answer
        self.json[f"/{repo}/resolve/main/model.gguf"] = answer
