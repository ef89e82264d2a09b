"""``ggtok view``: shows vocabularies in a browser."""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser

import ggtok
from ggtok.base import files
from ggtok.cli import messages, standard_output
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.serve_command import LOOPBACK, bind, check_packages, models_by_alias
from ggtok.cli.shared_options import check_output


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("words", nargs="*", help=argparse.SUPPRESS)
    add("-o", "--output", metavar="FILE", help="write the page to a file, vocabularies included")
    add("--force", action="store_true", help="also overwrite a file that isn't an HTML page")
    add("--port", metavar="N", type=int, default=0, help="the port (a free one)")
    add("--no-browser", action="store_true", help="only print the address")


def run(args: argparse.Namespace) -> None:
    models = models_by_alias(args.words)
    if args.output is None:
        if args.json:
            raise UsageError("--json needs -o: a server has no result")
        _serve(args, models)
    else:
        _write(args, models)


def _serve(args: argparse.Namespace, models: dict[str, str]) -> None:
    check_packages("view (without -o)")
    from ggtok.server import application, serving
    from ggtok.server.refusals import Refusal
    from ggtok.server.registry import Registry

    registry = Registry(models)
    try:
        for name in models:
            registry.get(name, registry.ready(registry.model_named(name)))
    except Refusal as e:
        raise UsageError(str(e)) from None
    app = application.build(registry)
    listening, url = bind(LOOPBACK[0], args.port)
    messages.say("note", f"the page is at {url}/ until this command ends (Ctrl-C)")
    if not args.no_browser and _has_screen():
        webbrowser.open(f"{url}/")  # the connection waits until the server is ready
    serving.serve(lambda: app, listening, level="warning")


def _has_screen() -> bool:
    """Whether a browser would open in a window, not in this terminal."""
    variables = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in variables)


def _write(args: argparse.Namespace, models: dict[str, str]) -> None:
    check_output(args.output)
    files.check_target(args.output, _PAGE, force=args.force)  # before the work
    from ggtok import page
    from ggtok.vocabularies.read import metadata_of, vocabulary_only

    embedded, inputs = [], []
    for name, source in models.items():
        ggtok.load(source)  # raises an error if the page couldn't load the model
        path, metadata = metadata_of(source)
        # The folder is private, and of no use to those who read the page.
        known = source if path is None else os.path.basename(path)
        embedded.append(
            page.embed_model(name, vocabulary_only(metadata), standard_output.utf8(known))
        )
        inputs += [] if path is None else [path]
    html = page.html(embedded, writer=f"ggtok view {ggtok.__version__}")
    files.write(args.output, html, _PAGE, inputs=inputs, force=args.force)
    value = {"path": standard_output.utf8(args.output), "bytes": os.path.getsize(args.output)}
    standard_output.write_result(args, value, standard_output.lines_of_files(args.output))


_PAGE = files.FileFormat("an HTML page", lambda data: data[:15].lower() == b"<!doctype html>")

HELP = Help(
    usage="[[ALIAS=]MODEL...]",
    details="Shows which pieces a text has and why, what a vocabulary contains, how models differ, "
    "and what a chat template renders. The page tokenizes in the browser and sends no text "
    "anywhere; it can also open files that are dropped on it. With -o it is one file that works "
    "without a server or a network, such as a model card's demo. Without -o, needs the packages "
    "of the extra 'serve': pip install 'ggtok[serve]'.",
    words={
        "MODEL": "a GGUF file, or a model's name (see 'ggtok --help')",
        "ALIAS": "the name that the page shows",
    },
    examples=[
        "ggtok view model.gguf",
        "ggtok view old=a.gguf new=b.gguf",
        "ggtok view model.gguf -o page.html",
    ],
)
