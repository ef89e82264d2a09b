"""Runs llama-server, the reference for the chat tests' prompts.

    with Servers(vocabulary) as servers:
        server = servers.start(template)
        server.post("/apply-template", {"messages": [...]})   # (200, {"prompt": ...}) or an error

The xllamacpp wheel contains the whole server. It needs a model with tensors, so a layer of zeros is
added to a vocabulary. A server serves one template and starts in about a second; each one runs in a
separate process, because some requests crash it.
"""

from __future__ import annotations

import http.client
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.chat import mediafiles
from tests.support.patch import GGUF

START_SECONDS = 120
REQUEST_SECONDS = 60
_WIDTH = 64  # the layer's embedding size
_F32, _F16 = 0, 1
_ALIGNMENT = 32


class ServerError(Exception):
    """The server didn't start (the message has the end of its output), or crashed."""


def write_model(vocabulary: Path, path: Path, patch: dict[str, object] | None = None) -> Path:
    """Writes a model with one layer and a file's vocabulary, without the file's chat template."""
    gguf = GGUF.read(vocabulary)
    for key in [key.decode() for key in gguf.raw if not key.startswith(b"tokenizer.")]:
        gguf.remove(key)
    gguf.remove("tokenizer.chat_template")
    for key, value in (patch or {}).items():
        gguf.set(key, value)
    n_tokens = len(gguf.array("tokenizer.ggml.tokens"))
    gguf.set("general.architecture", "llama")
    for name, number in (
        ("block_count", 1),
        ("context_length", 4096),
        ("embedding_length", _WIDTH),
        ("feed_forward_length", _WIDTH),
        ("attention.head_count", 1),
        ("attention.head_count_kv", 1),
        ("rope.dimension_count", _WIDTH),
        ("vocab_size", n_tokens),
    ):
        gguf.set(f"llama.{name}", number, "u32")
    gguf.set("llama.attention.layer_norm_rms_epsilon", 1e-5, "f32")
    square = [f"attn_{name}" for name in ("q", "k", "v", "output")]
    square += [f"ffn_{name}" for name in ("gate", "up", "down")]
    tensors = [("token_embd.weight", (_WIDTH, n_tokens), _F16)]
    tensors += [(f"blk.0.{name}.weight", (_WIDTH, _WIDTH), _F16) for name in square]
    tensors += [(f"blk.0.{name}_norm.weight", (_WIDTH,), _F32) for name in ("attn", "ffn")]
    tensors += [("output_norm.weight", (_WIDTH,), _F32)]
    infos, offset = b"", 0
    for tensor, shape, kind in tensors:
        infos += struct.pack("<Q", len(tensor)) + tensor.encode()
        infos += struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        size = 2 if kind == _F16 else 4
        for n in shape:
            size *= n
        offset += -(-size // _ALIGNMENT) * _ALIGNMENT
    head = bytearray(gguf.dump())
    struct.pack_into("<Q", head, 8, len(tensors))
    head += infos
    with path.open("wb") as file:
        file.write(head + bytes(-len(head) % _ALIGNMENT))
        file.truncate(file.tell() + offset)
    return path


class Server:
    """A process that serves one template. With a projector, it accepts images and audio."""

    def __init__(
        self,
        model: Path,
        template: str,
        zone: str | None = None,
        context: int = 256,
        projector: Path | None = None,
    ) -> None:
        environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
        environment["LLAMA_MEDIA_MARKER"] = mediafiles.MARKER
        if zone is not None:
            environment["TZ"] = zone
        # The log goes to a file, since an unread pipe would fill up.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._child = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.chat.llamaserver"),
                *(str(model), str(context), str(projector or "")),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            cwd=Path(__file__).resolve().parents[2],
        )
        assert self._child.stdin is not None and self._child.stdout is not None
        watchdog = threading.Timer(START_SECONDS, self._child.kill)
        watchdog.start()
        try:
            self._child.stdin.write(json.dumps(template).encode() + b"\n")
            self._child.stdin.flush()
            address = self._child.stdout.readline().decode().strip()
        finally:
            watchdog.cancel()
        if not address:
            self._child.wait()
            self._log.seek(0)
            words = self._log.read().decode(errors="replace")[-2000:]
            self.close()
            raise ServerError(f"the server didn't start: {words}")
        self.url = address
        self._connection = http.client.HTTPConnection(
            address.removeprefix("http://"), timeout=REQUEST_SECONDS
        )

    def post(self, path: str, body: object) -> tuple[int, Any]:
        """Posts a body and returns the status and the answer. A str is sent unchanged, other values
        as JSON."""
        data = body if isinstance(body, str) else json.dumps(body)
        return self._exchange("POST", path, data.encode("utf-8", "surrogatepass"))

    def get(self, path: str) -> tuple[int, Any]:
        return self._exchange("GET", path, None)

    def prompt(self, body: object) -> tuple[str | None, str]:
        """Returns the rendered prompt, or None and the error's message."""
        status, answer = self.post("/apply-template", body)
        if status == 200:
            return answer["prompt"], ""
        return None, answer["error"]["message"]

    def ids(self, prompt: str, *, add_special: bool = True) -> list[int]:
        """Returns the ids to which the server encodes a prompt."""
        request = {"content": prompt, "add_special": add_special, "parse_special": True}
        status, answer = self.post("/tokenize", request)
        if status != 200:
            raise ServerError(f"/tokenize: {answer}")
        ids: list[int] = answer["tokens"]
        return ids

    def _exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, Any]:
        status, raw = self.exchange(method, path, data)
        return status, json.loads(raw)

    def exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        """Sends bytes and returns the status and the body of the answer."""
        try:
            # Send one request per connection, because the server closes idle connections.
            headers = {"Content-Type": "application/json", "Connection": "close"}
            self._connection.request(method, path, data, headers)
            answer = self._connection.getresponse()
            raw = answer.read()
        except (OSError, http.client.HTTPException) as e:
            self._connection.close()
            if self._child.poll() is not None or isinstance(e, http.client.RemoteDisconnected):
                raise ServerError(f"the server died of {path} ({self._child.wait(10)})") from None
            raise
        return answer.status, raw

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()

    def close(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()
        self.kill()
        for file in (self._child.stdin, self._child.stdout, self._log):
            if file is not None:
                file.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Servers:
    """Starts servers for one vocabulary."""

    def __init__(
        self, vocabulary: Path, patch: dict[str, object] | None = None, media: bool = False
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ggtok-chat-")
        folder = Path(self._folder.name)
        self._model = write_model(vocabulary, folder / "model.gguf", patch)
        self._projector = None
        if media:
            self._projector = mediafiles.write_projector(folder / "mmproj.gguf", _WIDTH)

    def start(self, template: str, zone: str | None = None) -> Server:
        return Server(self._model, template, zone, projector=self._projector)

    def close(self) -> None:
        self._folder.cleanup()

    def __enter__(self) -> Servers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# ---- the server's process ----


def _serve(model: str, context: int, projector: str) -> None:
    import xllamacpp

    # The library's output must not mix with the address, which the parent reads.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    template = json.loads(sys.stdin.readline())
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.mmproj.path = projector
    params.mmproj_use_gpu = False
    params.chat_template = template
    params.use_jinja = True
    params.port = 0
    params.n_ctx = context
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = 1
    params.warmup = False
    params.fit_params = False
    server = xllamacpp.Server(params)
    answers.write(f"{server.listening_address}\n")
    answers.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stdin.read()  # returns when the parent closes the pipe


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
