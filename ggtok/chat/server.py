"""Renders a request to a prompt, in the order of llama-server."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from ggtok.chat import caps as _caps
from ggtok.chat import handlers, reasoning
from ggtok.chat import messages as _messages
from ggtok.chat.caps import Caps
from ggtok.chat.engine import Template
from ggtok.chat.handlers import Answer, Handler
from ggtok.chat.messages import Json, Message
from ggtok.chat.prompt import Prompt, own, role
from ggtok.chat.reasoning import Tags
from ggtok.chat.request import Request
from ggtok.errors import TemplateError

# The server renders each request with and without a generation prompt, and fails if either
# rendering fails. Templates that only test add_generation_prompt, or set its default, can't fail
# because of it.
_HARMLESS = re.compile(
    r"if not add_generation_prompt is defined|set add_generation_prompt = [^%]*"
    r"|(?:if|and) add_generation_prompt(?=\s*-?%|\s+and)"
)


def _asks_otherwise(source: str) -> bool:
    return "add_generation_prompt" in _HARMLESS.sub("", source)


Compile = Callable[[str], Template]

# Texts that the server removes from templates: checks that refuse messages which the templates
# could render. If the first text is in the source, the second is replaced.
_PATCHES = (
    (
        "<|channel|>",
        '{%- if "<|channel|>analysis<|message|>" in message.content or '
        '"<|channel|>final<|message|>" in message.content %}',
    ),
    (
        "[TOOL_CALLS]",
        "{%- if (message['content'] is none or message['content'] == '' or "
        "message['content']|length == 0) and (message['tool_calls'] is not defined or "
        "message['tool_calls'] is none or message['tool_calls']|length == 0) %}",
    ),
)
_NEVER = "{%- if false %}"
# The template for files without one.
CHATML = """\
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '
' + message.content + '<|im_end|>
' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant
' -}}
{%- endif -%}"""
# The months of C's locale.
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
# Contents are trimmed for this family, whose models repeat themselves after stray white space.
_TRIMMED = "You have access to the following functions in JSONSchema format"


def patched(source: str) -> str:
    for sign, check in _PATCHES:
        if sign in source:
            source = source.replace(check, _NEVER)
    return source


def as_lexed(source: str) -> str:
    """The source with the lexer's line breaks, by which families of templates are recognized."""
    ends = source.endswith("\n")
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    return source[:-1] if ends else source


@dataclass(frozen=True, slots=True)
class Tokens:
    """The texts of BOS and EOS, and whether the vocabulary adds them."""

    bos: str
    eos: str
    add_bos: bool
    add_eos: bool


