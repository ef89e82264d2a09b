"""``ggtok serve``: the endpoints of other servers that tokenize and count, over HTTP."""

from __future__ import annotations

import argparse
import os
import socket
from functools import partial

from ggtok.cli import messages
from ggtok.cli.arguments import add_words
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.errors import MissingExtraError

PORT = 8484
MAX_BODY = 64 << 20
BACKLOG = 2048  # connections that may wait, as uvicorn's
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
        help="requests need this key, or another one that is given; GGTOK_API_KEY also has one",
    )
    add("--models", metavar="PATH", help="serve all .gguf files of this folder")
    add("--upstream", metavar="URL", help="pass all other requests on to this server")
    add("--max-body", metavar="BYTES", type=int, default=MAX_BODY, help="the longest body (64 MiB)")
    add("--max-loaded", metavar="N", type=int, default=16, help="keep N models in memory (16)")
    add("--workers", metavar="N", type=int, default=1, help="processes that answer (1)")
    add_words(parser, texts=True)


def run(args: argparse.Namespace) -> None:
    models = _models(args)
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("serve needs packages: pip install 'ggtok[serve]'") from None
    from ggtok import server

    keys = [key for key in (*args.api_key, os.environ.get("GGTOK_API_KEY", "")) if key]
    make = partial(
        server.app,
        models,
        api_keys=keys,
        upstream=args.upstream,
        max_body=args.max_body,
        max_loaded=args.max_loaded,
    )
    make()  # reports errors before anything listens
    config = uvicorn.Config(
        make,
        factory=True,
        host=args.host,
        port=args.port,
        workers=args.workers,
        log_config=None,
        access_log=False,
        server_header=False,
    )
    listening = _bind(args.host, args.port)
    host, port = listening.getsockname()[:2]
    where = f"[{host}]" if ":" in host else host
    messages.say("note", f"serving {', '.join(models)} at http://{where}:{port}")
    if args.workers > 1:
        from uvicorn.supervisors import Multiprocess

        Multiprocess(config, [listening]).run()
    else:
        uvicorn.Server(config).run([listening])


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)  # from here on, connections wait until the server is ready
    except (OSError, OverflowError) as e:
        made.close()
        raise UsageError(f"can't listen at {host}, port {port}: {e}") from None
    made.set_inheritable(True)
    return made


def _models(args: argparse.Namespace) -> dict[str, str]:
    """The models by alias: ``ALIAS=MODEL``, models, and those of a folder."""
    models: dict[str, str] = {}
    for word in args.words:
        alias, equals, source = word.partition("=")
        if not equals or os.path.exists(word):
            alias = source = word
            if os.path.exists(word):
                alias = os.path.basename(word)
        _add(models, alias, source)
    if args.models is not None:
        found = sorted(name for name in _listed(args.models) if name.lower().endswith(".gguf"))
        if not found:
            raise UsageError(f"{args.models}: has no .gguf file")
        for name in found:
            _add(models, name, os.path.join(args.models, name))
    if not models:
        raise UsageError("no model: name one, or give a folder with --models")
    return models


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except NotADirectoryError:
        raise UsageError(f"--models takes a folder, and {folder} is a file") from None


def _add(models: dict[str, str], alias: str, source: str) -> None:
    if alias in models:
        raise UsageError(f"two models have the name {alias}: write ALIAS=MODEL")
    models[alias] = source


HELP = Help(
    usage="[ALIAS=]MODEL...",
    details="Answers llama-server's /tokenize, /detokenize, /apply-template and token counts, "
    "vLLM's, Ollama's and KoboldCpp's, and ggtok's own, for any number of models, without their "
    "weights. Needs the packages of the extra 'serve': pip install 'ggtok[serve]'.",
    words={
        "MODEL": "a GGUF file, or a model's name (see 'ggtok --help'); loaded on first use",
        "ALIAS": "the name by which requests choose the model; * stands for every name",
    },
    examples=[
        "ggtok serve model.gguf",
        "ggtok serve small=a.gguf large=b.gguf --port 9000",
        "ggtok serve --models ~/models --api-key secret --host 0.0.0.0",
    ],
)
