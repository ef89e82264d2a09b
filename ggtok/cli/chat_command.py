"""``ggtok chat``: renders chat messages to text or token ids."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import ggtok
from ggtok.chat import api, media
from ggtok.cli import input_texts, standard_output
from ggtok.cli.messages import UsageError, reason, warn
from ggtok.cli.parser import Help, Parser, expand_home
from ggtok.cli.shared_options import MODEL_FIRST, add_media, add_model, load_model, take_model
from ggtok.corpora.conversations import as_request, is_conversation
from ggtok.native import chat_calls


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("--ids", action="store_true", help="print the ids: [1, 2, 3]")
    add(
        "--template",
        metavar="NAME",
        help="the name of one of the model's templates, or chatml, or a template file",
    )
    add("--tools", metavar="FILE", help="a JSON list of tools (-: standard input)")
    add(
        "--like",
        choices=("llama.cpp", "transformers"),
        default="llama.cpp",
        help="render as llama-server (default) or as transformers' apply_chat_template",
    )
    add(
        "--generation-prompt",
        action=argparse.BooleanOptionalAction,
        help="whether the prompt ends with the beginning of the assistant's answer (default: as "
        "llama-server, yes; as transformers, no)",
    )
    add("-p", "--prompt", metavar="TEXT", help="a user message")
    add("--system", metavar="TEXT", help="with --prompt: the system message")
    add("--no-thinking", action="store_true", help="set enable_thinking to false")
    add_media(parser)
    add_model(parser)


def run(args: argparse.Namespace) -> None:
    take_model(args)
    if len(args.words) > 1:
        raise UsageError(f"unexpected argument: {args.words[1]!r}")
    file = args.words[0] if args.words else "-"
    if args.prompt is not None and args.words:
        raise UsageError(f"messages are given both in {file} and with --prompt: give one of them")
    if args.system is not None and args.prompt is None:
        raise UsageError("--system has no effect without --prompt")
    if args.image_tokens is not None and not args.json:
        raise UsageError("--image-tokens has no effect without --json")
    if file == args.tools == "-" and args.prompt is None:
        raise UsageError("messages and tools can't both come from standard input")
    tok = load_model(args)
    template, name = template_of(tok, args)
    body = _body(_messages(file) if args.prompt is None else _prompt_messages(args), args)
    now = datetime.now()  # all renderings must contain the same time

    def render(body: dict[str, Any], want: int = chat_calls.TEXT) -> Any:
        return api.run_body(
            tok._loaded,
            body,
            want,
            template=template,
            clock=lambda: now,
            media_marker=marker_of(args),
            like=args.like,
        )

    with naming(name):
        text = render(body)
    if args.tools is not None and body["tools"] and _ignores_tools(render, body, text):
        warn("the chat template ignores tools: the prompt is the same without --tools")
    if not (args.json or args.ids):
        standard_output.write_text(text.encode())
        return
    ids = render(body, chat_calls.IDS)
    parts = media.parts_of(body["messages"], args.like)
    n, uncounted = len(ids), len(parts)
    if args.image_tokens is not None:
        n, uncounted = n + media.tokens(parts, args.image_tokens), 0
    if uncounted:
        api.warn_of_media(uncounted)
    if args.json:
        more = {"uncounted_parts": uncounted} if uncounted else {}
        standard_output.write_json({"text": text, "count": n, "ids": ids, **more})
    else:
        standard_output.write(b"%a\n" % ids)


def template_of(tok: ggtok.Tokenizer, args: argparse.Namespace) -> tuple[str | None, str]:
    """Returns the library's argument for --template (a name, a file's text, or None for the
    default), and the template's name for messages."""
    name, templates = args.template, tok.chat_templates
    if name is None:
        return None, f"{args.model}: chat template"
    if name in templates or name == "chatml":
        return name, f"{args.model}: chat template {name!r}"
    path = expand_home(name)
    try:
        return input_texts.file(path).decode("utf-8", "replace"), path
    except FileNotFoundError as e:
        known = ", ".join(map(repr, sorted(templates))) or "none"
        raise UsageError(
            f"{name or repr(name)}: {e.strerror}, and the model has no chat template of this name "
            f"(its templates: {known})"
        ) from None


def marker_of(args: argparse.Namespace) -> str:
    given = args.media_marker
    return media.MARKER if given is None else media.check_marker(given)


def _messages(file: str) -> Any:
    try:
        data = input_texts.file(file)
    except FileNotFoundError as e:
        if os.path.dirname(file):
            raise
        raise UsageError(f"{reason(e)}; to pass a message's text, use --prompt TEXT") from None
    line, _, rest = data.partition(b"\n")
    if rest.strip() and is_conversation(line):
        raise UsageError(
            f"{input_texts.name_of(file)}: JSON lines, and this command takes one conversation: "
            "pipe a line into it ('ggtok count --chat' and 'ggtok encode --chat' take all)"
        )
    return as_request(input_texts.parsed_json(data, file))


def _prompt_messages(args: argparse.Namespace) -> list[dict[str, str]]:
    """Returns the messages from --system and --prompt."""
    given = {"system": args.system, "user": args.prompt}
    return [
        {"role": role, "content": standard_output.utf8(text)}
        for role, text in given.items()
        if text is not None
    ]


def _body(given: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Returns a request's body: `given`, which is a body or a list of messages, changed by the
    options."""
    body = with_tools(given, args.tools)
    if args.generation_prompt is not None:
        body["add_generation_prompt"] = args.generation_prompt
    if args.no_thinking:
        variables = body.get("chat_template_kwargs") or {}
        body["chat_template_kwargs"] = {**variables, "enable_thinking": False}
    return body


def with_tools(given: Any, tools: str | None) -> dict[str, Any]:
    body = dict(given) if isinstance(given, dict) else {"messages": given}
    if tools is not None:
        body["tools"] = input_texts.json_file(tools)
    return body


@contextmanager
def naming(template: str) -> Iterator[None]:
    """A context that adds the template's name to errors about it."""
    try:
        yield
    except ggtok.TemplateError as e:
        raise UsageError(f"{template}: {reason(e)}") from None


def _ignores_tools(
    render: Callable[[dict[str, Any]], str], body: dict[str, Any], text: str
) -> bool:
    """Whether the prompt is the same without tools."""
    try:
        without = {name: value for name, value in body.items() if name != "tools"}
        return text == render(without)
    except ggtok.GGTokError:  # the template fails without tools
        return False


HELP = Help(
    usage="[MODEL] [FILE]",
    details="The prompt is what llama-server makes of the messages with the model's chat "
    "template. Control tokens in messages are treated as plain text.",
    words={
        "MODEL": MODEL_FIRST,
        "FILE": "a JSON list of messages, or the body of a request to llama-server; if omitted "
        "or -, standard input is read",
    },
    examples=[
        "ggtok chat model.gguf messages.json",
        'ggtok chat model.gguf --prompt "Hello" --system "Be brief." --no-thinking',
        "ggtok chat model.gguf messages.json --tools tools.json --ids",
        "ggtok chat model.gguf request.json --json",
        """echo '[{"role": "user", "content": "Hi"}]' | ggtok chat model.gguf --json""",
    ],
)
