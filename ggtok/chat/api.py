"""Implements the chat methods of the Tokenizer."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ggtok.base.escape import number, printable
from ggtok.chat import masks, media, prompt_ids, values
from ggtok.chat.compiled import CompiledTemplate, chat_of
from ggtok.chat.options import ChatOptions, Clock, Messages, check_names, time_of
from ggtok.chat.prompt import Prompt
from ggtok.errors import InvalidTypeError, InvalidValueError, VocabWarning
from ggtok.native import chat_calls

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded
    from ggtok.native import Part


class ChatCall:
    """A call with its options: everything that all conversations share."""

    __slots__ = (
        "bits",
        "chat",
        "fields",
        "flags",
        "loaded",
        "marker",
        "named",
        "options",
        "silent",
        "template",
    )

    def __init__(
        self,
        loaded: Loaded,
        options: ChatOptions,
        flags: int = prompt_ids.PARSE,
        bits: int = 0,
        keep: bool = True,  # whether to cache the compiled template
    ) -> None:
        options.check()
        self.loaded = loaded
        self.options = options
        self.chat = chat_of(loaded, options.like, options.template, options.clock, keep)
        if options.variables:
            check_names(options.variables, self.chat.variables[options.has_tools()])
        self.fields: tuple[Any, ...] | None = options.fields()
        self.named = options.named()
        self.flags = flags
        self.bits = bits
        if options.continue_final_message is False:
            self.bits |= chat_calls.NO_PREFILL
        self.marker = options.media_marker or media.MARKER
        # For each call of run, the number of conversations whose prompts have no text; several
        # threads append.
        self.silent: list[int] = []
        self.template: object = None  # a template of native/jinja.py to render instead
        if options.template is None and options.like == "llama.cpp":
            _warn_of_no_template(loaded)

    def run(self, conversations: list[Any], want: int, bits: int = 0) -> tuple[list[Any], int]:
        """Returns for each conversation the result that `want` selects, or an exception; and the
        number of images, audio and video in all of them."""
        results, n_media = self.raw(conversations, want, bits)
        for i, result in enumerate(results):
            if isinstance(result, Exception):
                results[i] = self.public(result)
            elif want == chat_calls.PROMPT:
                results[i] = Prompt(*result)
        return results, n_media

    def raw(self, conversations: list[Any], want: int, bits: int = 0) -> tuple[list[Any], int]:
        """Like `run`, with results and exceptions as C returns them."""
        options = self.options
        time = self.chat.reads_time and time_of(options.clock, options.like)
        try:
            results, n_media, n_silent = self.loaded.chat(
                self.chat.compiled,
                conversations,
                self.fields,
                self.named,
                want,
                self.flags,
                self.bits | bits,
                time,
                self.marker,
                self.template,
            )
        except MemoryError as e:
            self.loaded.reraise(e)
        if n_silent:
            self.silent.append(n_silent)
        return results, n_media

    def warn_of_silence(self) -> None:
        """Warns if prompts had no text of their messages."""
        if n := sum(self.silent):
            _warn(
                f"the {'prompt has' if n == 1 else f'prompts of {n} conversations have'} no text "
                "of the messages: the chat template writes none, perhaps because it doesn't know "
                "their roles; most templates know system, user, assistant and tool"
            )

    def public(self, error: Exception) -> Exception:
        """Returns the public exception for one that C returned."""
        if isinstance(error, chat_calls.FailedError):
            return chat_calls.error_of(error)
        try:
            self.loaded.reraise(error)
        except Exception as e:
            return e

    def run_one(self, conversation: Any, want: int, bits: int = 0) -> tuple[Any, int]:
        """Returns the result for one conversation, and the number of its images, audio and video.
        Raises the conversation's error."""
        [result], n_media = self.run([conversation], want, bits)
        if isinstance(result, Exception):
            raise result
        return result, n_media


def render(
    loaded: Loaded,
    messages: Messages,
    options: ChatOptions,
    want: int,
    trusted: bool = False,
    user_defined: str = "parse",
) -> Any:
    """Returns a conversation's text, ids, number of ids or prompt, depending on `want`."""
    return _render(loaded, messages, options, want, trusted, user_defined)[0]


def _render(
    loaded: Loaded,
    messages: Messages,
    options: ChatOptions,
    want: int,
    trusted: bool,
    user_defined: str,
) -> tuple[Any, int]:
    conversation = messages if type(messages) is list else as_list(messages)
    flags = prompt_ids.flags_of(trusted, user_defined)
    call = ChatCall(loaded, options, flags, chat_calls.TRUSTED if trusted else 0)
    found = call.run_one(conversation, want)
    call.warn_of_silence()
    return found


def ids(
    loaded: Loaded,
    messages: Messages,
    options: ChatOptions,
    trusted: bool,
    user_defined: str,
    known: object,
) -> list[int]:
    """Returns the ids of a conversation. `known`: see :meth:`ggtok.Tokenizer.encode_chat`."""
    found: list[int]
    if known is None:
        found, n_media = _render(loaded, messages, options, chat_calls.IDS, trusted, user_defined)
    else:
        found, rest = _ids_after(loaded, messages, options, trusted, user_defined, known)
        n_media = len(media.parts_of(rest, options.like))
    if n_media:
        warn_of_media(n_media)
    return found


