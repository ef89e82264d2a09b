"""Renders chats as transformers' apply_chat_template does, with messages nearly unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ggtok.chat import engine, files, keywords, values
from ggtok.chat.plan import Plan
from ggtok.chat.prompt import Prompt, own, role
from ggtok.errors import Argument, InvalidTypeError, InvalidValueError, TemplateError, Wording

if TYPE_CHECKING:
    from ggtok.chat.options import Messages, Options
    from ggtok.loading.loaded import Loaded

Json = dict[str, Any]

# Special tokens whose texts are variables of the template: bos_token and so on.
_TOKENS = ("bos", "eos", "unk", "sep", "pad", "mask")
# The keys for a message's reasoning. Templates read the first two.
_REASONING = ("reasoning_content", "thinking", "reasoning")
# Fields of a server's request, which templates get as variables.
_FIELDS = (
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_format",
    "reasoning_effort",
)


class Renderer:
    """Renders messages for fixed options."""

    __slots__ = ("final", "options", "source", "template", "tools", "variables")

    def __init__(self, loaded: Loaded, options: Options) -> None:
        self.options = options
        self.source = find_source(loaded.chat_templates, options)
        self.template = engine.compile_transformers(self.source)
        keywords.check(options.variables or {}, self.template.variables, keywords.PARAMETERS)
        texts = {name: own(text) for name, text in token_texts(loaded).items()}
        given = {name: getattr(options, name) for name in _FIELDS}
        variables = {
            **(options.chat_template_kwargs or {}),
            **{name: value for name, value in given.items() if value is not None},
            **options.given(),
        }
        final = options.continue_final_message
        self.final = "content" if final is True else final or ""
        if self.final and options.add_generation_prompt:
            raise InvalidValueError(
                "continue_final_message can't be combined with a generation prompt: "
                "pass add_generation_prompt=False"
            )
        self.variables: Json = {
            **texts,
            "tools": read_tools(options.tools),
            "add_generation_prompt": bool(options.add_generation_prompt),
            "documents": None,
            **{name: _variable(name, value, texts) for name, value in variables.items()},
        }

    def render(self, messages: Messages) -> Prompt:
        """The prompt. Raises InvalidValueError if there are no messages, as transformers does."""
        chat = values.sequence(messages, "messages", "mappings")
        if not chat:
            what = "continue_final_message: " if self.final else ""
            raise InvalidValueError(
                f"{what}there are no messages, but transformers' apply_chat_template needs at "
                "least one"
            )
        return self.render_any(chat)

    def render_any(self, messages: Messages) -> Prompt:
        """The prompt. There may be no messages."""
        chat = _messages(messages)
        ending = _tagged(chat, self.source, self.final) if self.final else ""
        now = self.options.now()
        prompt = self.template.render({**self.variables, "messages": chat}, now)
        return _cut_at_tag(prompt, ending) if self.final else prompt

    def plan(self, loaded: Loaded) -> Plan | None:
        """The plan for these options without tools; None if all must be rendered in Python."""
        given = self.options.chat_template_kwargs or {}
        if self.final or not {"messages", "tools"}.isdisjoint(given):
            return None
        texts = token_texts(loaded)
        bos, eos = texts["bos_token"], texts["eos_token"]
        return Plan(
            template=self.template.compiled,
            variables={**self.variables, "tools": None},
            shape=0,
            ends=(
                bos if loaded.flags["add_bos"] else "",
                eos if loaded.flags["add_eos"] else "",
                "",
                "",
            ),
            text_ends=("", "", "", ""),
            dates=frozenset(),
            timed="strftime_now" in self.source,
            prepare=_message,
        )


def without_added(prompt: Prompt, loaded: Loaded) -> Prompt:
    """The prompt without a BOS and EOS of the template that the tokenizer will add itself."""
    texts = token_texts(loaded)
    bos, eos = texts["bos_token"], texts["eos_token"]
    size = len(prompt.text.encode())
    begins = loaded.flags["add_bos"] and prompt.covers(0, len(bos.encode()))
    ends = loaded.flags["add_eos"] and prompt.covers(size - len(eos.encode()), size)
    return prompt.without_ends(bos if begins else "", eos if ends else "")


def find_source(templates: Mapping[str, str], options: Options) -> str:
    """The template's source: a template of the file, by name, or `options.template` itself."""
    if options.template is not None:
        return files.find_template(templates, options.template)
    for name in ("tool_use", "default") if options.tools is not None else ("default",):
        if name in templates:
            return templates[name]
    names = ", ".join(map(repr, sorted(templates))) or "none"
    raise InvalidValueError(
        Wording(
            f"the file has no default chat template (it has: {names}); pass one with ",
            Argument("template", ""),
        )
    )


