"""Implements the chat methods of the Tokenizer."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from os import cpu_count
from typing import TYPE_CHECKING, Any

from ggtok.base.escape import number, shown
from ggtok.chat import encode, llama, media, transformers, values
from ggtok.chat.llama import LlamaServer
from ggtok.chat.messages import read_tools
from ggtok.chat.prompt import Prompt
from ggtok.chat.request import Clock, File, Key, Messages, Options, Policy, Request
from ggtok.errors import (
    GGTokError,
    InvalidTypeError,
    InvalidValueError,
    TemplateError,
    VocabWarning,
)
from ggtok.native import chat
from ggtok.native.arguments import thread_count

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded
    from ggtok.native import Part

_REQUESTS = 64  # maximum number of normalized requests to cache
_PER_TASK = 64  # number of conversations that a thread encodes per task
_TOKENS = ("bos", "eos", "unk", "sep", "pad", "mask")  # tokens whose texts templates can read


def run(
    loaded: Loaded,
    messages: Messages,
    options: Options,
    want: int,
    trusted: bool = False,
    user_defined: str = "parse",
    uncounted: list[media.Part] | None = None,
) -> Any:
    """Returns a conversation's text, ids, number of ids or prompt, depending on `want`.

    Images, audio and video produce no ids; these parts are appended to `uncounted`.
    """
    conversation = messages if type(messages) is list else _listed(messages)
    flags = encode.flags_of(trusted, user_defined)
    request = _request(loaded, options)
    tools = _tools(request, options)
    bits = chat.TRUSTED if trusted else 0
    return _one(
        request.run(
            loaded, [conversation], want, tools, options.now, flags, bits, uncounted=uncounted
        )
    )


def ids(
    loaded: Loaded,
    messages: Messages,
    options: Options,
    trusted: bool,
    user_defined: str,
    known: object,
) -> list[int]:
    """Returns the ids of a conversation. `known`: see :meth:`ggtok.Tokenizer.encode_chat`."""
    found: list[int]
    found, parts = _encoded(loaded, messages, options, chat.IDS, trusted, user_defined, known)
    warn_of_media(len(parts))
    return found


def count(
    loaded: Loaded,
    messages: Messages,
    options: Options,
    trusted: bool,
    user_defined: str,
    known: object,
    image_tokens: media.ImageTokens | None,
) -> int:
    """Counts the ids of a conversation. `image_tokens` says how to count parts that aren't text."""
    media.check_tokens(image_tokens)
    n: int
    n, parts = _encoded(loaded, messages, options, chat.COUNT, trusted, user_defined, known)
    if image_tokens is not None:
        return n + media.tokens(parts, image_tokens)
    warn_of_media(len(parts))
    return n


def _encoded(
    loaded: Loaded,
    messages: Messages,
    options: Options,
    want: int,
    trusted: bool,
    user_defined: str,
    known: object,
) -> tuple[Any, list[media.Part]]:
    """Returns the ids or their number, and the images, audio and video that produce no ids."""
    if known is None:
        parts: list[media.Part] = []
        return run(loaded, messages, options, want, trusted, user_defined, parts), parts
    conversation = _listed(messages)
    ids, parts = _ids_after(loaded, conversation, options, trusted, user_defined, known)
    return len(ids) if want == chat.COUNT else ids, parts


def run_body(
    loaded: Loaded,
    body: Mapping[str, Any],
    want: int,
    trusted: bool = False,
    *,
    template: str | None = None,
    clock: Clock | None = None,
    media_marker: str = media.MARKER,
) -> Any:
    """Like `run`, but for the body of a request to llama-server."""
    if not isinstance(body, Mapping):
        raise InvalidTypeError(f"a request must be a mapping, not {type(body).__name__}")
    if "messages" not in body:
        raise InvalidValueError("messages are missing")
    if not isinstance(body["messages"], (list, tuple)):
        kind = type(body["messages"]).__name__
        raise InvalidTypeError(f"messages must be a list of mappings, not {kind}")
    tools = read_tools(body.get("tools")) or None
    options = Options(tools=tools, template=template, clock=clock)
    request = server(loaded, options).read(body, tools is not None, media_marker=media_marker)
    bits, conversations = chat.TRUSTED if trusted else 0, [list(body["messages"])]
    return _one(request.run(loaded, conversations, want, tools, options.now, encode.PARSE, bits))


def count_body(
    loaded: Loaded,
    body: Mapping[str, Any],
    trusted: bool = False,
    *,
    template: str | None = None,
    clock: Clock | None = None,
    media_marker: str = media.MARKER,
    image_tokens: media.ImageTokens | None = None,
) -> tuple[int, int]:
    """Returns the number of ids of a request's body, and how many parts aren't included in it.

    Images, audio and video aren't included if `image_tokens` doesn't say how to count them.
    """
    media.check_tokens(image_tokens)
    n: int = run_body(
        loaded, body, chat.COUNT, trusted, template=template, clock=clock, media_marker=media_marker
    )
    parts = media.parts_of(body["messages"])
    if image_tokens is None:
        return n, len(parts)
    return n + media.tokens(parts, image_tokens), 0