def count(
    loaded: Loaded,
    messages: Messages,
    options: ChatOptions,
    trusted: bool,
    user_defined: str,
    known: object,
    image_tokens: media.ImageTokens | None,
) -> int:
    """Counts the ids of a conversation. `image_tokens` says how to count parts that aren't text."""
    media.check_tokens(image_tokens)
    conversation = messages if type(messages) is list else as_list(messages)
    n: int
    if known is None:
        n, n_media = _render(loaded, conversation, options, chat_calls.COUNT, trusted, user_defined)
        rest: Any = conversation
    else:
        ids, rest = _ids_after(loaded, conversation, options, trusted, user_defined, known)
        n, n_media = len(ids), len(media.parts_of(rest, options.like))
    if n_media and image_tokens is not None:
        return n + media.tokens(media.parts_of(_messages_of(rest), options.like), image_tokens)
    if n_media:
        warn_of_media(n_media)
    return n


def run_body(
    loaded: Loaded,
    body: Mapping[str, Any] | bytes,
    want: int,
    trusted: bool = False,
    *,
    template: str | None = None,
    clock: Clock | None = None,
    media_marker: str = media.MARKER,
    like: str = "llama.cpp",
) -> Any:
    """Like `run`, but for a whole request: the body that llama-server gets."""
    return _run_body(loaded, body, want, trusted, template, clock, media_marker, like)[0]


def _run_body(
    loaded: Loaded,
    body: Mapping[str, Any] | bytes,
    want: int,
    trusted: bool,
    template: str | None,
    clock: Clock | None,
    media_marker: str,
    like: str,
) -> tuple[Any, int]:
    if not isinstance(body, (Mapping, bytes)):
        raise InvalidTypeError(f"a request must be a mapping, not {type(body).__name__}")
    options = ChatOptions(like=like, template=template, clock=clock, media_marker=media_marker)
    call = ChatCall(loaded, options, prompt_ids.PARSE, chat_calls.TRUSTED if trusted else 0)
    call.fields = None
    found = call.run_one(body if isinstance(body, bytes) else dict(body), want)
    call.warn_of_silence()
    return found


def count_body(
    loaded: Loaded,
    body: Mapping[str, Any],
    trusted: bool = False,
    *,
    template: str | None = None,
    clock: Clock | None = None,
    media_marker: str = media.MARKER,
    image_tokens: media.ImageTokens | None = None,
    like: str = "llama.cpp",
) -> tuple[int, int]:
    """Returns the number of ids of a request, and how many parts aren't included in it.

    Images, audio and video aren't included if `image_tokens` doesn't say how to count them.
    """
    media.check_tokens(image_tokens)
    n: int
    n, n_media = _run_body(
        loaded, body, chat_calls.COUNT, trusted, template, clock, media_marker, like
    )
    if image_tokens is None or not n_media:
        return n, n_media
    return n + media.tokens(media.parts_of(body["messages"], like), image_tokens), 0


def prompt_parts(
    loaded: Loaded, messages: Messages, keywords: Mapping[str, Any]
) -> tuple[Prompt, list[int], list[Part]]:
    """Returns the prompt, its ids and its parts, as encode_chat would encode it with these
    arguments."""
    options, trusted, flags = options_of(keywords)
    prompt: Prompt = render(loaded, as_list(messages), options, chat_calls.PROMPT, trusted)
    return prompt, *prompt_ids.ids_and_parts(loaded, prompt, trusted, flags)


def options_of(keywords: Mapping[str, Any]) -> tuple[ChatOptions, bool, int]:
    """Returns the options in a dict of encode_chat's arguments: those of the request, `trusted`,
    and ggtok_encode's flags."""
    variables = dict(keywords)
    names = ChatOptions.__slots__
    named = {
        name: variables.pop(name) for name in names if name in keywords and name != "variables"
    }
    trusted = variables.pop("trusted", False)
    flags = prompt_ids.flags_of(trusted, variables.pop("user_defined", "parse"))
    return ChatOptions(**named, variables=variables), trusted, flags


def ids_and_mask(
    loaded: Loaded, messages: Messages, options: ChatOptions, *, trusted: bool, user_defined: str
) -> tuple[list[int], list[bool]]:
    """Returns the ids of a conversation, and for each id whether it is the assistant's."""
    flags = prompt_ids.flags_of(trusted, user_defined)
    call = ChatCall(loaded, options, flags, chat_calls.TRUSTED if trusted else 0)
    given = as_list(messages)
    prompt, n_media = call.run_one(given, chat_calls.PROMPT)
    call.warn_of_silence()
    if n_media:
        warn_of_media(n_media)
    return Masker(call, trusted).ids_and_mask(prompt, given)


