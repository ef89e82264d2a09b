"""Defines endpoints. Each API that the server implements is a table of endpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ggtok.server.refusals import ErrorBody, llama_server
from ggtok.server.registry import Ready, Registry, Served

if TYPE_CHECKING:
    from starlette.types import Scope


@dataclass(frozen=True, slots=True)
class Call:
    """A request as an endpoint sees it.

    Attributes:
        body: the body's JSON, or None for GET.
        query: the URL's parameters.
        wait: whether answering may take long; false on the event loop.
        ready: a model that was loaded or checked for this request.
        alone: whether no other answer that needs much memory is in progress.
        image_tokens: how many tokens each image, audio or video counts as, or None if they aren't
            counted.
    """

    registry: Registry
    body: Any
    query: Mapping[str, str]
    wait: bool
    image_tokens: int | None = None
    ready: Ready | None = None
    alone: bool = True

    def model(self) -> Served:
        """Returns the model that the request names. Raises NotReady if it must be loaded first."""
        named = self.body.get("model") if isinstance(self.body, dict) else None
        if named is None:
            named = self.query.get("model") or None
        return self.registry.get(named, self.ready)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Paths, and the function that answers requests for them.

    Attributes:
        answer: returns the answer's JSON, or a response; raises Refusal.
        light: whether answering takes time linear in the body's size, so that small bodies can be
            answered on the event loop.
        public: whether requests need no key.
        errors: creates the body for a refusal.
    """

    method: str
    paths: tuple[str, ...]
    answer: Callable[[Call], object]
    light: bool = False
    public: bool = False
    errors: ErrorBody = llama_server


def path_of(scope: Scope) -> str:
    """Returns a request's path, without the prefix of a program that mounts the application."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