def request_of(loaded: Loaded, options: Options) -> Request:
    """Returns the normalized request, for a caller that changes it and calls its `run`."""
    return _request(loaded, options)


def _one(results: list[Any]) -> Any:
    """Returns the only result, or raises it if it is an error."""
    [found] = results
    if isinstance(found, Exception):
        raise found
    return found


def prompt_parts(
    loaded: Loaded, messages: Messages, keywords: Mapping[str, Any]
) -> tuple[Prompt, list[int], list[Part]]:
    """Returns the prompt, its ids and its parts, as encode_chat would encode it with these
    arguments."""
    variables = dict(keywords)
    names = Options.__slots__
    named = {
        name: variables.pop(name) for name in names if name in keywords and name != "variables"
    }
    trusted = variables.pop("trusted", False)
    flags = encode.flags_of(trusted, variables.pop("user_defined", "parse"))
    options = Options(**named, variables=variables)
    prompt: Prompt = run(loaded, _listed(messages), options, chat.PROMPT, trusted, "parse")
    return prompt, *encode.ids_and_parts(loaded, prompt, trusted, flags)


def ids_and_mask(
    loaded: Loaded, messages: Messages, options: Options, *, trusted: bool, user_defined: str
) -> tuple[list[int], list[bool]]:
    """Returns the ids of a conversation, and for each id whether it is in a {% generation %}
    block."""
    flags = encode.flags_of(trusted, user_defined)
    request = _request(loaded, options)
    encode.check_generation(request.policy.source)
    conversation = _listed(messages)
    prompt = run(loaded, conversation, options, chat.PROMPT, trusted, user_defined)
    warn_of_media(len(media.parts_of(conversation, options.like)))
    return encode.ids_and_mask(loaded, prompt, trusted, flags)


def _ids_after(
    loaded: Loaded,
    conversation: list[Any],
    options: Options,
    trusted: bool,
    user_defined: str,
    known: object,
) -> tuple[list[int], list[media.Part]]:
    """Returns the ids, and the parts (images, audio, video) without ids in the messages after the
    known ones."""
    flags = encode.flags_of(trusted, user_defined)
    n, ids = encode.check_known(loaded, known, len(conversation))
    options.list_tools()
    now = options.now()  # both renderings must contain the same time

    def prompt(options: Options, conversation: list[Any]) -> Prompt:
        request = _request(loaded, options)
        tools = _tools(request, options)
        bits = 0 if conversation else chat.PREPARED  # with PREPARED, C renders even an empty list
        ends = request.known_ends
        found: Prompt = _one(
            request.run(loaded, [conversation], chat.PROMPT, tools, lambda: now, flags, bits, ends)
        )
        return found

    final = None if options.like == "transformers" else False
    closed = replace(options, add_generation_prompt=False, continue_final_message=final)
    beginning = prompt(closed, conversation[:n])
    whole = prompt(options, conversation)
    more = encode.after_known(loaded, ids, beginning, whole, trusted, flags)
    return [*ids, *more], media.parts_of(conversation[n:], options.like)


