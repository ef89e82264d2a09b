"""Passes requests on to another server, streamed both ways.

::

    request -> (count the prompt, refuse it if it is too long) -> upstream -> streamed answer

If the client disconnects, the request to the upstream server is cancelled. If the upstream server
can't be reached, or breaks off its answer, the client gets an error in the format of the API that
the client uses.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import quote

import httpx2
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from ggtok.errors import GGTokError, InvalidValueError
from ggtok.server import bodies
from ggtok.server.completions import COMPLETIONS, Completion, Prompts, errors_of, longest_possible
from ggtok.server.context import Contexts, num_ctx, parse_answer
from ggtok.server.endpoints import path_of
from ggtok.server.fields import text_field
from ggtok.server.generating import (
    NOT_GENERATING,
    check_generates_nothing,
    is_plain,
    uncounted_refusal,
)
from ggtok.server.headers import KEYS, Headers, forward_headers, has_body
from ggtok.server.kept import EarlierPrompts
from ggtok.server.limits import LARGE, Bodies
from ggtok.server.refusals import Refusal, UnknownModel
from ggtok.server.registry import Ready, Registry
from ggtok.server.replies import Reply
from ggtok.server.workers import SMALL, Workers, unless_disconnected

COUNT_HEADER = "x-prompt-tokens"
KEPT_HEADER = "x-prompt-tokens-kept"
PASS, REFUSE = "pass", "refuse"  # requests that aren't counted, if there is a limit
ASK = 0  # as a limit: use the context length that the upstream server reports
_MOST = 256  # requests that may be passed on at the same time
_TIMES = httpx2.Timeout(10.0, read=600.0, write=60.0)
HEAD_SECONDS = 600.0  # from the end of a request to the end of the answer's head
ASK_SECONDS = 60.0  # for the upstream server's answer to a question about its context length
LIST_SECONDS = 10.0  # for its list of models
_LONGEST_ANSWER = 4 << 20  # bytes of such an answer

# Headers of requests that aren't passed on. The upstream server needn't know which page sent the
# request, because Origins has already decided whether the page may.
_OWN_REQUEST = {b"host", b"expect", b"origin", b"referer"}
_OWN_ANSWER = {b"date"}
_WITHOUT_BODY = (204, 304)
_SLASHES = re.compile("//+")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_OUR_HEADERS = {COUNT_HEADER.encode(), KEPT_HEADER.encode()}

logger = logging.getLogger("ggtok.server.upstream")


class Upstream:
    """An ASGI application that passes requests on.

    Args:
        url: the upstream server's URL.
        key: the key for the upstream server, sent instead of the client's.
        own_keys: the keys for this server, which are never passed on.
        count: whether answers to completions report the number of tokens in the prompt, and how
            many of these an earlier prompt begins with.
        limit: the context length in tokens, which a prompt must not fill, or ASK for the length
            that the upstream server reports.
        unknown: if there is a limit, what happens to requests that may generate and whose prompt
            can't be counted: PASS or REFUSE.
        image_tokens: how many tokens an image has in a prompt, or None if they aren't counted.
    """

    def __init__(
        self,
        url: str,
        registry: Registry,
        workers: Workers,
        memory: Bodies,
        *,
        key: str | None = None,
        own_keys: Sequence[str] = (),
        count: bool = False,
        limit: int | None = None,
        unknown: str = REFUSE,
        image_tokens: int | None = None,
    ) -> None:
        self.url = _base(url)
        self._registry = registry
        self._workers = workers
        self._bodies = memory
        self._key = key
        self._own_keys = [own.encode("ascii") for own in own_keys]
        self._count = count
        self._limit = limit
        self._refuses_unknown = limit is not None and unknown == REFUSE
        self._image_tokens = image_tokens
        self._contexts = Contexts()
        self.earlier = EarlierPrompts() if count else None
        self._client: httpx2.AsyncClient | None = None
        self.active = 0
        self.failed = 0

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _normalize_path(scope)
        if self.active >= _MOST:
            refusal = Refusal("too many requests are passed on; try again", "unavailable_error")
            await Reply.of(refusal, errors_of(path))(scope, receive, send)
            return
        self.active += 1
        try:
            completion = self._completion(scope, path)
            if completion is None:
                await self._pass_on(scope, _PassedBody(receive), send, [])
            else:
                await self._counted(completion, scope, receive, send)
        except ClientDisconnect:
            pass
        except Refusal as e:
            await Reply.of(e, errors_of(path))(scope, receive, send)
        finally:
            self.active -= 1

    def _completion(self, scope: Scope, path: str) -> Completion | None:
        """Returns the request's row in COMPLETIONS, or None if no prompt must be counted. Raises
        Refusal for a path that the upstream server could interpret as another path, and, if there
        is a limit, for a path whose requests may generate."""
        if not {".", ".."}.isdisjoint(path.split("/")):
            raise Refusal("the request's path must not have a part that is . or ..")
        if scope["method"] in NOT_GENERATING or not (self._count or self._limit is not None):
            return None
        exact = b"%" not in _target(scope).partition(b"?")[0]
        completion = COMPLETIONS.get(path) if exact else None
        if self._refuses_unknown and completion is None:
            check_generates_nothing(path_of(scope), exact)
        return completion

    async def models(self, scope: Scope, receive: Receive) -> Any:
        """Returns the upstream server's answer to a request for the list of models, as JSON; an
        empty object if it has no such list. Raises ClientDisconnect."""
        if self.active >= _MOST:
            return {}
        ask = self._asker(self._request_headers(scope["headers"]), LIST_SECONDS)
        self.active += 1
        try:
            asking = ask("GET", _target(scope).decode("latin-1"), None)
            return await unless_disconnected(asking, receive) or {}
        except Refusal:  # it is logged; our own models can still be used for counting
            return {}
        finally:
            self.active -= 1

    # ---- the count ----

    async def _counted(
        self, completion: Completion, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Counts a completion request's prompts, and passes the request on if none is too long."""
        with self._bodies.reader() as body:
            data = await body.read(receive, scope["headers"])
            if self._refuses_unknown and not is_plain(scope["headers"]):
                raise uncounted_refusal("its body is compressed, or isn't JSON in UTF-8")
            counting = self._prompts(completion, scope, data)
            more = self._counts(scope["headers"], *await unless_disconnected(counting, receive))
            await self._pass_on(scope, _PassedBody(receive, data), send, more)

    def _counts(self, headers: Headers, prompts: Prompts | None, model: str | None) -> Headers:
        """Returns the headers that report a request's prompts, and remembers a single prompt."""
        if prompts is None or self.earlier is None:
            return []
        counts = [(COUNT_HEADER.encode(), str(prompts.total).encode())]
        if prompts.ids is not None:
            kept = self.earlier.add(model, [v for k, v in headers if k in KEYS], prompts.ids)
            counts.append((KEPT_HEADER.encode(), str(kept).encode()))
        return counts

    async def _prompts(
        self, completion: Completion, scope: Scope, data: bytes
    ) -> tuple[Prompts | None, str | None]:
        """Counts the prompts' tokens; returns None if that isn't possible, and the model's name if
        the request has one. Raises Refusal if a prompt is too long, or if there is a limit but the
        prompts can't be counted."""

        def count(ready: Ready | None) -> tuple[Prompts | None, str | None, int]:
            try:
                body = bodies.parse_body(data)
                # llama-server answers a request whose model isn't a name, too.
                tok = self._registry.get(text_field(body, "model") or None, ready).tok
                found = completion.measure(tok, body, self._image_tokens, self._count)
                if self._limit is not None:
                    everything = bodies.parse_all(data)
                    longest = longest_possible(completion, tok, body, everything, found)
                    found = found._replace(longest=longest)
            except UnknownModel:
                if self._limit is not None:
                    raise
                return None, None, 0
            except (Refusal, GGTokError, RecursionError, ValueError) as e:
                if self._refuses_unknown:
                    raise uncounted_refusal(str(e)) from None
                # The upstream server may be able to answer it, or refuse it in its own words.
                logger.warning("a prompt can't be counted: %s", type(e).__name__)
                return None, None, 0
            wanted = num_ctx(body, tok) if completion.num_ctx else 0
            return found, text_field(body, "model") or None, wanted

        async with self._bodies.large if len(data) > LARGE else nullcontext():
            prompts, model, most = await self._workers.run(count, short=len(data) <= SMALL)
        if prompts is not None and self._limit is not None:
            if self._limit != ASK:
                most = self._limit
            elif not most:
                headers = self._request_headers(scope["headers"])
                most = await self._contexts.length(model, self._asker(headers))
            # A prompt that fills the context leaves no room for an answer.
            if prompts.longest >= most:
                raise completion.too_long(prompts.longest, most, completion.field)
        return prompts, model

    def _asker(
        self, headers: Headers, seconds: float | None = None
    ) -> Callable[[str, str, Any], Any]:
        credentials = [(name, value) for name, value in headers if name in KEYS]

        async def ask(method: str, path: str, body: Any) -> Any:
            content = None if body is None else bodies.dump(body)
            sent = [*credentials, (b"content-type", b"application/json")]
            sent.append((b"accept-encoding", b"identity"))
            request = self._request(method, path.encode("latin-1"), sent, content, _TIMES)
            try:
                return await asyncio.wait_for(self._answer(request), seconds or ASK_SECONDS)
            except asyncio.TimeoutError as e:
                raise self._unreachable(httpx2.ReadTimeout("")) from e

        return ask

    async def _answer(self, request: httpx2.Request) -> Any:
        """Sends a request, and returns the answer's JSON, or None if the answer isn't JSON, is too
        long, or has a status other than 200."""
        response = await self._send(request)
        try:
            data = b""
            # Don't decompress: the request doesn't accept it, and the result could be huge.
            async for part in response.aiter_raw():
                data += part
                if len(data) > _LONGEST_ANSWER:
                    return None
        except httpx2.TransportError as e:
            raise self._unreachable(e) from e
        finally:
            await response.aclose()
        return parse_answer(data) if response.status_code == 200 else None

    # ---- passing on ----

    async def _pass_on(self, scope: Scope, body: _PassedBody, send: Send, more: Headers) -> None:
        """Streams the request up and the answer down, until one side ends."""
        exchange = asyncio.ensure_future(self._exchange(scope, body, send, more))
        gone = asyncio.ensure_future(body.disconnected())
        try:
            await asyncio.wait({exchange, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not exchange.done():
                exchange.cancel()
            gone.cancel()
            await asyncio.gather(exchange, gone, return_exceptions=True)
        if not exchange.cancelled():
            exchange.result()

    async def _exchange(self, scope: Scope, body: _PassedBody, send: Send, more: Headers) -> None:
        headers = self._request_headers(scope["headers"])
        content: bytes | AsyncIterator[bytes] | None = body.data
        if has_body(scope["headers"]) and content is None:
            content = body.parts()
        else:
            body.whole.set()
        request = self._request(scope["method"], _target(scope), headers, content, _TIMES)
        response = await self._head(request, body.whole)
        try:
            headers = [*self._answer_headers(response), *more]
            start = {"status": response.status_code, "headers": headers}
            await send({"type": "http.response.start", **start})
            end = b"\n"
            try:
                async for part in response.aiter_raw():
                    await send(_body_message(part, True))
                    end = part[-1:] or end
                last = b""
            except httpx2.TransportError as e:
                last = self._broken(e, _normalize_path(scope), response.headers, end)
                if not last:
                    return  # the answer stays incomplete, so that the connection is closed
            await send(_body_message(last, False))
        finally:
            await response.aclose()

    async def _head(self, request: httpx2.Request, whole: asyncio.Event) -> httpx2.Response:
        """Sends a request, and returns the response when its head has arrived. Raises Refusal if
        that takes too long.

        Args:
            whole: an event that is set when the client has sent the whole request.
        """
        sending = asyncio.ensure_future(self._send(request))
        waiting = asyncio.ensure_future(whole.wait())
        try:
            await asyncio.wait({sending, waiting}, return_when=asyncio.FIRST_COMPLETED)
            # httpx limits the time of each read, but a head without end takes many reads.
            await asyncio.wait({sending}, timeout=HEAD_SECONDS)
            if not sending.done():
                raise self._unreachable(httpx2.ReadTimeout(""))
            return sending.result()
        except BaseException:
            sending.cancel()
            [result] = await asyncio.gather(sending, return_exceptions=True)
            if isinstance(result, httpx2.Response):  # it arrived just before the cancellation
                await result.aclose()
            raise
        finally:
            waiting.cancel()

    def _request(
        self,
        method: str,
        target: bytes,
        headers: Headers,
        content: bytes | AsyncIterator[bytes] | None,
        times: httpx2.Timeout,
    ) -> httpx2.Request:
        url = self.url.copy_with(raw_path=target)
        extensions = {"timeout": times.as_dict()}
        return httpx2.Request(method, url, headers=headers, content=content, extensions=extensions)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        if self._client is None:
            # Don't reuse connections: the upstream server might close one just as it is reused.
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
            no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
            self._client = httpx2.AsyncClient(trust_env=False, limits=limits, cookies=no_cookies)
        try:
            return await self._client.send(request, stream=True)
        except httpx2.TransportError as e:
            raise self._unreachable(e) from e

    def _request_headers(self, headers: Headers) -> Headers:
        kept = [
            (name, value)
            for name, value in forward_headers(headers, _OWN_REQUEST)
            if not (self._key is not None and name in KEYS) and not self._is_ours(value)
        ]
        if self._key is not None:
            kept.append((b"authorization", b"Bearer " + self._key.encode("ascii")))
        return kept

    def _answer_headers(self, response: httpx2.Response) -> Headers:
        """Returns the headers to pass on to the client. Raises Refusal for a status outside
        200 to 599."""
        if not 200 <= response.status_code < 600:
            raise self._failure(f"answered with status {response.status_code}", 502)
        own = _OWN_ANSWER | (_OUR_HEADERS if self._count else set())
        # Content-Length is wrong if the body is chunked, or if there is none.
        if "transfer-encoding" in response.headers or response.status_code in _WITHOUT_BODY:
            own = own | {b"content-length"}
        kept = forward_headers(response.headers.raw, own)
        return [(name, _CONTROL.sub(b" ", value)) for name, value in kept]

    def _is_ours(self, value: bytes) -> bool:
        key = value[len(_BEARER) :] if value[: len(_BEARER)].lower() == _BEARER else value
        return any(hmac.compare_digest(key.strip(), own) for own in self._own_keys)

    # ---- errors ----

    def _unreachable(self, error: Exception) -> Refusal:
        address = f"{self.url.scheme}://{self.url.netloc.decode()}"
        logger.warning("upstream %s: %s %s", address, type(error).__name__, error)
        if isinstance(error, httpx2.TimeoutException) and not isinstance(
            error, httpx2.ConnectTimeout
        ):
            return self._failure("took too long", 504)
        return self._failure("doesn't answer", 502)

    def _failure(self, problem: str, status: int) -> Refusal:
        self.failed += 1
        return Refusal(f"the upstream server {problem}", "server_error", status)

    def _broken(self, error: Exception, path: str, headers: httpx2.Headers, end: bytes) -> bytes:
        """Returns the bytes that end an answer which the upstream server didn't finish: an error if
        the answer's format allows one there, else none. `end` is the last byte that was passed on.
        """
        refusal = self._unreachable(error)
        refusal.message = "the upstream server broke off the answer"
        line = bodies.dump(errors_of(path)(refusal))
        if "content-length" in headers or "content-encoding" in headers:
            return b""
        media_type = headers.get("content-type", "")
        if media_type.startswith("text/event-stream"):
            event = b"event: error\n" if path.startswith("/v1/messages") else b""
            return b"\n\n" + event + b"data: " + line + b"\n\n"
        if not media_type.startswith("application/x-ndjson"):
            return b""
        # Send no empty line, because Ollama's client doesn't expect any.
        return (b"" if end == b"\n" else b"\n") + line + b"\n"


class _PassedBody:
    """The body of a request that is passed on, either in memory or still arriving."""

    def __init__(self, receive: Receive, data: bytes | None = None) -> None:
        self.data = data
        self.whole = asyncio.Event()
        self._receive = receive

    async def parts(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            if message.get("body"):
                yield message["body"]
        self.whole.set()

    async def disconnected(self) -> None:
        """Waits until the client disconnects or has received the answer."""
        await self.whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


_BEARER = b"bearer "


def _normalize_path(scope: Scope) -> str:
    """Returns a request's path without repeated slashes, a slash at the end and capital letters,
    which some servers ignore."""
    return _SLASHES.sub("/", path_of(scope)).rstrip("/").lower()


def _base(url: str) -> httpx2.URL:
    """Parses the upstream server's URL. It may end in ``/v1``, which some clients need."""
    with suppress(httpx2.InvalidURL):
        base = httpx2.URL(url)
        path = base.path.rstrip("/").removesuffix("/v1")
        if base.scheme in ("http", "https") and base.host and not path and not base.query:
            return base
    raise InvalidValueError(
        f"upstream must be the address of a server, such as http://127.0.0.1:8080, not {url!r}"
    )


def _target(scope: Scope) -> bytes:
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    target = raw.removeprefix(scope.get("root_path", "").encode())
    if not target.startswith(b"/"):
        raise Refusal("the request's path must begin with /")
    query: bytes = scope.get("query_string", b"")
    return target + b"?" + query if query else target


def _body_message(body: bytes, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
