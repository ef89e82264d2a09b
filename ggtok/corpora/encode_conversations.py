"""Encodes batches of conversations, with the same result as ``encode_chat`` for each, and masks of
the assistant's text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok.base.concurrency import cached_property
from ggtok.chat import api
from ggtok.chat.options import Clock, check_clock, now_of
from ggtok.chat.prompt_ids import MaskError
from ggtok.corpora.documents import DocumentPiece
from ggtok.corpora.encode_documents import Encoded
from ggtok.corpora.summary import RunCounts
from ggtok.errors import (
    ArgumentError,
    InvalidTypeError,
    InvalidValueError,
    TemplateError,
)
from ggtok.native import chat_calls
from ggtok.native.arguments import truth

if TYPE_CHECKING:
    from ggtok.chat.prompt import Prompt
    from ggtok.loading.loaded import Loaded

# What a conversation can cause; other errors end the run.
_FAULTS = (InvalidTypeError, InvalidValueError, TemplateError)
# Arguments of encode_chat, and a variable, that make no sense for files of finished conversations.
_OTHERS = (
    *("known", "return_assistant_mask", "add_generation_prompt", "continue_final_message"),
    "messages",
)
# Vocabulary types whose tokens don't spell most texts; those of other types spell all but a few.
_NORMALIZING = ("UGM", "WPM")
_PROBE = [{"role": "user", "content": "x"}]


class ChatEncoder:
    """Encodes conversations with one set of options.

    Args:
        loaded: the vocabulary.
        given: True, or keyword arguments of ``encode_chat``. ``mask``: whether to find the
            assistant's ids (default: True).
    """

    flags = 0  # for documents that are texts
    sampling = None

    def __init__(self, loaded: Loaded, given: object) -> None:
        self._keywords, clock = _keywords_and_clock(given)
        self.has_mask = self._keywords.get("mask", True)
        self.time = now_of(clock or datetime.now)
        self._keeps_time = clock is not None
        closed = {"add_generation_prompt": False}
        if self._keywords.get("like") != "transformers":
            closed["continue_final_message"] = False
        keywords = {**self._keywords, **closed, "clock": self._now}
        keywords.pop("mask", None)
        options, self._trusted, flags = api.options_of(keywords)
        self._normalizes = loaded.vocab_type in _NORMALIZING
        self._call = api.ChatCall(
            loaded, options, flags, chat_calls.TRUSTED if self._trusted else 0
        )
        self._check_options()

    def _check_options(self) -> None:
        """Raises the error of an option, which each conversation would have."""
        [result], _ = self._call.run([_PROBE], chat_calls.COUNT, chat_calls.ALLOW_EMPTY)
        self._call.silent.clear()
        if isinstance(result, ArgumentError) and not (result.key or "").startswith("messages"):
            raise result

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

    def encode(self, pieces: Sequence[DocumentPiece], threads: int = 1, first: int = 0) -> Encoded:
        """Encodes a batch."""
        ids: list[int] = []
        mask: list[bool] = []
        ends: list[int] = []
        before: list[int] = []
        faults = RunCounts()
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
            mask=np.array(mask, np.uint8) if self.has_mask else None,
            faults=faults,
            n_media=n_media,
        )

    def _results(self, documents: Sequence[bytes]) -> tuple[list[Any], int]:
        """Returns the ids and the mask of each conversation, or a fault; and the number of images,
        audio and video. A document that the reader has emptied has no ids."""
        want = chat_calls.PROMPT if self.has_mask else chat_calls.IDS
        found, n_media = self._call.run(list(filter(None, documents)), want)
        each = iter(found)
        results: list[Any] = []
        for document in documents:
            if not document:
                results.append(([], []))
                continue
            result = _raised_if_general(next(each))
            if not isinstance(result, Exception):
                result = self._masked(result, document) if self.has_mask else (result, [])
            results.append(result)
        return results, n_media

    def _masked(self, prompt: Prompt, document: bytes) -> tuple[list[int], list[bool]] | Exception:
        """Returns the ids and the mask of a prompt, or a fault of its conversation."""
        try:
            return self._masker.ids_and_mask(prompt, document)
        except MaskError as e:
            what = str(e).replace("return_assistant_mask", "no mask of the assistant's tokens")
            error = InvalidValueError(f"{what}; pass mask=False in chat (--no-mask) to write none")
            if self._normalizes:
                raise error from None
            return error
        except _FAULTS as e:
            return e

    def warn(self, n_media: int) -> None:
        """Warns of prompts without text of messages, and of `n_media` images, audio and video."""
        self._call.warn_of_silence()
        self._call.silent.clear()
        if n_media:
            api.warn_of_media(n_media)

    def counts(self, documents: Sequence[bytes]) -> tuple[list[int | Exception], int]:
        """Returns the number of ids of each conversation, or a fault; and the number of images,
        audio and video."""
        results, n_media = self._call.run(list(documents), chat_calls.COUNT)
        return list(map(_raised_if_general, results)), n_media


def _raised_if_general(result: Any) -> Any:
    """Returns a result or a conversation's fault; raises any other exception."""
    if isinstance(result, Exception) and not isinstance(result, _FAULTS):
        raise result
    return result


def _keywords_and_clock(given: object) -> tuple[dict[str, Any], Clock | None]:
    """Returns the arguments as they are in a plan, and the clock."""
    if given is True:
        return {}, None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidTypeError(
            f"chat must be True or a dict of encode_chat's arguments, not {type(given).__name__}"
        )
    keywords = dict(given)
    clock = keywords.pop("clock", None)
    if clock is not None:
        check_clock(clock)
    variables = keywords.get("chat_template_kwargs")
    for name in _OTHERS:
        if name in keywords or (
            name == "messages" and name in (chat_calls.mapping(variables) or ())
        ):
            raise InvalidValueError(f"chat: {name} can't be set: conversations in files are whole")
    try:
        plan: dict[str, Any] = json.loads(json.dumps(keywords))
    except (TypeError, ValueError, RecursionError) as e:
        raise InvalidTypeError(f"chat: the arguments must be JSON values: {e}") from None
    if truth(plan.get("mask", True), "chat: mask"):
        plan.pop("mask", None)
    return plan, clock
