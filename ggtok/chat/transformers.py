"""The policy of transformers' apply_chat_template, which changes messages very little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ggtok.chat import values
from ggtok.chat.prompt import Prompt, own, role
from ggtok.chat.request import NO_ENDS, Ends, File, Options, Prepared, Request, check_names
from ggtok.errors import (
    Argument,
    GGTokError,
    InvalidTypeError,
    InvalidValueError,
    TemplateError,
    Wording,
)
from ggtok.native import chat, jinja

Json = dict[str, Any]

# The keys that a message's reasoning may have. Templates read the first two.
_REASONING = ("reasoning_content", "thinking", "reasoning")


class Transformers:
    """A template as transformers uses it; immutable."""

    like = "transformers"

    def __init__(self, source: str, file: File) -> None:
        self.source = source
        self.template = jinja.compile(source, "transformers")
        self.texts = {name: own(text) for name, text in file.texts}
        self.ends = file.ends
        self.timed = "strftime_now" in source

    def request(self, options: Options) -> Request:
        check_names(options.variables or {}, self.template.variables)
        given = {**(options.chat_template_kwargs or {}), **options.fields(), **options.given()}
        final = options.continue_final_message
        final = "content" if final is True else final or ""
        if final and options.add_generation_prompt:
            raise InvalidValueError(
                "continue_final_message can't be combined with a generation prompt: "
                "pass add_generation_prompt=False"
            )
        return Request(
            policy=self,
            template=self.template.compiled,
            variables={
                **self.texts,
                "tools": None,
                "add_generation_prompt": bool(options.add_generation_prompt),
                "documents": None,
                **{name: self._variable(name, value) for name, value in given.items()},
            },
            bits=chat.PREPARE_ALL if final else 0,
            ends=self.ends,
            text_ends=NO_ENDS,
            known_ends=NO_ENDS,
            given=given,
            dates=frozenset(),
            timed=self.timed,
            continues=final,
        )

    def _variable(self, name: str, value: Any) -> Any:
        plain = values.as_python(value, name)
        # A caller who passes the token's own text, for example as bos_token, means the token.
        owned = isinstance(plain, str) and plain == self.texts.get(name)
        return self.texts[name] if owned else plain

    def read_tools(self, tools: list[Any]) -> list[Json] | None:
        for i, tool in enumerate(tools):
            values.schema(tool, f"tools[{i}]")
        schemas: list[Json] = values.as_python(tools, "tools")
        return schemas

    def failure(self, error: GGTokError, conversation: list[Any]) -> GGTokError:
        return error

    def prepare(
        self, request: Request, conversation: list[Any], indices: Sequence[int], ends: Ends
    ) -> Prepared:
        given = list(conversation)
        final = request.continues
        if not given:
            what = "continue_final_message: " if final else ""
            raise InvalidValueError(
                f"{what}there are no messages, but transformers' apply_chat_template needs at "
                "least one"
            )
        if final:
            every = [_message(message, i) for i, message in enumerate(given)]
            ending = _tagged(every, self.source, final)
            finish = partial(_continued, ending=ending, ends=ends)
            return Prepared([(message,) for message in every], NO_ENDS, finish)
        for i in indices or range(len(given)):
            if i < len(given):
                given[i] = (_message(given[i], i),)
        return Prepared(given, ends)


def policy(file: File, options: Options) -> Transformers:
    """Returns the policy with the template that the options select."""
    if options.template is not None:
        return Transformers(file.template(options.template), file)
    templates = dict(file.templates)
    for name in ("tool_use", "default") if options.tools is not None else ("default",):
        if name in templates:
            return Transformers(templates[name], file)
    raise InvalidValueError(
        Wording(
            f"the file has no default chat template (it has: {file.names()}); pass one with ",
            Argument("template", ""),
        )
    )


# ---- messages ----


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


# ---- continuing the last message ----


# The tag that transformers appends to the continued message. The prompt is cut at its last
# occurrence, since a template may write the message twice.
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "


def _tagged(chat: list[Json], source: str, field: str) -> str:
    """Appends the tag to the field's text in the last message, and returns the text without it."""
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


def _continued(prompt: Prompt, ending: str, ends: Ends) -> Prompt:
    """Returns the prompt up to the last tag, without BOS and EOS."""
    text = prompt.text
    at = text.rfind(_TAG.strip())
    if at < 0 or ending.strip() not in text:
        raise TemplateError(
            "continue_final_message: the template drops the end of the last message"
        )
    # If the tag's trailing space is missing, the template trims the message, so trim it here, too.
    if not text.startswith(_TAG, at):
        at = len(text[:at].rstrip())
    return prompt.cut(at).without_ends(*ends[:2])
