"""Compiled chat templates, with all that C knows about them, and their cache."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ggtok.chat import values
from ggtok.chat.options import Clock, time_of
from ggtok.native.chat_calls import LIKES, FailedError, error_of, is_memory_error

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded

_MOST_BYTES = 64 << 20  # of all cached templates
_TOKENS = ("bos", "eos", "unk", "sep", "pad", "mask")  # tokens whose texts templates can read


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What llama-server knows about a template.

    Attributes:
        caps: what it supports, named as in ``chat_template_caps`` of /props without ``supports_``.
        family: the name of the family whose rules apply to it, or None.
        thinks: the default of enable_thinking.
        reasoning_tags: the texts before and after reasoning; "" for none.
        source: the template, with the lexer's line breaks.
    """

    caps: dict[str, bool]
    family: str | None
    thinks: bool
    reasoning_tags: tuple[str, str]
    source: str


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
    """A compiled template; immutable.

    Attributes:
        compiled: the C object.
        size: its memory, in bytes.
        reads_time: whether prompts may depend on the time.
        variables: the names of variables that affect prompts, without and with tools.
        facts: likewise; None if the template for such requests can't be used.
    """

    compiled: object
    size: int
    reads_time: bool
    variables: tuple[frozenset[str], frozenset[str]]
    facts: tuple[TemplateFacts | None, TemplateFacts | None]

    def facts_for(self, *, has_tools: bool) -> TemplateFacts:
        facts = self.facts[has_tools] or self.facts[not has_tools]
        assert facts is not None  # a chat has at least one usable template
        return facts


class _TemplateInputs:
    """What a compiled template depends on besides the caller's choice. Equal files share one."""

    __slots__ = ("__weakref__",)


_files: WeakValueDictionary[tuple[Any, ...], _TemplateInputs] = WeakValueDictionary()


def _file_of(loaded: Loaded) -> _TemplateInputs:
    texts = [
        None if (id := loaded.special(name)) is None else loaded.piece(id, 0, True)
        for name in _TOKENS
    ]
    adds = loaded.flags["add_bos"], loaded.flags["add_eos"]
    return _files.setdefault(
        (tuple(loaded.chat_templates.items()), tuple(texts), adds), _TemplateInputs()
    )


# Least recently used first. A failure is cached, too, since finding it may use up a budget.
_chats: OrderedDict[tuple[_TemplateInputs, str, str | None], CompiledTemplate | FailedError] = (
    OrderedDict()
)
_FAILURE = 4096  # bytes of a cached failure
_lock = threading.Lock()  # for changes of the set of chats
_unless_removed = suppress(KeyError)  # by another thread
_n_bytes = 0


def _renew_lock() -> None:
    """In a new child process, another thread of the parent may have held the lock."""
    global _lock, _n_bytes
    _lock = threading.Lock()
    _n_bytes = sum(map(_size, _chats.keys(), _chats.values()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def chat_of(
    loaded: Loaded, like: str, template: str | None, clock: Clock | None, keep: bool = True
) -> CompiledTemplate:
    """Returns the compiled template that `like` and `template` select.

    With `keep`, it is cached for all tokenizers with the same templates and special tokens.
    """
    file: _TemplateInputs | None = loaded.memo.get("chat file")
    if file is None:
        file = loaded.memo["chat file"] = _file_of(loaded)
    key = file, like, template
    found = _chats.get(key)
    if found is not None:
        with _unless_removed:
            _chats.move_to_end(key)
    else:
        sources = loaded.chat_templates.values() if template is None else (template,)
        is_timed = any(name in source for source in sources for name in ("strftime_now", "date"))
        # The clock is called only if it matters.
        found = _compile(loaded, like, template, clock if is_timed else None)
        passes = isinstance(found, FailedError) and (is_timed or is_memory_error(found))
        if keep and not passes:
            _add(key, found)
    if isinstance(found, FailedError):
        raise error_of(found)
    return found


def _size(
    key: tuple[_TemplateInputs, str, str | None], chat: CompiledTemplate | FailedError
) -> int:
    return chat.size if isinstance(chat, CompiledTemplate) else _FAILURE + 4 * len(key[2] or "")


def _add(
    key: tuple[_TemplateInputs, str, str | None], chat: CompiledTemplate | FailedError
) -> None:
    global _n_bytes
    if _size(key, chat) > _MOST_BYTES:
        return
    with _lock:
        if key in _chats:
            _n_bytes -= _size(key, _chats.pop(key))
        _chats[key] = chat
        _n_bytes += _size(key, chat)
        while _n_bytes > _MOST_BYTES:
            _n_bytes -= _size(*_chats.popitem(last=False))


def _compile(
    loaded: Loaded, like: str, template: str | None, clock: Clock | None
) -> CompiledTemplate | FailedError:
    if template is not None:
        values.exact_text(template, "template")  # raises an error for surrogates
    made: Any = loaded.chat_compile(LIKES[like], template, time_of(clock, like))
    if isinstance(made, FailedError):
        return made
    compiled, size, reads_time, *more = made
    plain, with_tools = map(frozenset, more[:2])
    facts = [None if each is None else TemplateFacts(**each) for each in more[2:]]
    return CompiledTemplate(compiled, size, reads_time, (plain, with_tools), (facts[0], facts[1]))
