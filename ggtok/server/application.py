"""The ASGI application, which passes each request to the endpoint that answers it.

::

    request -> logs, metrics -> origins -> keys -> route -> body -> workers or event loop -> reply
                                                -> upstream
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import cast

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ggtok.chat.media import check_tokens
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.server import (
    bodies,
    koboldcpp,
    llama_cpp_python,
    llama_server,
    manual,
    native,
    ollama,
    openapi,
    page,
    tabby,
    textgen,
    vllm,
)
from ggtok.server.auth import Keys, check_key
from ggtok.server.completions import COMPLETIONS, errors_of
from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.limits import LARGE, Bodies
from ggtok.server.logs import Observed
from ggtok.server.metrics import CONTENT_TYPE, Gauge, Metrics
from ggtok.server.origins import Origins, check_origins
from ggtok.server.refusals import NotAlone, NotReady, Refusal
from ggtok.server.refusals import llama_server as llama_server_error
from ggtok.server.registry import ANY, Ready, Registry
from ggtok.server.replies import Reply, reply
from ggtok.server.upstream import COUNT_HEADER, KEPT_HEADER, PASS, REFUSE, Upstream
from ggtok.server.workers import SMALL, Workers, unless_disconnected

ENDPOINTS: tuple[Endpoint, ...] = (
    *llama_server.ENDPOINTS,
    *vllm.ENDPOINTS,
    *ollama.ENDPOINTS,
    *koboldcpp.ENDPOINTS,
    *llama_cpp_python.ENDPOINTS,
    *textgen.ENDPOINTS,
    *tabby.ENDPOINTS,
    *native.ENDPOINTS,
    *page.ENDPOINTS,
    *openapi.ENDPOINTS,
    *manual.ENDPOINTS,
)
PUBLIC = frozenset(path for endpoint in ENDPOINTS if endpoint.public for path in endpoint.paths)
METRICS = "/metrics"
# Labels for the metrics: the first path of each endpoint.
ROWS = (*(endpoint.paths[0] for endpoint in ENDPOINTS), METRICS)
OTHER = "other"
MAX_BODY = 16 << 20


def build(
    registry: Registry,
    *,
    api_keys: Sequence[str] = (),
    upstream: str | None = None,
    upstream_key: str | None = None,
    count_header: bool = False,
    limit: int | None = None,
    limit_unknown: str = REFUSE,
    allowed_hosts: Sequence[str] = (),
    cors_origins: Sequence[str] = (),
    max_body: int = MAX_BODY,
    threads: int = 0,
    image_tokens: int | None = None,
    metrics_folder: str | None = None,
) -> Starlette:
    """Implements :func:`ggtok.server.app`."""
    check_tokens(image_tokens)
    if max_body < 1:
        raise InvalidValueError(f"max_body must be at least 1 byte, not {max_body}")
    check_origins(cors_origins)
    if isinstance(api_keys, str):  # each character would be a key
        raise InvalidTypeError("api_keys must be a list of strings, not a string")
    for key in api_keys:
        check_key(key, "an API key")
    workers = Workers(registry, threads)
    memory = Bodies(max_body)
    proxy = None
    if upstream is not None:
        if upstream_key is not None:
            check_key(upstream_key, "the upstream server's key")
        proxy = Upstream(
            upstream,
            registry,
            workers,
            memory,
            key=upstream_key,
            own_keys=api_keys,
            count=count_header,
            limit=limit,
            unknown=limit_unknown,
            image_tokens=image_tokens,
        )
        if limit_unknown not in (PASS, REFUSE):
            raise InvalidValueError(f"limit_unknown must be {PASS} or {REFUSE}")
    elif upstream_key is not None or count_header or limit is not None:
        raise InvalidValueError("upstream_key, count_header and limit need an upstream server")
    metrics = Metrics([*ROWS, OTHER], _gauges(registry, workers, memory, proxy), metrics_folder)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        workers.close()
        if proxy is not None:
            await proxy.close()

    theirs: set[str] = set() if proxy is None else _paths_of_upstream(registry)
    exposed = [COUNT_HEADER, KEPT_HEADER]
    application = Starlette(
        routes=_routes(registry, workers, memory, metrics, image_tokens, proxy, theirs),
        # The first middleware is the outermost.
        middleware=[
            Middleware(Observed, metrics=metrics, rows=_row_of_path(), other=len(ROWS)),
            Middleware(Origins, hosts=allowed_hosts, origins=cors_origins, exposed=exposed),
            # If keys are required, no request without one reaches the upstream server.
            Middleware(Keys, keys=list(api_keys), public=PUBLIC - theirs, options=proxy is None),
        ],
        lifespan=lifespan,
        # llama-server, too, answers 404 for a known path with an unknown method.
        exception_handlers={404: _not_found, 405: _not_found, 500: _internal_error},
    )
    application.router.redirect_slashes = False
    if proxy is not None:
        application.router.default = proxy
        application.add_exception_handler(405, _passing_on(proxy))
    application.state.registry = registry
    application.state.workers = workers
    application.state.bodies = memory
    return application


def _paths_of_upstream(registry: Registry) -> set[str]:
    """Returns the endpoints that are the upstream server's: its own page, and its list of models if
    the alias ``*``, which stands for their names, is our only model."""
    return {page.HOME} | ({*llama_server.MODELS.paths} if registry.names == [ANY] else set())


def _routes(
    registry: Registry,
    workers: Workers,
    memory: Bodies,
    metrics: Metrics,
    image_tokens: int | None,
    upstream: Upstream | None,
    theirs: AbstractSet[str],
) -> list[Route]:
    async def report(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    def asgi(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        if upstream is not None and endpoint is llama_server.MODELS:
            return _listing(upstream, asgi)
        answer = partial(_answer, endpoint, registry, image_tokens)
        return _asgi(endpoint, answer, workers, memory)

    routes = [
        Route(path, asgi(endpoint), methods=[endpoint.method])
        for endpoint in ENDPOINTS
        for path in endpoint.paths
        if path not in theirs
    ]
    return [*routes, Route(METRICS, report, methods=["GET"])]


def _listing(
    upstream: Upstream, asgi: Callable[[Endpoint], Callable[[Request], Awaitable[Response]]]
) -> Callable[[Request], Awaitable[Response]]:
    """Returns the function that answers with the upstream server's models and ours."""

    async def list_models(request: Request) -> Response:
        try:
            theirs = await upstream.models(request.scope, request.receive)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody will read the response
        answer = partial(llama_server.models, upstream=theirs)
        return await asgi(replace(llama_server.MODELS, answer=answer))(request)

    return list_models


