"""Implements the chat methods of the Tokenizer: arguments, templates, renderers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from os import cpu_count
from typing import TYPE_CHECKING, Any

from ggtok.chat import (
    encode,
    engine,
    files,
    keywords,
    plan,
    request,
    server,
    transformers,
    values,
)
from ggtok.chat import known as known_ids
from ggtok.chat.messages import read_tools
from ggtok.chat.options import Clock, Messages, Options
from ggtok.chat.plan import Plan
from ggtok.chat.prompt import Prompt
from ggtok.chat.server import Chat, Tokens
from ggtok.errors import GGTokError, InvalidTypeError, InvalidValueError, TemplateError
from ggtok.native.arguments import thread_count, truth_or_none

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded
    from ggtok.native import Part

_CHATS = 64  # templates in the cache of capabilities
_PLANS = 64  # plans that a tokenizer caches
_UNKNOWN: Any = object()  # not in the cache (None is a valid entry)
_RUN = 64  # conversations per task of a thread
_LONG = 1000  # characters; plans with longer variables aren't cached
_SIMPLE = frozenset((str, bool, int, type(None)))  # types of values in a plan's key
_MESSAGES = "messages", "mappings"
_LIKES = ("llama.cpp", "transformers")

Render = Callable[[Messages], Prompt]


def text(loaded: Loaded, messages: Messages, options: Options) -> str:
    found: str = _one(loaded, messages, options, plan.TEXT, False, "parse")
    return found


def ids(
    loaded: Loaded, messages: Messages, options: Options, trusted: bool, user_defined: str
) -> list[int]:
    found: list[int] = _one(loaded, messages, options, plan.IDS, trusted, user_defined)
    return found


def count(
    loaded: Loaded, messages: Messages, options: Options, trusted: bool, user_defined: str
) -> int:
    found: int = _one(loaded, messages, options, plan.COUNT, trusted, user_defined)
    return found


def _one(
    loaded: Loaded,
    messages: Messages,
    options: Options,
    want: int,
    trusted: bool,
    user_defined: str,
) -> Any:
    given = messages if type(messages) is list else values.sequence(messages, *_MESSAGES)
    quick, tools = _planned(loaded, options, trusted, user_defined)
    if quick is not None:
        flags = encode.FLAGS[user_defined]
        bits = want | plan.TRUSTED if trusted else want
        [found] = _run(loaded, quick, [given], bits, flags, tools, options.now)
        if found is not None:
            return _raised(loaded, found)
    return _in_python(
        loaded, given, renderer(loaded, options), options, want, trusted, user_defined
    )


def _in_python(
    loaded: Loaded,
    messages: Messages,
    prompt_of: Render,
    options: Options,
    want: int,
    trusted: bool,
    user_defined: str,
) -> Any:
    """The result, rendered without a plan."""
    prompt = prompt_of(messages)
    if want == plan.TEXT:
        return prompt.text
    ids = encode.ids(loaded, to_encode(loaded, prompt, options.like), trusted, user_defined)
    return len(ids) if want == plan.COUNT else ids


def _run(loaded: Loaded, quick: Plan, conversations: list[Any], *args: Any) -> list[Any]:
    empty = [not one for one in conversations]  # tested before the call, which may change them
    try:
        found = quick.run(loaded, conversations, *args)
    except MemoryError as e:
        loaded.native.raise_for(e)
    # For empty conversations, _in_python raises the right error.
    return [None if none else one for one, none in zip(found, empty, strict=True)]


def _raised(loaded: Loaded, found: Any) -> Any:
    if isinstance(found, engine.Failed):
        raise engine.error_of(found)
    if isinstance(found, Exception):
        loaded.native.raise_for(found)
    return found


def ids_after(
    loaded: Loaded,
    messages: Messages,
    options: Options,
    trusted: bool,
    user_defined: str,
    known: object,
) -> list[int]:
    """The ids of a conversation, given those of its first messages."""
    encode.check(trusted, user_defined)
    given = values.sequence(messages, *_MESSAGES)
    n, ids = known_ids.check(loaded, known, len(given))
    _listed(options)
    closed = replace(options, add_generation_prompt=False, continue_final_message=False)
    if options.like == "transformers":
        closed.continue_final_message = None
    now = options.now()  # the same time for both renderings, which may contain it
    options.clock = closed.clock = lambda: now
    beginning = renderer(loaded, closed, whole=True)(given[:n])
    prompt = renderer(loaded, options, whole=True)(given)
    return [*ids, *known_ids.following(loaded, ids, beginning, prompt, trusted, user_defined)]


def render(loaded: Loaded, messages: Messages, options: Options) -> Prompt:
    return renderer(loaded, options)(messages)


def renderer(loaded: Loaded, options: Options, whole: bool = False) -> Render:
    """A function that renders conversations with the same options.

    `whole`: keep an EOS that the template writes at the end, even if the vocabulary adds one.
    """
    _check(options)
    if options.like == "transformers":
        given = transformers.Renderer(loaded, options)
        return given.render_any if whole else given.render
    tokens = files.of(loaded).tokens
    chat, thinks = _chat(loaded, options)
    if whole:
        tokens = replace(tokens, add_eos=False)
    _check_names(options, chat)
    fields = _fields(options)
    prefill = _prefills(options)

    def rendered(messages: Messages) -> Prompt:
        body = {**fields, "messages": values.sequence(messages, *_MESSAGES)}
        return chat.render(request.read(body, prefill), tokens, options.now(), thinks)

    return rendered


def _check_names(options: Options, chat: Chat) -> None:
    if options.variables:
        keywords.check(options.variables, chat.variables, keywords.PARAMETERS)


def _prefills(options: Options) -> bool:
    """Whether a last message of the assistant is continued."""
    return options.continue_final_message is not False


# ---- plans ----


def _planned(
    loaded: Loaded, options: Options, trusted: bool, user_defined: str
) -> tuple[Plan | None, list[Any] | None]:
    """The plan for these options, cached, or None if C can't render them; and the tools."""
    encode.check(trusted, user_defined)
    usual = _is_usual(options)
    memo = loaded.memo
    last = memo.get("last plan")
    if usual and last is not None and _is_like(options, *last[0]):
        return last[1], None
    tools = _listed(options)
    key = _key(options, tools)
    plans = memo.setdefault("plans", {})
    quick = _UNKNOWN if key is None else plans.get(key, _UNKNOWN)
    if quick is _UNKNOWN:
        quick = _plan(loaded, options)
        if key is not None:
            if len(plans) >= _PLANS:
                plans.clear()
            plans[key] = quick
    if usual and key is not None:
        memo["last plan"] = _compared(options), quick
    return quick, _read_tools(options, tools)


