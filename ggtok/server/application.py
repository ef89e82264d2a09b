"""The ASGI application: from a request to the endpoint that answers it.

::

    request -> middleware (keys, ...) -> route -> body -> workers or the event loop -> reply
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ggtok.server import bodies, koboldcpp, llama_server, native, ollama, openapi, vllm
from ggtok.server.auth import Keys
from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.errors import NotReady, Refusal
from ggtok.server.errors import llama_server as llama_server_error
from ggtok.server.registry import MAX_LOADED, Registry
from ggtok.server.replies import Reply, reply
from ggtok.server.workers import SMALL, Workers

ENDPOINTS: tuple[Endpoint, ...] = (
    *llama_server.ENDPOINTS,
    *vllm.ENDPOINTS,
    *ollama.ENDPOINTS,
    *koboldcpp.ENDPOINTS,
    *native.ENDPOINTS,
    *openapi.ENDPOINTS,
)
MAX_BODY = 64 << 20


def build(
    models: object,
    *,
    api_keys: Sequence[str] = (),
    upstream: str | None = None,
    max_body: int = MAX_BODY,
    max_loaded: int = MAX_LOADED,
    threads: int = 0,
) -> Starlette:
    """:func:`ggtok.server.app`."""
    registry = models if isinstance(models, Registry) else Registry(models, max_loaded)
    workers = Workers(threads)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        workers.close()

    routes = [
        Route(path, _asgi(endpoint, registry, workers, max_body), methods=[endpoint.method])
        for endpoint in ENDPOINTS
        for path in endpoint.paths
    ]
    public = frozenset(path for e in ENDPOINTS if e.public for path in e.paths)
    # The first is the outermost.
    middleware = [Middleware(Keys, keys=list(api_keys), public=public)]
    made = Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=lifespan,
        # llama-server, too, has no status for a known path and another method.
        exception_handlers={404: _not_found, 405: _not_found, 500: _failed},
    )
    made.router.redirect_slashes = False
    made.state.registry = registry
    made.state.workers = workers
    return made


def _asgi(
    endpoint: Endpoint, registry: Registry, workers: Workers, max_body: int
) -> Callable[[Request], Awaitable[Response]]:
    """What Starlette calls for the endpoint's path."""

    async def answer(request: Request) -> Response:
        try:
            data = b"" if endpoint.method == "GET" else await _body(request, max_body)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Refusal as e:
            return Reply.of(e, endpoint.errors)
        work = partial(_answer, endpoint, registry, data, dict(request.query_params))
        if endpoint.light and len(data) <= SMALL:
            try:
                return work(False)
            except NotReady:
                pass
        try:
            return await workers.run(partial(work, True))
        except Refusal as e:
            return Reply.of(e, endpoint.errors)

    return answer


def _answer(
    endpoint: Endpoint, registry: Registry, data: bytes, query: dict[str, str], wait: bool
) -> Response:
    def made() -> object:
        body = None if endpoint.method == "GET" else bodies.parse(data)
        return endpoint.answer(Call(registry, body, query, wait))

    return reply(made, endpoint.errors)


async def _body(request: Request, most: int) -> bytes:
    """The body. Raises Refusal if it is longer than `most`."""
    declared = request.headers.get("content-length", "")
    size, parts = int(declared) if declared.isdigit() else 0, list[bytes]()
    if size <= most:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                break
            parts.append(part)
    if size > most:
        message = f"the body is longer than {most} bytes"
        raise Refusal(message, "invalid_request_error", status=413)
    return b"".join(parts)


async def _not_found(request: Request, error: Exception) -> Response:
    return Reply.of(Refusal("File Not Found", "not_found_error"), llama_server_error)


async def _failed(request: Request, error: Exception) -> Response:
    return Reply.of(Refusal("Internal Server Error", "server_error"), llama_server_error)