def _row_of_path() -> dict[str, int]:
    """Returns each path's row in the metrics. An endpoint's paths share a row."""
    rows = {path: at for at, e in enumerate(ENDPOINTS) for path in e.paths}
    return {**rows, METRICS: len(ENDPOINTS)}


def _gauges(
    registry: Registry, workers: Workers, memory: Bodies, upstream: Upstream | None
) -> list[Gauge]:
    gauges: list[Gauge] = [
        ("models_loaded", "Models in memory.", registry.n_loaded),
        ("model_loads_total", "Models loaded or reloaded.", lambda: registry.loads),
        ("model_failures_total", "Models that couldn't be loaded.", lambda: registry.failures),
        ("model_unloads_total", "Models dropped for others.", lambda: registry.unloads),
        ("requests_in_threads", "Requests that threads answer or will.", lambda: workers.pending),
        ("bodies_bytes", "Bytes of requests' bodies in memory.", lambda: memory.held),
    ]
    if upstream is not None:
        gauges += [
            ("upstream_requests", "Requests that are passed on.", lambda: upstream.active),
            ("upstream_errors_total", "Errors of the upstream server.", lambda: upstream.failed),
        ]
        if (earlier := upstream.earlier) is not None:
            kept = "Tokens of these that an earlier prompt begins with."
            gauges += [
                ("prompt_tokens_total", "Tokens of the prompts.", lambda: earlier.n_tokens),
                ("prompt_tokens_kept_total", kept, lambda: earlier.n_kept),
                ("earlier_prompts_bytes", "Bytes of earlier prompts.", lambda: earlier.size),
            ]
    return gauges


def _passing_on(upstream: Upstream) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Returns the error handler for a known path with another method, which passes the request on.
    The handler can return `upstream` as the response, because both are ASGI applications."""

    async def pass_on(request: Request, error: Exception) -> Response:
        return cast(Response, upstream)

    return pass_on


def _asgi(
    endpoint: Endpoint, answering: Callable[..., Response], workers: Workers, memory: Bodies
) -> Callable[[Request], Awaitable[Response]]:
    """Returns the function that Starlette calls for requests to the endpoint."""

    async def answer(request: Request) -> Response:
        with memory.reader() as body:
            try:
                data = b""
                if endpoint.method != "GET":
                    data = await body.read(request.receive, request.scope["headers"])
                work = partial(answering, data, dict(request.query_params))
                if endpoint.light and len(data) <= SMALL:
                    with suppress(NotReady, NotAlone):
                        return work(wait=False, alone=False)
                answering_long = in_threads(work, len(data))
                return await unless_disconnected(answering_long, request.receive)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody will read the response
            except Refusal as e:
                return Reply.of(e, endpoint.errors)

    async def in_threads(work: Callable[..., Response], size: int) -> Response:
        if size <= LARGE:
            with suppress(NotAlone):
                return await workers.run(
                    lambda ready: work(wait=True, alone=False, ready=ready), short=size <= SMALL
                )
        async with memory.large:
            return await workers.run(lambda ready: work(wait=True, alone=True, ready=ready))

    return answer


def _answer(
    endpoint: Endpoint,
    registry: Registry,
    image_tokens: int | None,
    data: bytes,
    query: dict[str, str],
    wait: bool,
    alone: bool,
    ready: Ready | None = None,
) -> Response:
    def compute() -> object:
        body = None if endpoint.method == "GET" else bodies.parse_body(data)
        return endpoint.answer(Call(registry, body, query, wait, image_tokens, ready, alone))

    return reply(compute, endpoint.errors)


async def _not_found(request: Request, error: Exception) -> Response:
    path = request.url.path
    if path in COMPLETIONS:
        message = "ggtok generates nothing; start it with --upstream URL to pass requests on"
        return Reply.of(Refusal(message, "not_found_error"), errors_of(path))
    return Reply.of(Refusal("File Not Found", "not_found_error"), llama_server_error)


async def _internal_error(request: Request, error: Exception) -> Response:
    return Reply.of(Refusal("Internal Server Error", "server_error"), llama_server_error)
