"""The policy of llama-server: how it normalizes requests and prepares messages.

null counts as missing, and values of an unexpected type are ignored, except for a few that are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ggtok.chat import caps as _caps
from ggtok.chat import handlers, messages, reasoning, values
from ggtok.chat.caps import Caps
from ggtok.chat.handlers import Answer, Handler
from ggtok.chat.media import MARKER
from ggtok.chat.messages import Json, Message
from ggtok.chat.prompt import Prompt, own, role
from ggtok.chat.reasoning import Tags
from ggtok.chat.request import Ends, File, Options, Prepared, Request, check_names, dates_of
from ggtok.errors import GGTokError, InvalidTypeError, InvalidValueError, TemplateError
from ggtok.native import chat, jinja

_TOOL_CHOICES = ("auto", "none", "required")
REASONING_FORMATS = ("none", "auto", "deepseek", "deepseek-legacy")
_A_DAY = datetime(2000, 1, 1)
_DATES = frozenset(dates_of(_A_DAY))

# The server renders each request with and without a generation prompt, and fails if either
# rendering fails. These expressions match uses of add_generation_prompt that can't make a
# rendering fail: tests, and setting its default.
_HARMLESS = re.compile(
    r"if not add_generation_prompt is defined|set add_generation_prompt = [^%]*"
    r"|(?:if|and) add_generation_prompt(?=\s*-?%|\s+and)"
)
# Checks that the server removes from templates, because they refuse messages that the templates
# could render. In a source that contains the first text, _NEVER replaces the second one.
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
# The template for files that have none.
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
# Identifies a family whose contents are trimmed, as its models repeat themselves after stray white
# space.
_TRIMMED = "You have access to the following functions in JSONSchema format"


def patched(source: str) -> str:
    for sign, check in _PATCHES:
        if sign in source:
            source = source.replace(check, _NEVER)
    return source


def _as_lexed(source: str) -> str:
    """Normalizes line breaks as the lexer does, because families are recognized in the result."""
    ends = source.endswith("\n")
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    return source[:-1] if ends else source


class LlamaServer:
    """A template with its capabilities, as llama-server uses it; immutable.

    `thinks`, if not None, overrides the template's default for enable_thinking.
    """

    like = "llama.cpp"

    def __init__(self, source: str, file: File, thinks: bool | None = None) -> None:
        self.ends = file.ends
        texts = dict(file.texts)
        self.texts = {name: own(texts[name]) for name in ("bos_token", "eos_token")}
        self.template = jinja.compile(source, "llama.cpp")
        self.source = _as_lexed(source)
        self.caps: Caps = _caps.find(self.template)
        self.handler: Handler | None = handlers.find(self.source)
        self.tags = Tags()
        if self.handler is None:
            self.tags = reasoning.find(self._probe, self.source, self.caps.tool_calls)
            self.thinks = self.tags.found
        else:
            self.thinks = self.handler.reasons
        # Only gpt-oss's template supports the role `developer`; others get `system` instead.
        self.renames_developers = "<|channel|>" not in self.source
        self.trims = _TRIMMED in self.source
        self.bits = self._bits()
        self.dates = _DATES & self.template.variables
        self.timed = "strftime_now" in self.source
        self._check_start()
        if thinks is not None:
            self.thinks = thinks

    @property
    def variables(self) -> frozenset[str]:
        """The names of variables that affect the prompt."""
        names = self.template.variables
        if not names.isdisjoint(_caps.PRESERVING):
            names |= {"preserve_reasoning"}
        if not names.isdisjoint(_caps.EFFORTS):
            names |= {"reasoning_effort"}
        return names | self.handler.reads if self.handler else names

    # ---- requests ----

    def request(self, given: Options) -> Request:
        if given.variables:
            check_names(given.variables, self.variables)
        final = given.continue_final_message
        body = {
            **given.fields(),
            "add_generation_prompt": given.add_generation_prompt,
            "continue_final_message": final,
            "chat_template_kwargs": {**(given.chat_template_kwargs or {}), **given.given()},
        }
        marker = given.media_marker or MARKER
        return self.read(body, bool(given.tools), final is not False, marker)

    def read(
        self,
        body: Mapping[str, Any],
        has_tools: bool,
        prefill: bool = True,
        media_marker: str = MARKER,
    ) -> Request:
        """Normalizes the options in a request's body; ignores its messages and tools.

        If `prefill` and the last message is the assistant's, that message is continued. The server
        does this unless it was started with --no-prefill-assistant.
        """
        schema = schema_of(body)
        choice = _typed(body, "tool_choice", str, "auto")
        _one_of(choice, _TOOL_CHOICES, "tool_choice")
        _check_grammar(body, has_tools and choice != "none")
        generation = _typed(body, "add_generation_prompt", bool, True)
        continues = _continuation(body.get("continue_final_message"))
        if continues and generation:
            raise InvalidValueError(
                "continue_final_message can't be combined with a generation prompt: "
                "pass add_generation_prompt=False"
            )
        if "reasoning_format" in body:
            _one_of(body["reasoning_format"], REASONING_FORMATS, "reasoning_format")
        given = _variables(body)
        thinking = _thinking(given)
        effort = _typed(body, "reasoning_effort", str, "")
        if effort == "none":
            thinking = False
            given.pop("reasoning_effort", None)
        elif effort:
            given["reasoning_effort"] = values.text(effort, "reasoning_effort")
        if thinking is None:
            thinking = self.thinks
        # C reads the variables for each conversation, so pass only what the template reads.
        # The caller's variables are always passed, because they may shadow a built-in function.
        passed = self.template.variables | given.keys()
        variables = self._variables(given, thinking, schema)
        handler = self.handler
        turn = handler.turn if handler is not None and generation else ("", "")
        bos, eos, _, _ = self.ends
        ends = (bos, eos, *turn)
        return Request(
            policy=self,
            template=self.template.compiled,
            variables={name: value for name, value in variables.items() if name in passed},
            bits=self.bits
            | (chat.PREFILL if prefill and not continues else 0)
            | (chat.PREPARE_ALL if continues else 0)
            | (chat.OWN_MESSAGES if "messages" in given else 0)
            | (chat.GENERATION if generation else 0),
            ends=ends,
            text_ends=ends,
            known_ends=(bos, "", *turn),
            given=given,
            dates=self.dates - given.keys(),
            timed=self.timed,
            continues=continues,
            thinking=thinking,
            finish=handler.finish if handler is not None and not generation else None,
            media_marker=media_marker,
        )

    def _bits(self) -> int:
        """Returns the flags (native/chat.py) that every request with this template has."""
        handler = self.handler
        changes = handler is not None and handler.messages is not None
        changes_all = handler is not None and not handler.keeps_plain
        bits = {
            chat.TYPED: self.caps.only_typed,
            chat.NO_DEVELOPER: self.renames_developers,
            chat.NO_SYSTEM: not self.caps.system_role,
            chat.NO_REASONING: changes,
            chat.PREPARE_ALL: changes_all or self.trims,
            chat.BOTH: "add_generation_prompt" in _HARMLESS.sub("", self.source),
        }
        return sum(bit for bit, on in bits.items() if on)

    def _variables(self, given: Json, thinking: bool, schema: Any = None) -> Json:
        """Returns the template's variables except messages, tools, dates and
        add_generation_prompt."""
        # If a variable occurs twice, the later value counts.
        variables: Json = {**self.texts, "enable_thinking": thinking, **given}
        handler = self.handler
        if handler is not None:
            handler.check(given)
            if handler.schema_variable and isinstance(schema, dict):
                variables[handler.schema_variable] = schema
        return {**_spread(variables), **variables}

    def read_tools(self, tools: list[Any]) -> list[Json] | None:
        return messages.read_tools(tools) or None

    def failure(self, error: GGTokError, conversation: list[Any]) -> GGTokError:
        if conversation or not isinstance(error, TemplateError):
            return error
        says = f"there are no messages, but this chat template needs some: {error.args[0]}"
        return TemplateError(says, error.line)

    # ---- conversations ----

    def prepare(
        self, request: Request, conversation: list[Any], indices: Sequence[int], ends: Ends
    ) -> Prepared:
        given, marker = list(conversation), request.media_marker
        read = {i: messages.read(given[i], i, marker) for i in indices if i < len(given)}
        bits, last = request.bits, read.get(len(given) - 1)
        begins = bits & chat.PREFILL and last is not None and last.role == "assistant"
        alters_others = bits & chat.NO_REASONING or (bits & chat.NO_SYSTEM and 0 in read)
        if read and not begins and not alters_others:
            for i, message in read.items():
                given[i] = (self._written(message, i),)
            n_media = sum(message.n_media for message in read.values())
            return Prepared(given, ends, request.finish, n_media=n_media)
        every = [
            read[i] if i in read else messages.read(message, i, marker)
            for i, message in enumerate(given)
        ]
        continues = request.continues
        if not continues and bits & chat.PREFILL and every and every[-1].role == "assistant":
            if len(every) > 1 and every[-2].role == "assistant":
                raise InvalidValueError("messages: the last two are both from the assistant")
            continues = "auto"
        written = self._prepared(request, every, continues)
        prepared = Prepared([(message,) for message in written], ends, request.finish)
        prepared.n_media = sum(message.n_media for message in every)
        if continues:
            self._continue(request, every, continues, prepared)
        return prepared

    def _written(self, message: Message, index: int) -> Json:
        written = messages.write(message, self.caps, index)
        if self.renames_developers and written["role"] == "developer":
            written["role"] = role("system")
        return written

    def _prepared(self, request: Request, every: list[Message], continues: str) -> list[Json]:
        """Returns the messages for the template, without the last one if it is continued."""
        if continues and every and every[-1].role == "assistant" and every[-1].calls:
            raise InvalidValueError("messages: the last one calls tools, so it can't be continued")
        if self.trims:
            every = [message.trimmed() for message in every]
        written = [self._written(message, i) for i, message in enumerate(every)]
        written = messages.merge_system(written[:-1] if continues else written, self.caps)
        handler = self.handler
        if handler is None or handler.messages is None or "messages" in request.given:
            return written
        return handler.messages(written, request.given)

    # ---- continuing the last message ----

    def _continue(
        self, request: Request, every: list[Message], continues: str, to: Prepared
    ) -> None:
        """Sets up `to` so that the last message is appended to the prompt and continued."""
        handler = self.handler
        to.continued = True
        to.ends = (*to.ends[:2], "", "")
        to.finish = handler.finish if handler is not None else None
        # Trimming and joining don't apply to this message.
        if every and every[-1]:
            to.both = handler is None or handler.after_prompt
            to.finish = partial(self._continued, request, every[-1], continues)

    def _continued(
        self,
        request: Request,
        message: Message,
        continues: str,
        prompt: Prompt,
        with_generation: Prompt | None = None,
    ) -> Prompt:
        """Returns the prompt followed by the beginning of an answer.

        `with_generation` is the prompt with the template's own generation prompt, if needed.
        """
        handler = self.handler
        if handler is not None and handler.finish is not None:
            prompt = handler.finish(prompt)
        in_content = continues == "content" or (
            continues == "auto"
            and not (message.reasoning and not message.content and not message.parts)
        )
        before = with_generation.after(prompt) if with_generation is not None else []
        if handler is not None:
            answer = Answer(
                message, in_content, self.source, request.given, request.thinking, prompt
            )
            return prompt.followed_by([*before, *handlers.pieces(handler, answer)])
        tags = self.tags
        if tags.start:
            before = _until(before, tags.start)
            before += [(tags.start, True), (message.reasoning, False)]
            if in_content:
                before.append((tags.end, True))
        return prompt.followed_by([*before, *message.pieces()] if in_content else before)

    # ---- at the start ----

    def _check_start(self) -> None:
        """Raises TemplateError if llama-server wouldn't start with this template.

        When it starts, the server parses a tool call, and renders one question with and without a
        generation prompt.
        """
        if self.tags.unreadable:
            raise TemplateError(
                "llama-server doesn't start with this chat template, because it parses the tool "
                f"calls as JSON: {self.tags.unreadable}"
            )
        request = self.read({}, False)
        variables = {**self._variables({}, True), **dates_of(_A_DAY)}
        variables["messages"] = self._prepared(request, [Message(role("user"), "test")], "")
        try:
            for generation in ({"add_generation_prompt": True}, {}):
                rendered = self.template.render({**variables, **generation}, _A_DAY)
                if isinstance(rendered.text, bytes):
                    raise TemplateError("the template splits a character")
        except TemplateError as e:
            raise TemplateError(
                f"llama-server doesn't start with this chat template, which fails for a single "
                f"user message: {e.args[0]}",
                e.line,
            ) from None

    def _probe(
        self, messages: list[Json], tools: list[Json] | None, generation: bool, thinking: bool
    ) -> str | None:
        """Returns the text of a test rendering, or None if it fails."""
        variables = {
            "messages": [self._typed(message) for message in messages],
            **self.texts,
            "enable_thinking": thinking,
        }
        if tools is not None:
            variables["tools"] = tools
        if generation:
            variables["add_generation_prompt"] = True
        return self.template.probe(variables, [])[0]

    def _typed(self, message: Json) -> Json:
        """Returns a message for a test rendering, with its content in the form that the template
        supports."""
        content = message["content"]
        if self.caps.only_typed and isinstance(content, str):
            return {**message, "content": [{"type": "text", "text": content}]}
        return message


# ---- fields of a body ----


def _typed(body: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    """Returns a field's value if it has the given type, else the default."""
    value = body.get(name)
    return value if isinstance(value, kind) else default


