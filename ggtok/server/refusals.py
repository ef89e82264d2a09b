"""Refusals: the errors that requests get instead of answers. Each API formats them differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# The HTTP status for each type of error, as in llama-server.
STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "server_error": 500,
    "not_supported_error": 501,
    "unavailable_error": 503,
}


class Refusal(Exception):
    """Raised to refuse a request.

    Attributes:
        message: what is wrong, and what to do.
        type: a key of STATUS.
        status: the HTTP status.
        body: a function that creates the error's body; if None, the endpoint's function is used.
    """

    def __init__(self, message: str, type: str = "invalid_request_error", status: int = 0) -> None:
        super().__init__(message)
        self.body: ErrorBody | None = None
        self.message = message
        self.type = type
        self.status = status or STATUS[type]


class UnknownModel(Refusal):
    """Raised if a request names a model that isn't served, or doesn't name one of several."""

    def __init__(self, message: str, named: bool) -> None:
        super().__init__(message, "not_found_error" if named else "invalid_request_error")


class NotReady(Exception):
    """Raised if the answer needs work that must be done elsewhere.

    Attributes:
        model: the model to load, or whose file must be checked, or the folder to scan. If None,
            the event loop can't answer, but a thread can.
    """

    def __init__(self, model: Any = None) -> None:
        super().__init__()
        self.model = model


class NotAlone(Exception):
    """Raised if the answer may need so much memory or time that no other such answer may be in
    progress."""


ErrorBody = Callable[[Refusal], dict[str, Any]]


def llama_server(refusal: Refusal) -> dict[str, Any]:
    """Returns llama-server's error body, which is OpenAI's, but with a number as the code."""
    return {
        "error": {"code": refusal.status, "message": refusal.message, "type": refusal.type},
    }
