"""Records requests in the log, one line each, and in the metrics. Texts are never recorded.

Log records go to the logger ``ggtok.server``, those about requests with the level DEBUG. A record's
attribute `fields` is a dict with its data. :class:`Lines` formats records as JSON, one per line.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ggtok.server.endpoints import path_of
from ggtok.server.metrics import Metrics

logger = logging.getLogger("ggtok.server")
requests = logging.getLogger("ggtok.server.requests")

GONE = 499  # the status recorded if the client disconnects before there is an answer
_LONGEST_PATH = 200


class Observed:
    """ASGI middleware that records requests.

    Args:
        rows: each path's row in the metrics.
        other: the row for all other paths.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, rows: dict[str, int], other: int) -> None:
        self.app = app
        self.metrics = metrics
        self.rows = rows
        self.other = other

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, received, sent = GONE, 0, 0

        async def counted_receive() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def counted_send(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        self.metrics.begun()
        begin = time.perf_counter()
        try:
            await self.app(scope, counted_receive, counted_send)
        finally:
            seconds = time.perf_counter() - begin
            row = self.rows.get(path_of(scope), self.other)
            self.metrics.ended(row, status, seconds, received, sent)
            if requests.isEnabledFor(logging.DEBUG):
                fields = {
                    "method": scope["method"],
                    "path": scope["path"][:_LONGEST_PATH],
                    "status": status,
                    "seconds": round(seconds, 6),
                    "received": received,
                    "sent": sent,
                    "client": (scope.get("client") or ("",))[0],
                }
                requests.debug("request", extra={"fields": fields})


class JsonLineFormatter(logging.Formatter):
    """Formats log records as JSON objects, one per line.

    For an exception, the line has the type and the traceback, but not the message, which may quote
    a text from a request.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = time.gmtime(record.created)
        line: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', at)}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().strip(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line)


def configuration(level: str, each_request: bool) -> dict[str, Any]:
    """Returns a configuration for :func:`logging.config.dictConfig`: JSON on standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "ggtok.server.logs.JsonLineFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "loggers": {
            "ggtok.server": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
            "ggtok.server.requests": {"level": "DEBUG" if each_request else "WARNING"},
            "uvicorn": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
        },
        # Other packages' messages, and Python's warnings.
        "root": {"handlers": ["stderr"], "level": "WARNING" if level == "info" else "ERROR"},
    }