def _one_of(value: object, allowed: tuple[str, ...], name: str) -> None:
    if not isinstance(value, str):
        raise InvalidTypeError(f"{name} must be str, not {type(value).__name__}")
    if value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise InvalidValueError(f"{name} must be one of {choices}, not {value!r}")


def schema_of(body: Mapping[str, Any]) -> Any:
    """Returns the JSON schema that a request's body sets for the answer, or None."""
    schema = values.from_python(body.get("json_schema"), "json_schema")
    wanted = _typed(body, "response_format", Mapping, {})
    kind = _typed(wanted, "type", str, "")
    if kind == "json_object":
        if "schema" in wanted or not schema:
            schema = _typed(wanted, "schema", Mapping, {})
    elif kind == "json_schema":
        schema = _typed(_typed(wanted, "json_schema", Mapping, {}), "schema", Mapping, {})
    elif kind not in ("", "text"):
        raise InvalidValueError(
            "response_format: the type must be 'text', 'json_object' or 'json_schema', "
            f"not {kind!r}"
        )
    if isinstance(schema, Mapping):
        schema = values.from_python(schema, "response_format") or {"type": "object"}
    return schema


def _check_grammar(body: Mapping[str, Any], uses_tools: bool) -> None:
    grammar = _typed(body, "grammar", str, "")
    if grammar and body.get("json_schema") is not None:
        raise InvalidValueError("json_schema and grammar can't be combined")
    if uses_tools and "grammar" in body:
        raise InvalidValueError("tools and grammar can't be combined")


