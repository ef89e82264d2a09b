"""Tables of endpoints, of which each face of the server consists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ggtok.server.errors import ErrorBody, llama_server
from ggtok.server.registry import Registry, Served


@dataclass(frozen=True, slots=True)
class Call:
    """A request as an endpoint sees it.

    Attributes:
        body: the JSON of the body; None if the method is GET.
        query: the parameters of the URL.
        wait: whether loading a model may block; false on the event loop.
        image_tokens: how many tokens an image, audio or video counts; None: they aren't counted.
    """

    registry: Registry
    body: Any
    query: Mapping[str, str]
    wait: bool
    image_tokens: int | None = None

    def model(self) -> Served:
        """Returns the model that the request names."""
        named = self.body.get("model") if isinstance(self.body, dict) else None
        if named is None:
            named = self.query.get("model") or None
        return self.registry.get(named, wait=self.wait)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path and what answers it.

    Attributes:
        answer: returns the JSON of the answer, or a response; raises Refusal.
        light: the time is linear in the size of the body, so small bodies are answered on the
            event loop.
        public: needs no key.
        errors: writes the body of a refusal.
    """

    method: str
    paths: tuple[str, ...]
    answer: Callable[[Call], object]
    light: bool = False
    public: bool = False
    errors: ErrorBody = llama_server
