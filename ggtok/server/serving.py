"""Runs the application under uvicorn, as ``ggtok serve`` does."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from ggtok.server import logs
from ggtok.server.chat_prompts import media_marker
from ggtok.server.connections import Connection

IDLE_SECONDS = 60  # until a connection without requests is closed
GRACE_SECONDS = 8  # for requests to finish after the signal; the process ends within ten
logger = logging.getLogger("ggtok.server")
# How long a thread may hold the GIL while the event loop waits for it: Python's 5 ms, several times
# for each request, would let long requests delay all others.
_SWITCH_SECONDS = 0.0005
_START_SECONDS = 60  # for a worker process to start
_STUCK_SECONDS = 60  # for a worker to answer its parent, which otherwise replaces it


def configuration(app: Callable[..., Any], **more: Any) -> uvicorn.Config:
    """Returns uvicorn's configuration for the application."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=_STUCK_SECONDS,
        **more,
    )


def serve(
    make: Callable[..., Any],
    listening: socket.socket,
    *,
    workers: int = 1,
    level: str = "info",
    each_request: bool = False,
) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        make: returns the application. It must be picklable if there are several processes.
        workers: the number of processes.
        level: the level of the log on standard error.
        each_request: whether requests are logged.
    """
    more = {"factory": True, "log_config": logs.configuration(level, each_request)}
    for number in signal.SIGINT, signal.SIGTERM:
        # After uvicorn stops, it raises the signal again, which should do nothing then.
        signal.signal(number, lambda *_: None)
    if workers == 1:
        logging.captureWarnings(True)
        sys.setswitchinterval(_SWITCH_SECONDS)
        _Server(configuration(make, **more)).run([listening])
        return
    os.environ["LLAMA_MEDIA_MARKER"] = media_marker()  # the same in all processes
    folder = _metrics_folder()
    try:
        make = partial(_make_in_worker, make, folder)
        _Processes(configuration(make, workers=workers, **more), [listening]).run()
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _metrics_folder() -> str | None:
    """Creates the folder in which processes share their metrics. Returns None if that's impossible,
    for example because the disk is full: then each process reports its own metrics."""
    try:
        return tempfile.mkdtemp(prefix="ggtok-serve-")
    except OSError as e:
        logger.warning("metrics are those of one process: %s", e.strerror)
        return None


def _make_in_worker(make: Callable[..., Any], metrics_folder: str | None) -> Any:
    """Creates the application in one of several worker processes, and makes the process end with
    its parent."""
    logging.captureWarnings(True)
    sys.setswitchinterval(_SWITCH_SECONDS)
    made = make(metrics_folder=metrics_folder)
    # Start only now, after the application has created its file in the folder, so that the last
    # process to delete the folder deletes all files.
    threading.Thread(target=_follow_parent, args=(metrics_folder,), daemon=True).start()
    return made


def _follow_parent(folder: str | None) -> None:
    """Deletes the folder and stops this process when its parent ends, even if the parent is killed.
    Otherwise, the process would keep the port open and continue to answer requests."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        signal.raise_signal(signal.SIGTERM)


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        notify("READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        notify("STOPPING=1")
        await super().shutdown(sockets)


class _Processes(Multiprocess):
    def init_processes(self) -> None:
        super().init_processes()
        if all(process.wait_until_ready(_START_SECONDS) for process in self.processes):
            notify("READY=1")

    def terminate_all(self) -> None:
        notify("STOPPING=1")
        super().terminate_all()


def notify(state: str) -> None:
    """Sends a state to systemd (sd_notify) if it gave this process a notification socket."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@") or not hasattr(socket, "AF_UNIX"):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
        notifier.connect("\0" + address[1:] if address.startswith("@") else address)
        notifier.sendall(state.encode())