def encode_batch(
    loaded: Loaded,
    conversations: Iterable[Messages],
    options: Options,
    trusted: bool,
    user_defined: str,
    threads: int,
) -> list[list[int]]:
    """Returns the ids of each conversation."""
    threads = thread_count(threads)
    flags = encode.flags_of(trusted, user_defined)
    request = _request(loaded, options)
    tools = _tools(request, options)
    # Without UNTRACKED, the garbage collector would traverse all lists again and again.
    bits = chat.UNTRACKED | (chat.TRUSTED if trusted else 0)
    listed = values.sequence(conversations, "conversations", "conversations")
    uncounted: list[media.Part] = []

    def run(begin: int) -> list[list[int]]:
        some = listed[begin : begin + _PER_TASK]
        for i, messages in enumerate(some):
            if type(messages) is not list:
                with _numbered(begin + i):
                    some[i] = _listed(messages)
        results = request.run(
            loaded, some, chat.IDS, tools, options.now, flags, bits, uncounted=uncounted
        )
        for i, found in enumerate(results, begin):
            if isinstance(found, Exception):
                with _numbered(i):
                    raise found
        return results

    workers = min(threads or cpu_count() or 1, -(-len(listed) // _PER_TASK))
    runs: Iterable[list[list[int]]] = map(run, range(0, len(listed), _PER_TASK))
    if workers <= 1:
        ids = [found for each in runs for found in each]
    else:
        with ThreadPoolExecutor(workers) as pool:
            runs = pool.map(run, range(0, len(listed), _PER_TASK))
            ids = [found for each in runs for found in each]
    warn_of_media(len(uncounted))
    loaded.native.track(ids)
    return ids


def _listed(messages: Any) -> list[Any]:
    return values.sequence(messages, "messages", "mappings")


@contextmanager
def _numbered(index: int) -> Iterator[None]:
    """Adds the conversation's index to errors that the ``with`` block raises."""
    try:
        yield
    except GGTokError as e:
        if hasattr(e, "add_note"):  # from Python 3.11 on
            e.add_note(f"in conversations[{index}]")
        raise


# ---- the request ----


def _request(loaded: Loaded, options: Options) -> Request:
    file = loaded.memo.get("chat file")
    if file is None:
        file = loaded.memo["chat file"] = _file(loaded)
    options.list_tools()
    key = options.key()
    request = _normalized(file, options) if key is None else _cached(file, key)
    request = _unless_failed(request)
    if file.lacks_template and options.template is None:
        _warn_of_no_template(loaded)
    return request


def _tools(request: Request, options: Options) -> list[Any] | None:
    return None if options.tools is None else request.policy.read_tools(options.tools)


def server(loaded: Loaded, options: Options) -> LlamaServer:
    """Returns llama-server's policy, with the template that the options select."""
    policy = _request(loaded, Options(options.tools, template=options.template)).policy
    assert isinstance(policy, LlamaServer)
    return policy


@lru_cache(_REQUESTS)
def _cached(file: File, key: Key) -> Request | TemplateError:
    """Caches normalized requests by everything that they depend on.

    For each template, the cached request whose options only select that template also serves as a
    cache for the policy, which takes milliseconds to create. Errors are cached, too.
    """
    return _normalized(file, Options.of_key(key))


def _normalized(file: File, options: Options) -> Request | TemplateError:
    options.check()
    try:
        return _policy(file, options).request(options)
    except TemplateError as e:
        return e.with_traceback(None)


def _policy(file: File, options: Options) -> Policy:
    """Returns the policy for a request, from the cached request that only selects the template."""
    is_transformers = options.like == "transformers"
    has_tools = options.tools is not None if is_transformers else bool(options.tools)
    selects = has_tools and options.template is None and "tool_use" in dict(file.templates)
    like = "transformers" if is_transformers else "llama.cpp"
    base = Options([{}] if selects else None, like, template=options.template)
    if options == base:
        make = transformers.policy if is_transformers else _llama_server
        return make(file, options)
    return _unless_failed(_cached(file, base.key() or ())).policy


def _unless_failed(found: Request | TemplateError) -> Request:
    if isinstance(found, TemplateError):
        raise TemplateError(*found.args)
    return found


def _llama_server(file: File, options: Options) -> LlamaServer:
    templates, wanted = dict(file.templates), options.template
    if options.tools and templates["tool_use"]:
        default = _policy(file, replace(options, tools=None))
        assert isinstance(default, LlamaServer)
        with suppress(TemplateError):  # falls back to the default template, as the server does
            return LlamaServer(templates["tool_use"], file, default.thinks)
        return default
    source = templates.get("default", "")
    if wanted is not None:
        source = wanted if wanted == "chatml" else file.template(wanted)
    if source in ("", "chatml"):
        source = (wanted is None and templates.get("tool_use")) or llama.CHATML
    return LlamaServer(llama.patched(source), file)


def _file(loaded: Loaded) -> File:
    ids = {f"{name}_token": loaded.special(name) for name in _TOKENS}
    # As in llama.cpp, BOS and EOS are "" if there is no such token.
    texts = {"bos_token": "", "eos_token": ""}
    for name, id in ids.items():
        if id is not None:
            texts[name] = loaded.native.piece(id, 0, True).decode("utf-8", "replace")
    flags, templates = loaded.flags, loaded.chat_templates
    return File(
        templates=tuple(templates.items()),
        texts=tuple(texts.items()),
        ends=(
            texts["bos_token"] if flags["add_bos"] else "",
            texts["eos_token"] if flags["add_eos"] else "",
            "",
            "",
        ),
        lacks_template=not templates.get("default") and not templates.get("tool_use"),
    )


def _warn_of_no_template(loaded: Loaded) -> None:
    """Warns once per tokenizer that its file has no template."""
    if loaded.memo.get("warned of no template"):
        return
    name = "the file" if loaded.path is None else shown(loaded.path)
    _warn(
        f"{name} has no chat template: ChatML is used instead, as in llama-server, but that is "
        "not what the model was trained on; pass the model's template with template= (on the "
        "command line, --template)"
    )
    loaded.memo["warned of no template"] = True  # not reached if warnings are errors


def warn_of_media(n: int) -> None:
    """Warns that `n` parts aren't included, unless `n` is 0."""
    if n:
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
