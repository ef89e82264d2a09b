"""The names of keyword arguments: those of templates' variables, and those that are mistaken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ggtok.errors import InvalidTypeError

# Fields of a request; never wrong, whatever the template reads.
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

# Names that transformers has, and what to do here instead.
_TRANSFORMERS = {
    "conversation": "the messages are the first argument",
    "chat_template": "give the template, or its name in the file, with template=",
    "tokenize": "apply_chat_template gives text, encode_chat gives ids",
    "return_assistant_tokens_mask": "use encode_chat(..., return_assistant_mask=True)",
    "return_dict": "encode_chat gives a list of ids",
    "return_tensors": "encode_chat gives a list of ids: make an array of it",
    "padding": "encode_chat gives the ids of one conversation, without padding",
    "truncation": "encode_chat doesn't truncate: use count_chat, and drop messages",
    "max_length": "encode_chat doesn't truncate: use count_chat, and drop messages",
    "tokenizer_kwargs": "encode_chat takes trusted=, user_defined= and return_assistant_mask=",
    "add_special_tokens": "encode_chat adds BOS and EOS if the vocabulary asks for them",
    "split_special_tokens": "encode_chat(..., trusted=False), the default, keeps messages from "
    "becoming control tokens",
    "load_audio_from_video": "messages can only hold text",
    "processor_kwargs": "messages can only hold text",
}


def check(given: Mapping[str, object], read: Iterable[str], parameters: Iterable[str]) -> None:
    """InvalidTypeError for a keyword that makes no difference."""
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
