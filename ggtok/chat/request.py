"""A chat request, as passed by the caller (`Options`) and normalized (`Request`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ggtok.chat import encode, media, values
from ggtok.chat.prompt import ROLES, Prompt
from ggtok.errors import GGTokError, InvalidTypeError, InvalidValueError
from ggtok.native import chat, jinja
from ggtok.native.arguments import truth_or_none

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded

Json = dict[str, Any]
Clock = Callable[[], datetime]
Messages = Sequence[Mapping[str, Any]]
# Four texts: BOS and EOS, which are removed from the ends of the prompt because encoding adds them
# ("" to remove nothing), and two more: if the prompt ends with the third, the fourth is appended.
Ends = tuple[str, str, str, str]
NO_ENDS: Ends = ("", "", "", "")
Key = tuple[Any, ...]  # the key of a cached request: Options.key
# A function that changes a rendered prompt.
Finish = Callable[..., Prompt]

_LIKES = ("llama.cpp", "transformers")
_KEY_TYPES = frozenset((str, bool, type(None)))
_SCALARS = _KEY_TYPES | {int}
_LONG = 1000  # characters; requests with longer strings in variables aren't cached
_FIELDS = (
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_format",
    "reasoning_effort",
)
# Arguments of transformers' methods, and what to use instead.
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
    "load_audio_from_video": "images, audio and video aren't read",
    "processor_kwargs": "images, audio and video aren't read",
}
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # as in the C locale


@dataclass(slots=True)
class Options:
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

    def now(self) -> datetime:
        now = (self.clock or datetime.now)()
        if not isinstance(now, datetime):
            raise InvalidTypeError(f"clock must return a datetime, not {type(now).__name__}")
        return now

    def given(self) -> Json:
        """Returns the template variables that the caller passed as keywords, except None values."""
        given = {**(self.variables or {}), "enable_thinking": self.enable_thinking}
        return {name: value for name, value in given.items() if value is not None}

    def fields(self) -> Json:
        """Returns the fields of a request's body that both policies read, except None values."""
        given = {name: getattr(self, name) for name in _FIELDS}
        return {name: value for name, value in given.items() if value is not None}

    def list_tools(self) -> None:
        """Replaces an iterator or another sequence of tools with a list."""
        if self.tools is not None and type(self.tools) is not list:
            what = "JSON schemas" if self.like == "transformers" else "mappings"
            self.tools = values.sequence(self.tools, "tools", what)

    def key(self) -> Key | None:
        """Returns everything that the normalized request depends on, or None if that can't be a
        key.

        True and 1 are equal as keys, so only values of exact types are allowed.
        """
        like, template = self.like, self.template
        generation, final = self.add_generation_prompt, self.continue_final_message
        thinking, effort, tools = self.enable_thinking, self.reasoning_effort, self.tools
        marker = self.media_marker
        if not (
            type(like) in _KEY_TYPES
            and type(template) in _KEY_TYPES
            and type(generation) in _KEY_TYPES
            and type(final) in _KEY_TYPES
            and type(thinking) in _KEY_TYPES
            and type(effort) in _KEY_TYPES
            and type(marker) in _KEY_TYPES
            and self.tool_choice is None
            and self.parallel_tool_calls is None
            and self.response_format is None
            and self.reasoning_format is None
            and (self.clock is None or callable(self.clock))
        ):
            return None
        has_tools = None if tools is None else bool(tools)
        fields = like, template, generation, final, thinking, effort, has_tools, marker
        unchecked, checked = self.chat_template_kwargs, self.variables
        if unchecked or checked:
            unchecked, checked = _items(unchecked), _items(checked)
            if unchecked is None or checked is None:
                return None
            return *fields, unchecked, checked
        return *fields, (), ()

    @classmethod
    def of_key(cls, key: Key) -> Options:
        """Returns options with this key. Tools are None, [] or [{}], which stands for any tools."""
        like, template, generation, final, thinking, effort, has_tools, marker, *more = key
        unchecked, checked = more
        return cls(
            tools=None if has_tools is None else [{}] * has_tools,
            like=like,
            template=template,
            add_generation_prompt=generation,
            continue_final_message=final,
            enable_thinking=thinking,
            reasoning_effort=effort,
            chat_template_kwargs={name: value for name, _, value in unchecked} or None,
            media_marker=marker,
            variables={name: value for name, _, value in checked} or None,
        )

    def check(self) -> None:
        if self.like not in _LIKES:
            choices = " or ".join(map(repr, _LIKES))
            raise InvalidValueError(f"like must be {choices}, not {self.like!r}")
        for name in ("add_generation_prompt", "enable_thinking", "parallel_tool_calls"):
            setattr(self, name, truth_or_none(getattr(self, name), name))
        final = self.continue_final_message
        if not isinstance(final, str):
            self.continue_final_message = truth_or_none(final, "continue_final_message")
        if not isinstance(self.chat_template_kwargs, (Mapping, type(None))):
            kind = type(self.chat_template_kwargs).__name__
            raise InvalidTypeError(f"chat_template_kwargs must be a mapping, not {kind}")
        if self.clock is not None and not callable(self.clock):
            raise InvalidTypeError(f"clock must be a function, not {type(self.clock).__name__}")
        if self.template is not None:
            if not isinstance(self.template, str):
                raise InvalidTypeError(f"template must be str, not {type(self.template).__name__}")
            self.template = str.__str__(self.template)
        if self.media_marker is not None:
            self.media_marker = media.check_marker(self.media_marker)


