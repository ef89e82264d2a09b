"""The server on a port of this machine, in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from ggtok import server
from ggtok.server.serving import configuration
from tests.support import waits


@contextmanager
def running(models: object, **options: object) -> Iterator[str]:
    """The URL of a server for models; `options` are those of :func:`ggtok.server.app`."""
    app = server.app(models, **options)
    made = uvicorn.Server(configuration(app, log_config=None))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=made.run, args=([listening],))
        thread.start()
        try:
            waits.until(lambda: made.started or not thread.is_alive())
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            made.should_exit = True
            thread.join()
