"""Checks the names of keyword arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ggtok.errors import InvalidTypeError

# Fields of a request, which are valid for every template.
PARAMETERS = (
    "tools",
    "like",
    "add_generation_prompt",
    "continue_final_message",
    "template",
    "enable_thinking",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_format",
    "reasoning_effort",
    "chat_template_kwargs",
    "clock",
)
ENCODING = ("trusted", "user_defined", "return_assistant_mask", "known")

# Names from transformers, and what to use instead.
_TRANSFORMERS = {
    "conversation": "the messages are the first argument",
    "chat_template": "pass the template, or its name in the file, as template",
    "tokenize": "apply_chat_template returns text, encode_chat returns ids",
    "return_assistant_tokens_mask": "use encode_chat(..., return_assistant_mask=True)",
    "return_dict": "encode_chat returns a list of ids",
    "return_tensors": "encode_chat returns a list of ids, which you can convert to an array",
    "padding": "encode_chat returns the ids of one conversation, without padding",
    "truncation": "encode_chat doesn't truncate: use count_chat, and drop messages",
    "max_length": "encode_chat doesn't truncate: use count_chat, and drop messages",
    "tokenizer_kwargs": "encode_chat takes trusted=, user_defined= and return_assistant_mask=",
    "add_special_tokens": "encode_chat adds BOS and EOS if the vocabulary asks for them",
    "split_special_tokens": "encode_chat(..., trusted=False), the default, keeps messages from "
    "becoming control tokens",
    "load_audio_from_video": "messages can only contain text",
    "processor_kwargs": "messages can only contain text",
}


def check(given: Mapping[str, object], read: Iterable[str], parameters: Iterable[str]) -> None:
    """Raises InvalidTypeError for a keyword that the template doesn't read."""
    read = set(read)
    for name in given:
        if name in read:
            continue
        if name in _TRANSFORMERS:
            raise InvalidTypeError(f"{name} isn't an argument here: {_TRANSFORMERS[name]}")
        nearest = _nearest(name, [*read, *parameters])
        raise InvalidTypeError(
            f"{name} is neither an argument nor a variable of the chat template{nearest} "
            "(chat_template_kwargs={...} passes any name)"
        )


def _nearest(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, names, 1)
    return f": did you mean {found[0]}?" if found else ""