def _is_usual(options: Options) -> bool:
    """Whether only fields that `_compared` compares are set."""
    return (
        options.tools is None
        and not options.variables
        and not options.chat_template_kwargs
        and options.tool_choice is None
        and options.parallel_tool_calls is None
        and options.response_format is None
        and options.reasoning_format is None
    )


def _compared(o: Options) -> tuple[object, ...]:
    return (
        o.template,
        o.like,
        o.add_generation_prompt,
        o.continue_final_message,
        o.enable_thinking,
        o.reasoning_effort,
    )


def _is_like(
    o: Options,
    template: object,
    like: object,
    generation: object,
    final: object,
    thinking: object,
    effort: object,
) -> bool:
    """Whether the options are the same objects, which is ten times as fast as making a key."""
    return (
        o.template is template
        and o.like is like
        and o.add_generation_prompt is generation
        and o.continue_final_message is final
        and o.enable_thinking is thinking
        and o.reasoning_effort is effort
    )


def _listed(options: Options) -> list[Any] | None:
    """The tools as a list. Replaces an iterator in `options` by the list."""
    given = options.tools
    if given is None or type(given) is list:
        return given
    what = "JSON schemas" if options.like == "transformers" else "mappings"
    tools = options.tools = values.sequence(given, "tools", what)
    return tools


def _read_tools(options: Options, tools: list[Any] | None) -> list[Any] | None:
    if tools is None:
        return None
    if options.like == "transformers":
        schemas: list[Any] = transformers.read_tools(tools)
        return schemas
    return read_tools(tools) or None