class Chat:
    """A template and its capabilities. Immutable; any number of threads may render."""

    __slots__ = ("caps", "handler", "render_both", "source", "tags", "template", "thinks", "trims")

    def __init__(self, source: str, compile: Compile, tokens: Tokens) -> None:
        self.template = compile(source)
        self.source = as_lexed(source)
        self.caps: Caps = _caps.find(self.template)
        self.handler: Handler | None = handlers.find(self.source)
        self.tags = Tags()
        if self.handler is None:
            self.tags = reasoning.find(self._probe(tokens), self.source, self.caps.tool_calls)
            self.thinks = self.tags.found
        else:
            self.thinks = self.handler.thinks(self.source)
        # Whether the request must be rendered both with and without a generation prompt.
        self.render_both = _asks_otherwise(self.source)
        self.trims = _TRIMMED in self.source
        self._check_served(tokens)

    @property
    def variables(self) -> frozenset[str]:
        """The names of variables that affect the prompt."""
        names = self.template.variables
        if not names.isdisjoint(_caps.PRESERVING):
            names |= {"preserve_reasoning"}
        if not names.isdisjoint(_caps.EFFORTS):
            names |= {"reasoning_effort"}
        return names | self.handler.reads if self.handler else names

    def render(self, request: Request, tokens: Tokens, now: datetime, thinks: bool) -> Prompt:
        """The prompt, as /apply-template returns it.

        `thinks`: the value of enable_thinking if the request has none.
        """
        given = request.messages
        if self.trims:
            given = [message.trimmed() for message in given]
        messages = _messages.write(given, self.caps)
        if request.continues:
            messages = messages[:-1]
        messages = _messages.as_supported(messages, self.source, self.caps)
        thinking = thinks if request.thinking is None else request.thinking
        variables = self.variables_for(request, tokens, now, thinks)
        handler = self.handler
        if "messages" not in request.variables:
            if handler is not None and handler.messages is not None:
                messages = handler.messages(messages, request.variables)
            variables["messages"] = messages
        generation = request.add_generation_prompt and not request.continues
        try:
            prompt = self._rendered(variables, generation, tokens, now)
            if self.render_both:
                self._rendered(variables, not generation, tokens, now)
        except TemplateError as e:
            if given:
                raise
            raise TemplateError(
                f"there are no messages, but this chat template needs some: {e.args[0]}",
                e.line,
            ) from None
        if handler is not None:
            prompt = handler.finished(prompt, generation)
        # Trimming and joining don't apply to the continued message.
        if request.continues and request.messages and request.messages[-1]:
            prompt = prompt.followed_by(
                self._continued(request, variables, prompt, thinking, tokens, now)
            )
        return prompt

    def variables_for(self, request: Request, tokens: Tokens, now: datetime, thinks: bool) -> Json:
        """The template's variables except messages and add_generation_prompt."""
        # The order decides which value a name gets that occurs twice.
        variables: Json = {
            "bos_token": own(tokens.bos),
            "eos_token": own(tokens.eos),
            "enable_thinking": thinks if request.thinking is None else request.thinking,
        }
        if request.tools:
            variables["tools"] = request.tools
        variables |= dates(now)
        variables.update(request.variables)
        handler = self.handler
        if handler is not None:
            handler.check(request.variables)
            if handler.schema_variable and isinstance(request.schema, dict):
                variables[handler.schema_variable] = request.schema
        return {**_spread(variables), **variables}

    def _check_served(self, tokens: Tokens) -> None:
        """Raises TemplateError if llama-server wouldn't start with this template.

        At its start, the server parses a call, and renders one question with and without a
        generation prompt.
        """
        if self.tags.unreadable:
            raise TemplateError(
                "llama-server doesn't start with this chat template, because it parses the tool "
                f"calls as JSON: {self.tags.unreadable}"
            )
        question = Message(role("user"), "test")
        now = datetime(2000, 1, 1)
        try:
            for generation in (True, False):
                request = Request([question], [], {}, None, generation, "", None)
                self.render(request, tokens, now, True)
        except TemplateError as e:
            raise TemplateError(
                f"llama-server doesn't start with this chat template, which fails for a single "
                f"user message: {e.args[0]}",
                e.line,
            ) from None

    def _rendered(self, variables: Json, generation: bool, tokens: Tokens, now: datetime) -> Prompt:
        if generation:
            variables = {**variables, "add_generation_prompt": True}
        prompt = self.template.render(variables, now)
        bos = tokens.bos if tokens.add_bos else ""
        return prompt.without_ends(bos, tokens.eos if tokens.add_eos else "")

    def _continued(
        self,
        request: Request,
        variables: Json,
        prompt: Prompt,
        thinking: bool,
        tokens: Tokens,
        now: datetime,
    ) -> list[tuple[str, bool]]:
        """The pieces that continuing the last message appends to the prompt."""
        message = request.messages[-1]
        in_content = request.continues == "content" or (
            request.continues == "auto"
            and not (message.reasoning and not message.content and not message.parts)
        )
        handler = self.handler
        if handler is not None:
            answer = Answer(message, in_content, self.source, request.variables, thinking, prompt)
            pieces = handlers.pieces(handler, answer)
            if not handler.after_prompt:
                return pieces
        # The generation prompt that the template itself writes.
        with_it = self._rendered(variables, True, tokens, now)
        before = with_it.after(prompt)
        if handler is not None:
            return [*before, *pieces]
        tags = self.tags
        if tags.start:
            before = _until(before, tags.start)
            before += [(tags.start, True), (message.reasoning, False)]
            if in_content:
                before.append((tags.end, True))
        return [*before, *message.pieces()] if in_content else before

    def _probe(self, tokens: Tokens) -> reasoning.Render:
        def render(
            messages: list[Json], tools: list[Json] | None, generation: bool, thinking: bool
        ) -> str | None:
            variables = {
                "messages": [self._typed(message) for message in messages],
                "bos_token": own(tokens.bos),
                "eos_token": own(tokens.eos),
                "enable_thinking": thinking,
            }
            if tools is not None:
                variables["tools"] = tools
            if generation:
                variables["add_generation_prompt"] = True
            return self.template.probe(variables, [])[0]

        return render

    def _typed(self, message: Json) -> Json:
        """A message of a test rendering, with its content in the form that the template needs."""
        content = message["content"]
        if self.caps.only_typed and isinstance(content, str):
            return {**message, "content": [{"type": "text", "text": content}]}
        return message


def dates(now: datetime) -> Json:
    """The server's variables for the local date."""
    return dict(_dates(now.year, now.month, now.day))


@lru_cache(1)
def _dates(year: int, month: int, day: int) -> Json:
    name = _MONTHS[month - 1]
    return {"datetime": f"{name} {day:02} {year}", "date_string": f"{day:02} {name} {year}"}


def _spread(variables: Json) -> Json:
    """The variables that templates use for a setting that a request has under one name."""
    spread: Json = {}
    preserve = variables.get("preserve_reasoning")
    if isinstance(preserve, bool):
        spread |= {name: preserve is says for name, says in _caps.PRESERVING.items()}
    effort = variables.get("reasoning_effort")
    if isinstance(effort, str):
        spread |= dict.fromkeys(_caps.EFFORTS, effort)
    return spread


def _until(pieces: list[tuple[str, bool]], text: str) -> list[tuple[str, bool]]:
    """The pieces before the first occurrence of a text; all pieces if it doesn't occur."""
    at = "".join(piece for piece, _ in pieces).find(text)
    if at < 0:
        return pieces
    kept: list[tuple[str, bool]] = []
    for piece, is_own in pieces:
        kept.append((piece[:at], is_own))
        at = max(0, at - len(piece))
    return kept
