"""Finds the length of an upstream server's context.

llama-server reports it in /props, Ollama in /api/ps, vLLM and LM Studio in their lists of models.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from ggtok import Tokenizer
from ggtok.server import bodies
from ggtok.server.fields import anything, quote_value
from ggtok.server.model_facts import context_length
from ggtok.server.refusals import Refusal

KNOWN_SECONDS = 10.0  # how long a context length is cached
_REMEMBERED = 256  # the most models whose context lengths are cached

# A function that sends the upstream server a request (method, path, body), and returns the answer's
# JSON, or None.
Ask = Callable[[str, str, Any], Awaitable[Any]]


class Contexts:
    """Context lengths by model, cached only for a few seconds, because a server may be restarted
    with another length."""

    def __init__(self) -> None:
        self._known: dict[str | None, tuple[float, int]] = {}

    async def length(self, model: str | None, ask: Ask) -> int:
        """Returns the length, in tokens, of the context in which a model answers.

        Raises:
            Refusal: the length is unknown.
        """
        now = time.monotonic()
        until, length = self._known.get(model, (now, 0))
        if until <= now:
            length = await _ask(model, ask)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[model] = now + KNOWN_SECONDS, length
        return length


def num_ctx(body: Any, tok: Tokenizer) -> int:
    """Returns the context length that a request to Ollama asks for, which Ollama limits to the
    model's; 0 if it asks for none."""
    wanted = anything(anything(body, "options"), "num_ctx")
    if not _is_length(wanted):
        return 0
    return min(int(wanted), context_length(tok) or int(wanted))


async def _ask(model: str | None, ask: Ask) -> int:
    for path, found in _QUESTIONS:
        length = found(await ask("GET", path, None), model)
        if path == _OLLAMA and length == _NOT_LOADED:
            # A request without a prompt loads the model, as the client's request would anyway.
            await ask("POST", "/api/generate", {"model": model, "stream": False})
            length = found(await ask("GET", path, None), model)
        if _is_length(length):
            return int(length)
    raise Refusal(
        f"the upstream server doesn't report the context length of {quote_value(model)}; start "
        "ggtok with --limit N",
        "server_error",
    )


def _llama_server(answer: Any, model: str | None) -> Any:
    return anything(anything(answer, "default_generation_settings"), "n_ctx")


def _ollama(answer: Any, model: str | None) -> Any:
    rows = anything(answer, "models")
    if not isinstance(rows, list):
        return None
    names = {model, f"{model}:latest"}
    for row in rows:
        if anything(row, "name") in names or anything(row, "model") in names:
            return anything(row, "context_length")
    return _NOT_LOADED


def _field_of_model(field: str) -> Callable[[Any, str | None], Any]:
    def found(answer: Any, model: str | None) -> Any:
        rows = anything(answer, "data")
        rows = rows if isinstance(rows, list) else []
        named = [row for row in rows if model in (None, anything(row, "id"))]
        return anything(named[0], field) if named else None

    return found


_NOT_LOADED = -1
_OLLAMA = "/api/ps"
_QUESTIONS = (
    ("/props", _llama_server),
    (_OLLAMA, _ollama),
    ("/v1/models", _field_of_model("max_model_len")),  # vLLM
    ("/api/v0/models", _field_of_model("loaded_context_length")),  # LM Studio
)


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def parse_answer(data: bytes) -> Any:
    """Parses an answer's JSON; returns None if it isn't JSON."""
    try:
        return bodies.parse_body(data)
    except Refusal:
        return None