def _key(options: Options, tools: list[Any] | None) -> object:
    """The key of the plan in the cache; None if the plan can't be cached."""
    if (
        options.response_format is not None
        or options.tool_choice is not None
        or options.parallel_tool_calls is not None
        or options.reasoning_format is not None
    ):
        return None
    unchecked, checked = options.chat_template_kwargs or {}, options.variables or {}
    if type(unchecked) is not dict:
        return None
    values = (
        options.like,
        options.template,
        options.add_generation_prompt,
        options.continue_final_message,
        options.enable_thinking,
        options.reasoning_effort,
        tools if tools is None else bool(tools),
    )
    if unchecked or checked:
        given = *unchecked.values(), *checked.values()
        if any(type(value) is str and len(value) > _LONG for value in given):
            return None
        values = *values, len(unchecked), *unchecked, *checked, *given
    # The types are needed because True, 1 and 1.0 are equal.
    kinds = tuple(map(type, values))
    return (kinds, values) if _SIMPLE.issuperset(kinds) else None


def _plan(loaded: Loaded, options: Options) -> Plan | None:
    _check(options)
    if options.like == "transformers":
        return transformers.Renderer(loaded, options).plan(loaded)
    chat, thinks = _chat(loaded, options)
    _check_names(options, chat)
    fields = {**_fields(options), "messages": [], "tools": None}
    prefill = _prefills(options)
    understood = request.read(fields, prefill)
    return plan.for_server(chat, thinks, understood, files.of(loaded).tokens, prefill)


def render_body(
    loaded: Loaded,
    body: Mapping[str, Any],
    *,
    template: str | None = None,
    clock: Clock | None = None,
) -> Prompt:
    """The prompt that /apply-template returns for a request's body."""
    if not isinstance(body, Mapping):
        raise InvalidTypeError(f"a request must be a mapping, not {type(body).__name__}")
    understood = request.read(body)
    options = Options(tools=understood.tools, template=template)
    chat, thinks = _chat(loaded, options)
    return chat.render(understood, files.of(loaded).tokens, (clock or datetime.now)(), thinks)


def chat_of(loaded: Loaded, template: str | None = None) -> Chat:
    """The compiled template that llama-server would use, with its capabilities."""
    return _chat(loaded, Options(template=template))[0]


def ids_and_mask(
    loaded: Loaded, messages: Messages, options: Options, *, trusted: bool, user_defined: str
) -> tuple[list[int], list[bool]]:
    """The ids, and for each whether it is in a {% generation %} block."""
    encode.check(trusted, user_defined)
    transformers.check_generation(source_of(loaded, options))
    prompt = to_encode(loaded, render(loaded, messages, options), options.like)
    return encode.ids_and_mask(loaded, prompt, trusted, user_defined)


def prompt_parts(
    loaded: Loaded, messages: Messages, given: Mapping[str, Any]
) -> tuple[Prompt, list[int], list[Part]]:
    """The prompt that is encoded, its ids and parts; `given` are keywords of encode_chat."""
    trusted = given.get("trusted", False)
    user_defined = given.get("user_defined", "parse")
    encode.check(trusted, user_defined)
    named = {name: given[name] for name in keywords.PARAMETERS if name in given}
    options = Options(**named)
    known = {*named, "trusted", "user_defined"}
    options.variables = {n: v for n, v in given.items() if n not in known}
    prompt = to_encode(loaded, render(loaded, messages, options), options.like)
    parsed = list(encode.ranges(prompt, trusted))
    ids, parts = loaded.native.encode_parts(prompt.text, encode.FLAGS[user_defined], parsed)
    return prompt, ids, parts


def to_encode(loaded: Loaded, prompt: Prompt, like: str) -> Prompt:
    """The prompt without a BOS and EOS that encoding adds. llama-server's has none already."""
    if like == "transformers":
        return transformers.without_added(prompt, loaded)
    return prompt


def source_of(loaded: Loaded, options: Options) -> str:
    """The source of the template that the options select."""
    if options.like == "transformers":
        return transformers.find_source(loaded.chat_templates, options)
    return _chat(loaded, options)[0].source