class Masker:
    """Encodes the prompts of one call with their masks."""

    def __init__(self, call: ChatCall, trusted: bool) -> None:
        self._call, self._trusted = call, trusted
        source = call.chat.facts_for(has_tools=call.options.has_tools()).source
        self._is_marked = masks.marks_generation(source)
        self._opening = b"" if self._is_marked else masks.opening(self._rendered)

    def _rendered(self, messages: list[Any], add_generation_prompt: bool) -> Prompt:
        """Returns the prompt for other messages, of which the last is closed."""
        call, options = self._call, self._call.options
        closed = replace(
            options,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=None if options.like == "transformers" else False,
        )
        other = ChatCall(call.loaded, closed, call.flags, call.bits & chat_calls.TRUSTED)
        prompt: Prompt = other.run_one(messages, chat_calls.PROMPT)[0]
        return prompt

    def ids_and_mask(self, prompt: Prompt, conversation: Any) -> tuple[list[int], list[bool]]:
        """Returns the ids of a conversation's prompt, and for each id whether any of its bytes is
        in the assistant's text."""
        call = self._call
        loaded = call.loaded
        ids, parts = prompt_ids.ids_and_parts(loaded, prompt, self._trusted, call.flags)
        ranges = prompt.generated
        if not self._is_marked:
            messages = _messages_of(conversation)
            ranges = masks.answers(loaded, prompt, ids, parts, messages, self._opening)
        return ids, prompt_ids.mask_of(loaded, prompt.text.encode(), ids, parts, ranges)


def _ids_after(
    loaded: Loaded,
    messages: Messages,
    options: ChatOptions,
    trusted: bool,
    user_defined: str,
    known: object,
) -> tuple[list[int], list[Any]]:
    """Returns the ids, and the messages after the known ones."""
    flags = prompt_ids.flags_of(trusted, user_defined)
    given = as_list(messages)
    conversation = _messages_of(given)
    n, ids = prompt_ids.check_known(loaded, known, len(conversation))
    options.check()
    now = (options.clock or datetime.now)()  # both renderings must contain the same time

    def prompt(options: ChatOptions, request: Any) -> Prompt:
        call = ChatCall(loaded, replace(options, clock=lambda: now), flags)
        found: Prompt = call.run_one(
            request, chat_calls.PROMPT, chat_calls.ALLOW_EMPTY | chat_calls.BEFORE_MORE
        )[0]
        return found

    final = None if options.like == "transformers" else False
    closed = replace(options, add_generation_prompt=False, continue_final_message=final)
    # JSON text may be a request with other fields.
    request = json.loads(given) if isinstance(given, bytes) else None
    fields = request if isinstance(request, dict) else {}
    ended = {k: v for k, v in fields.items() if k != "continue_final_message"}
    known_messages = conversation[:n]
    beginning = prompt(closed, {**ended, "messages": known_messages} if ended else known_messages)
    whole = prompt(options, fields or conversation)
    more = prompt_ids.after_known(loaded, ids, beginning, whole, trusted, flags)
    return [*ids, *more], conversation[n:]


def as_list(messages: Any) -> Any:
    """Returns messages as a list; JSON text stays as it is."""
    if isinstance(messages, bytes):
        return messages
    return values.sequence(messages, "messages", "mappings")


def _messages_of(conversation: Any) -> list[Any]:
    """Returns the list of messages of a conversation that may be JSON text."""
    if not isinstance(conversation, bytes):
        return list(conversation)
    try:
        parsed = json.loads(conversation)
    except ValueError as e:
        raise InvalidValueError(f"the request is not valid JSON: {e}") from None
    except RecursionError:
        raise InvalidValueError("the request is nested too deeply") from None
    found = parsed.get("messages") if isinstance(parsed, dict) else parsed
    if not isinstance(found, list):
        raise InvalidTypeError("messages must be a list of mappings")
    return found


def server_chat(loaded: Loaded) -> CompiledTemplate:
    """Returns the compiled template that llama-server uses. Raises TemplateError if it wouldn't
    start."""
    return chat_of(loaded, "llama.cpp", None, None)


# ---- warnings ----


def _warn_of_no_template(loaded: Loaded) -> None:
    """Warns once per tokenizer if its file has no template."""
    memo = loaded.memo
    if "has a template" not in memo:
        templates = loaded.chat_templates
        memo["has a template"] = bool(templates.get("default") or templates.get("tool_use"))
    if memo["has a template"] or memo.get("warned of no template"):
        return
    name = "the file" if loaded.path is None else printable(loaded.path)
    _warn(
        f"{name} has no chat template: ChatML is used instead, as in llama-server, but that is "
        "not what the model was trained on; pass the model's template with template= (on the "
        "command line, --template)"
    )
    memo["warned of no template"] = True  # not reached if warnings are errors


def warn_of_media(n: int) -> None:
    """Warns that `n` parts aren't included."""
    _warn(
        f"the tokens of {number(n, 'image, audio or video part')} aren't included, because a "
        "vocabulary doesn't say how many there are; count_chat(image_tokens=N) counts N for "
        "each (on the command line, --image-tokens N)"
    )


def _warn(message: str) -> None:
    """Issues a warning that points to the caller's line outside of ggtok."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ggtok."):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, VocabWarning, stacklevel=level)
