"""The keyword arguments of the chat methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ggtok.base.escape import quoted
from ggtok.chat import media, values
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native import jinja
from ggtok.native.arguments import is_one_of, truth_or_none
from ggtok.native.chat_calls import LIKES

Json = dict[str, Any]
Clock = Callable[[], datetime]
Messages = Sequence[Mapping[str, Any]] | bytes

# Arguments of transformers' methods, and what to use instead.
_TRANSFORMERS = {
    "conversation": "the messages are the first argument",
    "chat_template": "pass the template, or its name in the file, as template",
    "tokenize": "apply_chat_template returns text, encode_chat returns ids",
    "return_assistant_tokens_mask": "use encode_chat(..., return_assistant_mask=True)",
    "return_assistant_mask": "only encode_chat has it, for one conversation; for many, "
    "encode_files(..., chat=True) writes masks",
    "return_dict": "encode_chat returns a list of ids",
    "return_tensors": "encode_chat returns a list of ids, which you can convert to an array",
    "padding": "encode_chat returns the ids of one conversation, without padding",
    "truncation": "encode_chat doesn't truncate: use count_chat, and drop messages",
    "max_length": "encode_chat doesn't truncate: use count_chat, and drop messages",
    "tokenizer_kwargs": "encode_chat takes trusted=, user_defined= and return_assistant_mask=",
    "add_special_tokens": "encode_chat adds BOS and EOS if the vocabulary asks for them",
    "split_special_tokens": "encode_chat(..., trusted=False), the default, keeps messages from "
    "becoming control tokens",
    "load_audio_from_video": "images, audio and video aren't read",
    "processor_kwargs": "images, audio and video aren't read",
}


@dataclass(slots=True)
class ChatOptions:
    """The keyword arguments of the chat methods, documented in Tokenizer."""

    tools: Any = None
    like: str = "llama.cpp"
    add_generation_prompt: bool | None = None
    continue_final_message: bool | str | None = None
    template: str | None = None
    clock: Clock | None = None
    enable_thinking: bool | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    response_format: Any = None
    reasoning_format: str | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: Mapping[str, Any] | None = None
    media_marker: str | None = None
    variables: Mapping[str, Any] | None = None

    def check(self) -> None:
        """Raises an error for an argument that has a wrong type and isn't part of the request."""
        if not is_one_of(self.like, LIKES):
            choices = " or ".join(map(repr, LIKES))
            raise InvalidValueError(f"like must be {choices}, not {quoted(self.like)}")
        if self.tools is not None and type(self.tools) is not list:
            what = "JSON schemas" if self.like == "transformers" else "mappings"
            self.tools = values.sequence(self.tools, "tools", what)
        self.add_generation_prompt = _flag(self.add_generation_prompt, "add_generation_prompt")
        self.enable_thinking = _flag(self.enable_thinking, "enable_thinking")
        self.parallel_tool_calls = _flag(self.parallel_tool_calls, "parallel_tool_calls")
        final = self.continue_final_message
        if final is not None and not isinstance(final, (str, bool)):
            self.continue_final_message = truth_or_none(final, "continue_final_message")
        if self.clock is not None:
            check_clock(self.clock)
        if self.template is not None:
            if not isinstance(self.template, str):
                raise InvalidTypeError(f"template must be str, not {type(self.template).__name__}")
            self.template = str.__str__(self.template)
        if self.media_marker is not None:
            self.media_marker = media.check_marker(self.media_marker)

    def fields(self) -> tuple[Any, ...]:
        """Returns the request's fields besides its messages, in C's order; None for those that
        aren't set."""
        return (
            self.tools,
            self.add_generation_prompt,
            self.continue_final_message,
            self.tool_choice,
            self.parallel_tool_calls,
            self.response_format,
            self.reasoning_format,
            self.reasoning_effort,
            self.chat_template_kwargs,
        )

    def named(self) -> Json | None:
        """Returns the template variables that the caller passed as keywords, except None values;
        None if there are none."""
        if not self.variables and self.enable_thinking is None:
            return None
        given = {**(self.variables or {}), "enable_thinking": self.enable_thinking}
        return {name: value for name, value in given.items() if value is not None}

    def has_tools(self) -> bool:
        return self.tools is not None if self.like == "transformers" else bool(self.tools)


def _flag(value: Any, name: str) -> bool | None:
    if value is None or value is True or value is False:
        return value
    return truth_or_none(value, name)


def check_clock(clock: object) -> None:
    if not callable(clock):
        raise InvalidTypeError(f"clock must be a function, not {type(clock).__name__}")


def now_of(clock: Clock) -> datetime:
    now = clock()
    if not isinstance(now, datetime):
        raise InvalidTypeError(f"clock must return a datetime, not {type(now).__name__}")
    return now


def time_of(clock: Clock | None, like: str) -> tuple[Any, ...] | None:
    """Returns the time that templates see, as C expects it (None: the present, as the server's
    templates see it)."""
    if clock is None and like == "llama.cpp":
        return None
    now = now_of(clock or datetime.now)
    if like == "llama.cpp" and now.tzinfo is None:
        now = now.astimezone()  # the server knows its time zone, transformers doesn't
    return jinja.fields_of(now)


def check_names(given: Mapping[str, object], read: frozenset[str]) -> None:
    """Raises InvalidTypeError for a keyword that the template doesn't read."""
    name = next((name for name in given if name not in read), None)
    if name is None:
        return
    if name in _TRANSFORMERS:
        raise InvalidTypeError(f"{name} isn't an argument here: {_TRANSFORMERS[name]}")
    from difflib import get_close_matches

    nearest = get_close_matches(name, [*read, *ChatOptions.__slots__[:-1]], 1)
    raise InvalidTypeError(
        f"{name} is neither an argument nor a variable of the chat template"
        f"{f': did you mean {nearest[0]}?' if nearest else ''} "
        "(chat_template_kwargs={...} passes any name)"
    )
