"""``ggtok chat``: chat messages to text or token ids."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from datetime import datetime
from typing import Any

import ggtok
from ggtok.chat import api, encode
from ggtok.chat.options import Options
from ggtok.chat.prompt import Prompt
from ggtok.cli import reading, writing
from ggtok.cli.arguments import (
    MODEL_FIRST,
    Command,
    Parser,
    add_json,
    add_model,
    expanded,
    load,
    take_model,
)
from ggtok.cli.messages import warn
from ggtok.cli.status import UsageError, reason

# Options that a body doesn't say.
_NOT_FIELDS = ("like", "template", "clock", "variables")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--ids", action="store_true", help="print the ids: [1, 2, 3]")
    parser.add_argument(
        "--template",
        metavar="NAME",
        help="one of the model's templates by name, chatml, or else a file that holds a template",
    )
    parser.add_argument("--tools", metavar="FILE", help="a JSON list of tools (-: standard input)")
    parser.add_argument(
        "--like",
        choices=("llama.cpp", "transformers"),
        default="llama.cpp",
        help="whose prompt: llama-server's (default), or transformers' apply_chat_template's",
    )
    parser.add_argument(
        "--generation-prompt",
        action=argparse.BooleanOptionalAction,
        help="end with the beginning of the assistant's answer, as llama-server does by default, "
        "or don't, as transformers",
    )
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="a message of the user's")
    parser.add_argument("--system", metavar="TEXT", help="with --prompt: the system message")
    parser.add_argument(
        "--no-thinking", action="store_true", help="tell the template that no thinking is wanted"
    )
    add_json(parser)
    add_model(parser)


def run(args: argparse.Namespace) -> None:
    take_model(args)
    if len(args.words) > 1:
        raise UsageError(f"unexpected argument: {args.words[1]!r}")
    file = args.words[0] if args.words else "-"
    if args.prompt is not None and args.words:
        raise UsageError(f"the messages are given twice: in {file} and with --prompt")
    if args.system is not None and args.prompt is None:
        raise UsageError("--system has no effect without --prompt")
    if file == args.tools == "-" and args.prompt is None:
        raise UsageError("messages and tools can't both come from standard input")
    tok = load(args)
    template = _template(tok, args.template)
    body = _body(_messages(file) if args.prompt is None else _written(args), args)
    # One moment for all: templates may show it.
    now = datetime.now()

    def render(body: dict[str, Any]) -> Prompt:
        if args.like == "transformers":
            return api.render(tok._loaded, body["messages"], _options(body, template, now))
        return api.render_body(tok._loaded, body, template=template, clock=lambda: now)

    prompt = render(body)
    if args.tools is not None and body["tools"] and _ignores_tools(render, body, prompt.text):
        warn("the chat template ignores tools: the prompt is the same without --tools")
    if not (args.json or args.ids):
        writing.write_text(prompt.text.encode())
        return
    to_encode = api.to_encode(tok._loaded, prompt, args.like)
    ids = encode.ids(tok._loaded, to_encode, trusted=False, user_defined="parse")
    if args.json:
        writing.write_json({"text": prompt.text, "count": len(ids), "ids": ids})
    else:
        writing.write(b"%a\n" % ids)


def ids_of(tok: ggtok.Tokenizer, file: str, tools: str | None, template: str | None) -> list[int]:
    """The ids of the prompt that the messages or the request in a file make."""
    body = _with_tools(reading.json_file(file), tools)
    prompt = api.render_body(tok._loaded, body, template=_template(tok, template))
    to_encode = api.to_encode(tok._loaded, prompt, "llama.cpp")
    return encode.ids(tok._loaded, to_encode, trusted=False, user_defined="parse")


def _messages(file: str) -> Any:
    try:
        return reading.json_file(file)
    except FileNotFoundError as e:
        if os.path.dirname(file):
            raise
        raise UsageError(f"{reason(e)}; for a message's text, use --prompt TEXT") from None


def _written(args: argparse.Namespace) -> list[dict[str, str]]:
    """The messages of --system and --prompt."""
    given = {"system": args.system, "user": args.prompt}
    return [
        {"role": role, "content": os.fsencode(text).decode("utf-8", "surrogateescape")}
        for role, text in given.items()
        if text is not None
    ]


def _body(given: Any, args: argparse.Namespace) -> dict[str, Any]:
    """A request's body, of which a list is the messages; options come before what it says."""
    body = _with_tools(given, args.tools)
    if args.generation_prompt is not None:
        body["add_generation_prompt"] = args.generation_prompt
    if args.no_thinking:
        variables = body.get("chat_template_kwargs") or {}
        body["chat_template_kwargs"] = {**variables, "enable_thinking": False}
    if args.like == "transformers" and "messages" not in body:
        raise ggtok.InvalidValueError("messages are missing")
    return body


def _with_tools(given: Any, tools: str | None) -> dict[str, Any]:
    body = dict(given) if isinstance(given, dict) else {"messages": given}
    if tools is not None:
        body["tools"] = reading.json_file(tools)
    return body


def _template(tok: ggtok.Tokenizer, name: str | None) -> str | None:
    """The name of a template of the model or of llama.cpp's, or the text of one in a file; None:
    its default."""
    templates = tok.chat_templates
    if name is None or name in templates or name == "chatml":
        return name
    try:
        return reading.file(expanded(name)).decode("utf-8", "replace")
    except FileNotFoundError as e:
        known = ", ".join(map(repr, sorted(templates))) or "none"
        raise UsageError(
            f"{name or repr(name)}: {e.strerror}, and none of the model's templates has this name "
            f"(its templates: {known})"
        ) from None


def _ignores_tools(
    render: Callable[[dict[str, Any]], Prompt], body: dict[str, Any], text: str
) -> bool:
    """Whether the prompt is the same without tools."""
    try:
        without = {name: value for name, value in body.items() if name != "tools"}
        return text == render(without).text
    except ggtok.GGTokError:  # without tools the template fails
        return False


COMMAND = Command(
    usage="[MODEL] [FILE]",
    details="The prompt is what llama-server makes of the messages with the model's chat "
    "template. Control tokens inside a message are treated as plain text.",
    words={
        "MODEL": MODEL_FIRST,
        "FILE": "a JSON list of messages, or the whole body of a request as llama-server takes "
        "it; if omitted or -, standard input is read",
    },
    examples=[
        "ggtok chat model.gguf messages.json",
        'ggtok chat model.gguf --prompt "Hello" --system "Be brief." --no-thinking',
        "ggtok chat model.gguf messages.json --tools tools.json --ids",
        "ggtok chat model.gguf request.json --json",
        """echo '[{"role": "user", "content": "Hi"}]' | ggtok chat model.gguf --json""",
    ],
    add_arguments=add_arguments,
    run=run,
)


def _options(body: dict[str, Any], template: str | None, now: datetime) -> Options:
    """The arguments of transformers' method that a body says; others are the template's."""
    known = Options.__slots__
    fields = {name: body[name] for name in known if name in body and name not in _NOT_FIELDS}
    documents = {"documents": body["documents"]} if "documents" in body else {}
    given = {**documents, **(fields.pop("chat_template_kwargs", None) or {})}
    return Options(
        **fields,
        like="transformers",
        template=template,
        clock=lambda: now,
        chat_template_kwargs=given,
    )