def _items(variables: Mapping[str, Any] | None) -> Any:
    """Returns the variables, with their types, as part of a key, or None if that is impossible."""
    if not variables:
        return ()
    if type(variables) is not dict or not _SCALARS.issuperset(map(type, variables.values())):
        return None
    if any(type(value) is str and len(value) > _LONG for value in variables.values()):
        return None
    return tuple((name, type(value), value) for name, value in variables.items())


def check_names(given: Mapping[str, object], read: frozenset[str]) -> None:
    """Raises InvalidTypeError for a keyword that the template doesn't read."""
    name = next((name for name in given if name not in read), None)
    if name is None:
        return
    if name in _TRANSFORMERS:
        raise InvalidTypeError(f"{name} isn't an argument here: {_TRANSFORMERS[name]}")
    from difflib import get_close_matches

    nearest = get_close_matches(name, [*read, *Options.__slots__[:-1]], 1)
    raise InvalidTypeError(
        f"{name} is neither an argument nor a variable of the chat template"
        f"{f': did you mean {nearest[0]}?' if nearest else ''} "
        "(chat_template_kwargs={...} passes any name)"
    )


def dates_of(now: datetime) -> Json:
    """Returns llama-server's variables for the local date."""
    return _dates_of(now.year, now.month, now.day)


@lru_cache(1)
def _dates_of(year: int, month: int, day: int) -> Json:
    name = _MONTHS[month - 1]
    return {"datetime": f"{name} {day:02} {year}", "date_string": f"{day:02} {name} {year}"}


class File(NamedTuple):
    """The chat templates and special tokens of a tokenizer's file."""

    templates: tuple[tuple[str, str], ...]  # (name, source) of each template
    texts: tuple[tuple[str, str], ...]  # (variable such as "bos_token", text) of special tokens
    ends: Ends  # with BOS and EOS only if encoding adds them
    lacks_template: bool  # if true, requests without `template` use ChatML

    def template(self, wanted: str) -> str:
        """Returns the template named `wanted`, or `wanted` itself if it is a template."""
        templates = dict(self.templates)
        if wanted in templates:
            return templates[wanted]
        if "{" in wanted or "\n" in wanted:
            return wanted
        raise InvalidValueError(
            f"template: {wanted!r} is neither a template nor the name of one of the file's "
            f"({self.names()})"
        )

    def names(self) -> str:
        return ", ".join(map(repr, sorted(dict(self.templates)))) or "none"


class Policy(Protocol):
    """The rules of llama-server or transformers for normalizing requests and preparing messages."""

    source: str
    like: str  # the value of the option `like` that selects this policy

    def request(self, options: Options) -> Request: ...

    def read_tools(self, tools: list[Any]) -> list[Json] | None:
        """Converts tools to the form that the template gets."""
        ...

    def prepare(
        self, request: Request, conversation: list[Any], indices: Sequence[int], ends: Ends
    ) -> Prepared:
        """Prepares a conversation that C doesn't read.

        `indices` are the messages that need preparation; if empty, all do.
        """
        ...

    def failure(self, error: GGTokError, conversation: list[Any]) -> GGTokError:
        """Returns the error to raise if rendering failed with `error`."""
        ...


@dataclass(slots=True)
class Prepared:
    """A conversation for C. A message that Python has prepared is wrapped in a tuple."""

    messages: list[Any]
    ends: Ends
    finish: Finish | None = None
    continued: bool = False  # whether the prompt ends inside the last message
    both: bool = False  # also pass `finish` the prompt with the opposite add_generation_prompt
    n_media: int = 0  # the number of parts that aren't text