def encode_batch(
    loaded: Loaded,
    conversations: Iterable[Messages],
    options: Options,
    trusted: bool,
    user_defined: str,
    threads: int,
) -> list[list[int]]:
    """The ids of each conversation."""
    threads = thread_count(threads)
    quick, tools = _planned(loaded, options, trusted, user_defined)
    prompt_of = renderer(loaded, options)
    bits = plan.TRUSTED if trusted else plan.IDS
    given = values.sequence(conversations, "conversations", "conversations")

    def run(begin: int) -> list[list[int]]:
        some = [
            messages if type(messages) is list else _sequence(messages, i)
            for i, messages in enumerate(given[begin : begin + _RUN], begin)
        ]
        results: list[Any] = [None] * len(some)
        if quick is not None:
            flags = encode.FLAGS[user_defined]
            results = _run(loaded, quick, some, bits, flags, tools, options.now)
        for i, found in enumerate(results):
            if type(found) is list:
                continue
            with _numbered(begin + i):
                results[i] = (
                    _in_python(loaded, some[i], prompt_of, options, plan.IDS, trusted, user_defined)
                    if found is None
                    else _raised(loaded, found)
                )
        return results

    workers = min(threads or cpu_count() or 1, -(-len(given) // _RUN))
    runs: Iterable[list[list[int]]] = map(run, range(0, len(given), _RUN))
    if workers <= 1:
        return [found for each in runs for found in each]
    with ThreadPoolExecutor(workers) as pool:
        runs = pool.map(run, range(0, len(given), _RUN))
        return [found for each in runs for found in each]


def _sequence(messages: Any, index: int) -> list[Any]:
    with _numbered(index):
        return values.sequence(messages, *_MESSAGES)


@contextmanager
def _numbered(index: int) -> Iterator[None]:
    """Adds the index of the conversation to errors."""
    try:
        yield
    except GGTokError as e:
        if hasattr(e, "add_note"):  # Python 3.11
            e.add_note(f"in conversations[{index}]")
        raise


# ---- arguments ----


def _check(options: Options) -> None:
    if options.like not in _LIKES:
        choices = " or ".join(map(repr, _LIKES))
        raise InvalidValueError(f"like must be {choices}, not {options.like!r}")
    for name in ("add_generation_prompt", "enable_thinking", "parallel_tool_calls"):
        setattr(options, name, truth_or_none(getattr(options, name), name))
    if not isinstance(options.continue_final_message, str):
        final = truth_or_none(options.continue_final_message, "continue_final_message")
        options.continue_final_message = final
    if not isinstance(options.chat_template_kwargs, (Mapping, type(None))):
        kind = type(options.chat_template_kwargs).__name__
        raise InvalidTypeError(f"chat_template_kwargs must be a mapping, not {kind}")
    if options.clock is not None and not callable(options.clock):
        raise InvalidTypeError(f"clock must be a function, not {type(options.clock).__name__}")
    if options.template is not None and not isinstance(options.template, str):
        raise InvalidTypeError(f"template must be str, not {type(options.template).__name__}")


def _fields(options: Options) -> dict[str, Any]:
    """The fields of the request without the messages and without None."""
    fields = {
        "tools": _listed(options),
        "add_generation_prompt": options.add_generation_prompt,
        "continue_final_message": options.continue_final_message,
        "tool_choice": options.tool_choice,
        "parallel_tool_calls": options.parallel_tool_calls,
        "response_format": options.response_format,
        "reasoning_format": options.reasoning_format,
        "reasoning_effort": options.reasoning_effort,
    }
    variables = {**(options.chat_template_kwargs or {}), **options.given()}
    if variables:
        fields["chat_template_kwargs"] = variables
    return {name: value for name, value in fields.items() if value is not None}


# ---- templates ----


def _chat(loaded: Loaded, options: Options) -> tuple[Chat, bool]:
    """The template to use, and the server's default for enable_thinking."""
    templates, tokens = files.of(loaded).templates, files.of(loaded).tokens
    wanted = options.template
    default = templates.get("default", "")
    if wanted is not None:
        default = wanted if wanted == "chatml" else files.find_template(templates, wanted)
    if default in ("", "chatml"):
        instead = wanted is None and templates.get("tool_use")
        if not default and not instead:
            files.warn_of_no_template(loaded)
        default = instead or server.CHATML
    chat = _known(server.patched(default), tokens)
    if wanted is None and options.tools and templates.get("tool_use"):
        try:
            return _known(templates["tool_use"], tokens), chat.thinks
        except TemplateError:
            pass  # fall back to the default template, as the server does
    return chat, chat.thinks


def _known(source: str, tokens: Tokens) -> Chat:
    found = _found(source, tokens)
    if isinstance(found, TemplateError):
        raise TemplateError(*found.args)
    return found


@lru_cache(_CHATS)
def _found(source: str, tokens: Tokens) -> Chat | TemplateError:
    """Compiles a template. Errors are cached, too, because finding them takes time."""
    try:
        return Chat(source, engine.compile_llama, tokens)
    except TemplateError as e:
        return e.with_traceback(None)
