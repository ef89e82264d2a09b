"""``ggtok serve``: the tokenizing and counting endpoints of llama-server, vLLM, Ollama and others,
without a model in memory.

:func:`app` returns an ASGI application. A request takes this path::

    connections -> application -> logs, origins, auth -> endpoints: llama_server, ... -> registry
                                                      -> upstream       -> workers, if it takes long

- `application` reads the request and chooses the endpoint.
- `endpoints` defines what an endpoint is; each API has a module with a table of its endpoints.
- `page` serves the page that shows vocabularies, and `manual` the page that lists the endpoints.
- `registry` holds the models: their names, loading, reloading; `folders` finds those of a folder.
- `workers` runs slow work on threads, and loads models on others; `decoded` measures texts first.
- `refusals` defines refusals, `replies` creates responses, and `bodies` reads and writes JSON.
- `logs` (with `metrics`), `origins` and `auth` are middleware.
- `limits` bounds the memory for bodies; `connections` adds the limits that uvicorn lacks.
- `upstream` passes requests on; `completions` and `context` count and limit their prompts, and
  `generating` says which requests must be counted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ggtok.errors import InvalidValueError, MissingExtraError

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["app"]


def app(
    models: object = (),
    *,
    folder: str | os.PathLike[str] | None = None,
    api_keys: Sequence[str] = (),
    upstream: str | None = None,
    upstream_key: str | None = None,
    count_header: bool = False,
    limit: int | None = None,
    limit_unknown: str = "refuse",
    allowed_hosts: Sequence[str] = (),
    cors_origins: Sequence[str] = (),
    max_body: int = 16 << 20,
    max_loaded: int = 16,
    threads: int = 0,
    image_tokens: int | None = None,
    metrics_folder: str | None = None,
) -> Starlette:
    """Returns an ASGI application that answers requests about models.

    Args:
        models: names or paths of models (as :func:`ggtok.load` takes them), or a mapping of
            aliases to names, paths or tokenizers. A request can name only one of these models, and
            may omit the name if there is only one model. The model with the alias ``*`` is used for
            every other name.
        folder: a folder whose .gguf files are models, too; at the start, it must have one. New
            files become models without a restart, and models whose files are deleted disappear.
        api_keys: keys of printable ASCII characters; each request must have one of them. If there
            are none, requests need no key.
        upstream: the URL of a server to which requests go that this server has no endpoint for.
        upstream_key: a key for that server, sent instead of the client's.
        count_header: whether answers to completions get the headers ``X-Prompt-Tokens`` and
            ``X-Prompt-Tokens-Kept``: how many tokens the prompt has, and how many of these an
            earlier prompt begins with.
        limit: the context length in tokens, or 0 for the length that the upstream server reports.
            Prompts that leave no room for an answer in the context are refused. All texts in the
            body count, since the upstream server may put any of them into the prompt.
        limit_unknown: if there is a limit, ``refuse`` or ``pass`` requests that may generate and
            whose prompts can't be counted.
        allowed_hosts: names of this server, besides localhost and IP addresses, that the ``Host``
            header may have; ``*`` allows all names.
        cors_origins: web pages that may use the server, such as ``https://chat.example``; ``*``
            allows all pages.
        max_body: the maximum size of a request's body, in bytes. All bodies in memory together
            may have four times this size.
        max_loaded: the maximum number of models to keep in memory.
        threads: the number of threads for long requests; 0 means one for each processor, up to 8.
        image_tokens: how many tokens each image, audio or video counts as. By default, they aren't
            counted, and answers report their number in ``uncounted_parts``.
        metrics_folder: the folder in which the processes of one server share their metrics.

    Raises:
        MissingExtraError: the extra ``serve`` isn't installed.
        FileError: the folder can't be listed.
        InvalidValueError, InvalidTypeError: the models, or another argument, aren't valid.
    """
    try:
        import httpx2  # noqa: F401
        import orjson  # noqa: F401
        import starlette  # noqa: F401
    except ImportError as e:
        raise MissingExtraError(
            f"the server needs the package {e.name}: pip install 'ggtok[serve]'"
        ) from None
    from ggtok.server import application
    from ggtok.server.registry import Registry

    registry = Registry(models, max_loaded, None if folder is None else os.fsdecode(folder))
    if not registry.models:
        raise InvalidValueError("models is empty: name at least one model")
    return application.build(
        registry,
        api_keys=api_keys,
        upstream=upstream,
        upstream_key=upstream_key,
        count_header=count_header,
        limit=limit,
        limit_unknown=limit_unknown,
        allowed_hosts=allowed_hosts,
        cors_origins=cors_origins,
        max_body=max_body,
        threads=threads,
        image_tokens=image_tokens,
        metrics_folder=metrics_folder,
    )