@dataclass(slots=True)
class Request:
    """A request without messages and tools, normalized for C (cext/python/chat.c)."""

    policy: Policy
    template: object  # the compiled template
    variables: Json
    bits: int
    ends: Ends
    text_ends: Ends  # instead of `ends` if the result is text
    known_ends: Ends  # instead of `ends` if known ids precede the result
    given: Json  # the caller's variables
    dates: frozenset[str]  # date variables that the template reads
    timed: bool  # whether the template may read the current time
    # Where to continue the last message: "auto", a field's name, or "" not to continue it.
    continues: str = ""
    thinking: bool = False
    finish: Finish | None = None
    media_marker: str = media.MARKER

    def run(
        self,
        loaded: Loaded,
        conversations: list[list[Any]],
        want: int,
        tools: list[Any] | None,
        clock: Clock,
        flags: int = encode.PARSE,
        bits: int = 0,
        ends: Ends | None = None,
        uncounted: list[media.Part] | None = None,
    ) -> list[Any]:
        """Returns for each conversation the result that `want` selects, or an exception object.

        Images, audio and video of the conversations are appended to `uncounted`.
        """
        variables, time = self.variables, None
        if tools is not None and "tools" not in self.given:
            variables = {**variables, "tools": tools}
        if self.timed or self.dates:
            now = clock()
            time = jinja.fields_of(now) if self.timed else None
            shown = dates_of(now)
            variables = {**variables, **{name: shown[name] for name in self.dates}}
        if ends is None:
            ends = self.text_ends if want == chat.TEXT else self.ends
        bits |= self.bits
        call = _Call(self, loaded, variables, time, want, flags, bits, ends, uncounted)
        try:
            return call.run(conversations)
        except MemoryError as e:
            loaded.native.reraise(e)


_READY = frozenset((list, int, str))  # types of results that are final


@dataclass(slots=True)
class _Call:
    """A call to C with its arguments, and the steps in Python that follow it."""

    request: Request
    loaded: Loaded
    variables: Json
    time: object
    want: int
    flags: int
    bits: int
    ends: Ends
    uncounted: list[media.Part] | None

    def run(self, conversations: list[list[Any]]) -> list[Any]:
        want = self.want if self.request.finish is None else chat.PROMPT
        results = self._chat(conversations, self.bits, want, self.ends)
        ready = want < chat.PROMPT and _READY.issuperset(map(type, results))
        # Messages that C renders for llama-server without Python have only text.
        if self.uncounted is not None and not (ready and self.request.policy.like == "llama.cpp"):
            for conversation in conversations:
                self.uncounted += media.parts_of(conversation, self.request.policy.like)
        if ready:
            return results
        return [self._completed(result, conversations[i]) for i, result in enumerate(results)]

    def _chat(self, conversations: list[list[Any]], bits: int, want: int, ends: Ends) -> list[Any]:
        return self.loaded.native.chat(
            self.request.template,
            self.variables,
            bits,
            want,
            self.flags,
            ends,
            ROLES,
            conversations,
            self.time,
        )

    def _completed(self, result: Any, conversation: list[Any]) -> Any:
        """Returns the final result for a conversation, or an exception object."""
        request, finish, n_media = self.request, self.request.finish, 0
        try:
            # If messages change while others are prepared, the second iteration prepares all.
            for indices in (result, ()):
                if type(result) is not tuple:
                    break
                prepared = request.policy.prepare(request, conversation, indices, self.ends)
                finish, n_media = prepared.finish, prepared.n_media
                result = self._rendered(prepared)
            if isinstance(result, jinja.FailedError):
                return request.policy.failure(jinja.error_of(result), conversation)
            if isinstance(result, Exception):
                self.loaded.native.reraise(result)
            if finish is None and self.want < chat.PROMPT and not self._needs_markers(n_media):
                return result
            prompts = [Prompt(*result[i : i + 3]) for i in range(0, len(result), 3)]
            return self._wanted(finish(*prompts) if finish else prompts[0], n_media)
        except GGTokError as e:
            return e

    def _rendered(self, prepared: Prepared) -> Any:
        bits = self.bits | chat.PREPARED
        if prepared.continued:
            bits &= ~chat.GENERATION
        want = self.want
        if self._needs_markers(prepared.n_media):
            want = chat.PROMPT
        if prepared.finish is not None:
            want = chat.PROMPTS if prepared.both else chat.PROMPT
        [result] = self._chat([prepared.messages], bits, want, prepared.ends)
        return result

    def _needs_markers(self, n_media: int) -> bool:
        """Whether the prompt's markers must be found; a result that is only text doesn't need
        them."""
        return n_media > 0 and self.want != chat.TEXT

    def _wanted(self, prompt: Prompt, n_media: int) -> Any:
        if self.want == chat.TEXT:
            return prompt.text
        if n_media:
            found = media.ranges(prompt.text, self.request.media_marker, n_media)
            prompt = replace(prompt, media=found)
        if self.want == chat.PROMPT:
            return prompt
        ids = encode.ids(self.loaded, prompt, bool(self.bits & chat.TRUSTED), self.flags)
        return len(ids) if self.want == chat.COUNT else ids
