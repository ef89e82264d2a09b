"""``ggtok serve``: offers other servers' endpoints for tokenizing and counting, over HTTP."""

from __future__ import annotations

import argparse
import os
import socket
from contextlib import suppress
from functools import partial

from ggtok.cli import messages
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser, token_count
from ggtok.cli.shared_options import add_words
from ggtok.errors import MissingExtraError

PORT = 8484
MAX_BODY = 16 << 20
BACKLOG = 2048  # connections that may wait to be accepted; uvicorn's default
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("--host", metavar="ADDRESS", default=LOOPBACK[0], help="listen here (127.0.0.1)")
    add("--port", metavar="N", type=int, default=PORT, help=f"the port ({PORT}; 0: a free one)")
    add(
        "--api-key",
        metavar="KEY",
        action="append",
        default=[],
        help="a key, or several with commas between them; each request needs one of the keys, "
        "which may also be in GGTOK_API_KEY",
    )
    add(
        "--no-auth",
        action="store_true",
        help="listen at an address that other machines reach, without a key",
    )
    add(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name by which requests may call the server, besides localhost and IP addresses",
    )
    add(
        "--cors-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="web pages of this origin may use the server",
    )
    add(
        "--image-tokens",
        metavar="N",
        type=token_count,
        help="count N tokens for each image, audio and video",
    )
    add("--models", metavar="PATH", help="serve all .gguf files of this folder, also new ones")
    add(
        "--max-body",
        metavar="BYTES",
        type=token_count,
        default=MAX_BODY,
        help="the longest body (16 MiB)",
    )
    add("--max-loaded", metavar="N", type=int, default=16, help="keep N models in memory (16)")
    add("--workers", metavar="N", type=int, default=1, help="processes that answer (1)")
    add(
        "--log-level",
        choices=["error", "warning", "info"],
        default="info",
        help="what standard error gets, in lines of JSON (info)",
    )
    add("--log-requests", action="store_true", help="also a line for each request")
    upstream = parser.add_argument_group("another server")
    add = upstream.add_argument
    add("--upstream", metavar="URL", help="pass all other requests on to this server")
    add(
        "--upstream-key",
        metavar="KEY",
        help="send it this key; GGTOK_UPSTREAM_KEY also has one",
    )
    add(
        "--count-header",
        action="store_true",
        help="add headers to completions: X-Prompt-Tokens, the prompt's number of tokens, and "
        "X-Prompt-Tokens-Kept, how many of these an earlier prompt begins with",
    )
    add(
        "--limit",
        metavar="N",
        nargs="?",
        type=_limit,
        const="0",
        help="refuse prompts that leave no room for an answer in a context of N tokens (without "
        "N: the context length that the other server reports)",
    )
    add(
        "--limit-unknown",
        choices=["refuse", "pass"],
        default="refuse",
        help="with --limit: what happens to requests whose prompts can't be counted (refuse)",
    )
    add_words(parser, texts=True)


def run(args: argparse.Namespace) -> None:
    models = models_by_alias(args.words)
    if args.models is None and not models:
        raise UsageError("no model: name one, or give a folder with --models")
    if args.models is not None and os.path.isfile(args.models):
        raise UsageError(f"--models takes a folder, and {args.models} is a file")
    keys = _keys("--api-key", args.api_key)
    if os.environ.get("GGTOK_API_KEY"):
        keys += _keys("GGTOK_API_KEY", [os.environ["GGTOK_API_KEY"]])
    if not args.host:
        raise UsageError("--host is empty: give an address, such as 127.0.0.1")
    if args.host not in LOOPBACK and not keys and not args.no_auth:
        raise UsageError(
            f"other machines can reach {args.host}: give a key with --api-key, or --no-auth"
        )
    if args.workers < 1:
        raise UsageError("--workers must be at least 1")
    if not args.upstream and (args.upstream_key or args.count_header or args.limit is not None):
        raise UsageError("--upstream-key, --count-header and --limit need --upstream")
    from ggtok import server

    make = partial(
        server.app,
        models,
        folder=args.models,
        api_keys=keys,
        upstream=args.upstream,
        upstream_key=args.upstream_key or os.environ.get("GGTOK_UPSTREAM_KEY") or None,
        count_header=args.count_header,
        limit=args.limit,
        limit_unknown=args.limit_unknown,
        allowed_hosts=[*args.allowed_host, args.host],
        cors_origins=args.cors_origin,
        max_body=args.max_body,
        max_loaded=args.max_loaded,
        image_tokens=args.image_tokens,
    )
    names = make().state.registry.names  # raises errors before the socket is opened
    check_packages("serve")
    listening, url = bind(args.host, args.port)
    messages.say("note", f"serving {', '.join(names)} at {url}")
    from ggtok.server import serving

    serving.serve(
        make,
        listening,
        workers=args.workers,
        level=args.log_level,
        each_request=args.log_requests,
    )


