"""Encodes many conversations, on several threads."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from os import cpu_count
from typing import TYPE_CHECKING, Any

from ggtok.chat import prompt_ids, values
from ggtok.chat.api import ChatCall, as_list, warn_of_media
from ggtok.chat.options import ChatOptions
from ggtok.errors import GGTokError
from ggtok.native import chat_calls
from ggtok.native.arguments import thread_count

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded

_PER_CALL = 64  # maximum number of conversations in one call of C
# The bytes of JSON lines that a thread encodes as one task.
_MIN_BYTES = 1 << 12
_MAX_BYTES = 1 << 17


def encode_batch(
    loaded: Loaded,
    conversations: Iterable[Any] | bytes,
    options: ChatOptions,
    trusted: bool,
    user_defined: str,
    threads: int,
) -> list[list[int]]:
    """Returns the ids of each conversation."""
    threads = thread_count(threads)
    flags = prompt_ids.flags_of(trusted, user_defined)
    # Without UNTRACKED, the garbage collector would traverse all lists again and again.
    call = ChatCall(
        loaded, options, flags, chat_calls.UNTRACKED | (chat_calls.TRUSTED if trusted else 0)
    )
    given: bytes | list[Any] = (
        conversations
        if isinstance(conversations, bytes)
        else values.sequence(conversations, "conversations", "conversations")
    )

    def encode_task(task: tuple[int, int]) -> _Done:
        begin, end = task
        some: list[Any] = given[begin:end] if isinstance(given, list) else _lines(given[begin:end])
        done = _Done()
        for at in range(0, len(some), _PER_CALL):
            part = some[at : at + _PER_CALL]
            for i, messages in enumerate(part):
                if type(messages) not in (list, bytes):
                    try:
                        part[i] = as_list(messages)
                    except GGTokError as e:
                        return _Done(error=e, index=at + i)
            results, n_media = call.run(part, chat_calls.IDS)
            for i, found in enumerate(results):
                if isinstance(found, Exception):
                    return _Done(error=found, index=at + i)
            done.ids += results
            done.n_media += n_media
        return done

    workers = threads or cpu_count() or 1
    ids: list[list[int]] = []
    n_media = 0
    with closing(_in_order(encode_task, _tasks(given, workers), workers)) as results:
        for done in results:
            if done.error:
                if hasattr(done.error, "add_note"):  # from Python 3.11 on
                    done.error.add_note(f"in conversations[{len(ids) + done.index}]")
                raise done.error
            ids += done.ids
            n_media += done.n_media
    call.warn_of_silence()
    if n_media:
        warn_of_media(n_media)
    loaded.track(ids)
    return ids


@dataclass
class _Done:
    """The result of a task: ids, or the first error."""

    ids: list[list[int]] = field(default_factory=list)
    n_media: int = 0
    error: Exception | None = None
    index: int = 0  # of the conversation with the error, among those of the task


def _tasks(given: bytes | list[Any], workers: int) -> list[tuple[int, int]]:
    """Divides a list into ranges of indices, or JSON lines into ranges of bytes."""
    if isinstance(given, list):
        return [(i, i + _PER_CALL) for i in range(0, len(given), _PER_CALL)]
    size = max(_MIN_BYTES, min(_MAX_BYTES, len(given) // (4 * workers)))
    newline = b"\n" if b"\n" in given else b"\r"
    tasks = []
    begin = 0
    while begin < len(given):
        end = given.find(newline, begin + size) + 1 or len(given)
        tasks.append((begin, end))
        begin = end
    return tasks


def _in_order(
    encode_task: Callable[[tuple[int, int]], _Done], tasks: list[tuple[int, int]], workers: int
) -> Generator[_Done, None, None]:
    workers = min(workers, len(tasks))
    if workers <= 1:
        yield from map(encode_task, tasks)
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(encode_task, tasks)


def _lines(text: bytes) -> list[bytes]:
    """Returns the lines that aren't blank."""
    # Splitting at one character is faster.
    lines = text.splitlines() if b"\r" in text else text.split(b"\n")
    return [line for line in lines if line and not line.isspace()]