def _continuation(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "auto" if value else ""
    if value in ("content", "reasoning_content"):
        return str(value)
    raise InvalidValueError(
        "continue_final_message must be True, False, 'content' or 'reasoning_content', "
        f"not {value!r}"
    )


def _variables(body: Mapping[str, Any]) -> Json:
    given = body.get("chat_template_kwargs")
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidTypeError(
            f"chat_template_kwargs must be a mapping, not {type(given).__name__}"
        )
    variables: Json = values.from_python(given, "chat_template_kwargs")
    return variables


def _thinking(variables: Json) -> bool | None:
    value = variables.get("enable_thinking")
    if isinstance(value, str):
        raise InvalidTypeError("enable_thinking must be bool, not str")
    return value if isinstance(value, bool) else None


def _spread(variables: Json) -> Json:
    """Returns variables for two of the request's settings, under all names that templates use."""
    spread: Json = {}
    preserve = variables.get("preserve_reasoning")
    if isinstance(preserve, bool):
        spread |= {name: preserve is says for name, says in _caps.PRESERVING.items()}
    effort = variables.get("reasoning_effort")
    if isinstance(effort, str):
        spread |= dict.fromkeys(_caps.EFFORTS, effort)
    return spread


def _until(pieces: list[tuple[str, bool]], text: str) -> list[tuple[str, bool]]:
    """Returns the pieces before the first occurrence of a text, or all pieces if there is none."""
    at = "".join(piece for piece, _ in pieces).find(text)
    if at < 0:
        return pieces
    kept: list[tuple[str, bool]] = []
    for piece, is_own in pieces:
        kept.append((piece[:at], is_own))
        at = max(0, at - len(piece))
    return kept