def token_texts(loaded: Loaded) -> dict[str, str]:
    ids = {f"{name}_token": loaded.special(name) for name in _TOKENS}
    texts = {name: files.piece(loaded, id) for name, id in ids.items() if id is not None}
    # As in llama.cpp, these are "" if there is no such token.
    return {"bos_token": "", "eos_token": "", **texts}


# ---- arguments ----


def _messages(messages: Messages) -> list[Json]:
    """The messages as transformers passes them: without None, with reasoning under both names."""
    given = values.sequence(messages, "messages", "mappings")
    return [_message(message, i) for i, message in enumerate(given)]


def _message(message: Any, index: int) -> Json:
    where = f"messages[{index}]"
    fields = values.mapping(message)
    if fields is None:
        raise InvalidTypeError(f"{where} must be a mapping, not {type(message).__name__}")
    plain = {k: v for k, v in values.as_python(fields, where).items() if v is not None}
    reasoning = next((plain[name] for name in _REASONING if name in plain), None)
    if reasoning is not None:
        plain = {"thinking": reasoning, **plain, "reasoning_content": reasoning}
    if isinstance(plain.get("role"), str):
        plain["role"] = role(plain["role"])
    return plain


def read_tools(tools: Any) -> Any:
    if tools is None:
        return None
    schemas = values.sequence(tools, "tools", "JSON schemas")
    for i, tool in enumerate(schemas):
        if values.mapping(tool) is not None:
            continue
        how = ""
        if callable(tool):
            how = " (transformers.utils.get_json_schema makes one of a Python function)"
        raise InvalidTypeError(
            f"tools[{i}] must be a mapping, a JSON schema, not {type(tool).__name__}{how}"
        )
    return values.as_python(schemas, "tools")


def _variable(name: str, value: Any, texts: Mapping[str, str]) -> Any:
    plain = values.as_python(value, name)
    # If the caller passes the token's own text, for example as bos_token, it means the token.
    owned = isinstance(plain, str) and plain == texts.get(name)
    return texts[name] if owned else plain


# ---- continuing the last message ----


# transformers' mark after the continued message. The prompt is cut at its last occurrence, if a
# template writes the message twice.
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "


def _tagged(chat: list[Json], source: str, field: str) -> str:
    """Appends the tag to the field's text in the last message. Returns that text."""
    last = chat[-1]
    fields = [field]
    if field in _REASONING:
        fields = [name for name in _REASONING if name in last and last[name] == last.get(field)]
    if field not in last:
        raise InvalidValueError(f"continue_final_message: the last message has no {field!r}")
    if not any(name in source for name in fields):
        raise InvalidValueError(f"continue_final_message: the template doesn't use {field!r}")
    value = last[field]
    tagged: Any
    if isinstance(value, str):
        tagged = value + _TAG
    elif isinstance(value, list):
        blocks = list(value)
        texts = [i for i, b in enumerate(blocks) if isinstance(b, Mapping) and "text" in b]
        value = blocks[texts[-1]]["text"] if texts else None
        if not isinstance(value, str):
            raise InvalidValueError("continue_final_message: the last message has no text")
        blocks[texts[-1]] = {**blocks[texts[-1]], "text": value + _TAG}
        tagged = blocks
    else:
        raise InvalidValueError(
            f"continue_final_message: {field!r} is {type(value).__name__}, not text"
        )
    chat[-1] = {**last, **dict.fromkeys(fields, tagged)}
    return str(value)


def _cut_at_tag(prompt: Prompt, ending: str) -> Prompt:
    """The prompt up to the last tag."""
    text = prompt.text
    at = text.rfind(_TAG.strip())
    if at < 0 or ending.strip() not in text:
        raise TemplateError(
            "continue_final_message: the template drops the end of the last message"
        )
    # If the tag's trailing space is missing, the template trims the message, so trim it here, too.
    if not text.startswith(_TAG, at):
        at = len(text[:at].rstrip())
    return prompt.cut(at)


# ---- masks ----

_GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")


def check_generation(source: str) -> None:
    if not _GENERATION.search(source):
        raise InvalidValueError(
            "return_assistant_mask: the chat template has no {% generation %} that marks the "
            "assistant's text"
        )
