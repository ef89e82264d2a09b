"""Encodes batches of conversations, with the same result as ``encode_chat`` for each, and masks of
the assistant's text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok.base.concurrency import cached_property
from ggtok.chat import api
from ggtok.corpora.documents import Piece
from ggtok.corpora.encode import Encoded
from ggtok.corpora.summary import Counts
from ggtok.errors import (
    InvalidTypeError,
    InvalidValueError,
    TemplateError,
)
from ggtok.native import chat

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded

# What a conversation can cause; other errors end the run.
_FAULTS = (InvalidTypeError, InvalidValueError, TemplateError)
# Arguments of encode_chat that make no sense for files of finished conversations.
_OTHERS = ("known", "return_assistant_mask", "add_generation_prompt", "continue_final_message")


class ChatEncoder:
    """Encodes conversations with one set of options.

    Args:
        loaded: the vocabulary.
        given: True, or keyword arguments of ``encode_chat``.
    """

    flags = 0  # for documents that are texts
    sampling = None

    def __init__(self, loaded: Loaded, given: object) -> None:
        self._keywords = _checked(given)
        clock: Callable[[], datetime] | None = self._keywords.pop("clock", None)
        self.time = (clock or datetime.now)()
        self._keeps_time = clock is not None
        closed = {"add_generation_prompt": False}
        if self._keywords.get("like") != "transformers":
            closed["continue_final_message"] = False
        keywords = {**self._keywords, **closed, "clock": self._now}
        options, self._trusted, flags = api.options_of(keywords)
        self._call = api.Call(loaded, options, flags, chat.TRUSTED if self._trusted else 0)

    def _now(self) -> datetime:
        return self.time

    @property
    def plan(self) -> dict[str, Any]:
        """Everything that the ids depend on, besides the vocabulary and the conversations."""
        time = self.time.isoformat() if self._call.chat.reads_time else None
        return {**self._keywords, "time": time}

    def adopt_time(self, before: object) -> None:
        """Uses the time of an earlier run's plan, unless the caller has set a clock."""
        time = before.get("time") if isinstance(before, dict) else None
        if not self._keeps_time and isinstance(time, str) and self._call.chat.reads_time:
            try:
                self.time = datetime.fromisoformat(time)
            except ValueError:  # a forged plan, which differs from this one
                return

    @cached_property
    def _masker(self) -> api.Masker:
        return api.Masker(self._call, self._trusted)

    def encode(self, pieces: Sequence[Piece], threads: int = 1, first: int = 0) -> Encoded:
        """Encodes a batch."""
        ids: list[int] = []
        mask: list[bool] = []
        ends: list[int] = []
        before: list[int] = []
        faults = Counts()
        n_media = 0
        for piece in pieces:
            before.append(len(ends))
            documents: Sequence[bytes] = list(piece.many) or [piece.text or b""]
            results, n = self._results(documents)
            n_media += n
            for i, result in enumerate(results):
                if isinstance(result, Exception):
                    assert piece.located is not None  # the reader of conversations sets it
                    found = piece.located.found(i, str(result))
                    faults.add(found)
                    if found.skipped:
                        continue
                    result = [], []
                ids += result[0]
                mask += result[1]
                ends.append(len(ids))
        before.append(len(ends))
        return Encoded(
            np.array(ids, np.int32),
            np.array(ends, np.int64),
            before,
            mask=np.array(mask, np.uint8),
            faults=faults,
            n_media=n_media,
        )

    def _results(self, documents: Sequence[bytes]) -> tuple[list[Any], int]:
        """Returns the ids and the mask of each conversation, or a fault; and the number of images,
        audio and video. A document that the reader has emptied has no ids."""
        prompts, n_media = self._call.run(list(filter(None, documents)), chat.PROMPT)
        each = iter(prompts)
        results: list[Any] = []
        for document in documents:
            if not document:
                results.append(([], []))
                continue
            found = next(each)
            if not isinstance(found, Exception):
                try:
                    found = self._masker.ids_and_mask(found, document)
                except _FAULTS as e:
                    found = e
            results.append(_raised_if_general(found))
        return results, n_media

    def warn(self, n_media: int) -> None:
        """Warns of prompts without text of messages, and of `n_media` images, audio and video."""
        self._call.warn_of_silence()
        if n_media:
            api.warn_of_media(n_media)

    def counts(self, documents: Sequence[bytes]) -> tuple[list[int | Exception], int]:
        """Returns the number of ids of each conversation, or a fault; and the number of images,
        audio and video."""
        results, n_media = self._call.run(list(documents), chat.COUNT)
        return list(map(_raised_if_general, results)), n_media


def _raised_if_general(result: Any) -> Any:
    """Returns a result or a conversation's fault; raises any other exception."""
    if isinstance(result, Exception) and not isinstance(result, _FAULTS):
        raise result
    return result


def _checked(given: object) -> dict[str, Any]:
    if given is True:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidTypeError(
            f"chat must be True or a dict of encode_chat's arguments, not {type(given).__name__}"
        )
    keywords = dict(given)
    for name in _OTHERS:
        if name in keywords:
            raise InvalidValueError(f"chat: {name} can't be set: conversations in files are whole")
    try:
        json.dumps({name: value for name, value in keywords.items() if name != "clock"})
    except (TypeError, ValueError) as e:
        raise InvalidTypeError(f"chat: the arguments must be JSON values: {e}") from None
    return keywords