def _keys(where: str, lists: list[str]) -> list[str]:
    """Returns the keys in lists with commas between the keys, which llama-server accepts, too.
    `where` is the lists' option or variable, for errors."""
    keys = [key for each in lists for key in each.split(",")]
    if "" in keys:
        raise UsageError(f"{where} has an empty key, which would protect nothing")
    return keys


def check_packages(command: str) -> None:
    """Raises MissingExtraError if a package that the server needs isn't installed."""
    try:
        import uvicorn  # noqa: F401

        from ggtok.server import serving  # noqa: F401
    except ImportError as e:
        raise MissingExtraError(f"{command} needs {e.name}: pip install 'ggtok[serve]'") from None


def _limit(text: str) -> int:
    with suppress(ValueError):
        if (n := token_count(text)) >= 0:
            return n
    raise argparse.ArgumentTypeError(
        f"{text!r} isn't a number of tokens (put the models before --limit without a number)"
    )


def bind(host: str, port: int) -> tuple[socket.socket, str]:
    """Returns a listening socket and its URL."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)  # from here on, connections wait until the server is ready
    except (OSError, OverflowError) as e:
        made.close()
        reason = getattr(e, "strerror", None) or e
        raise UsageError(f"can't listen at {host}, port {port}: {reason}") from None
    made.set_inheritable(True)
    host, port = made.getsockname()[:2]
    return made, f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def models_by_alias(words: list[str]) -> dict[str, str]:
    """Returns models by alias, from words: ``ALIAS=MODEL`` or a model."""
    models: dict[str, str] = {}
    for word in words:
        alias, equals, source = word.partition("=")
        if not equals or os.path.exists(word):
            alias = source = word
            if os.path.exists(word):
                alias = os.path.basename(word)
        if not alias or not source:
            raise UsageError(f"{word!r}: write ALIAS=MODEL")
        if os.path.isdir(source):
            raise UsageError(
                f"{source} is a folder; 'ggtok serve --models {source}' serves its files"
            )
        _check_exists(source)
        if alias in models:
            raise UsageError(f"two models have the name {alias}: write ALIAS=MODEL")
        models[alias] = source
    return models


def _check_exists(source: str) -> None:
    """Raises an error if a path doesn't exist, since otherwise each request for it would fail."""
    is_path = "://" not in source and (
        source.lower().endswith(".gguf") or not ("/" in source or ":" in source)
    )
    if is_path and not os.path.exists(source):
        from ggtok import sources

        if sources.find_model(source) is None:
            raise UsageError(f"{source}: no such file")


HELP = Help(
    usage="[ALIAS=]MODEL...",
    details="Answers llama-server's /tokenize, /detokenize, /apply-template and token counts, "
    "those of vLLM, Ollama, KoboldCpp, llama-cpp-python, text-generation-webui and tabbyAPI, and "
    "ggtok's own, for any number of models, without their "
    "weights. Needs the packages of the extra 'serve': pip install 'ggtok[serve]'.",
    words={
        "MODEL": "a GGUF file, or a model's name (see 'ggtok --help'); loaded on first use",
        "ALIAS": "the name by which requests choose the model; * stands for every name",
    },
    examples=[
        "ggtok serve model.gguf",
        "ggtok serve small=a.gguf large=b.gguf --port 9000",
        "ggtok serve --models ~/models --api-key secret --host 0.0.0.0",
        "ggtok serve model.gguf --upstream http://127.0.0.1:8080 --limit",
    ],
)
