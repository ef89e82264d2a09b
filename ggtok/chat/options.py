"""The keyword arguments of the chat calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ggtok.errors import InvalidTypeError

Clock = Callable[[], datetime]
Messages = Sequence[Mapping[str, Any]]


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
    variables: Mapping[str, Any] | None = None

    def now(self) -> datetime:
        now = (self.clock or datetime.now)()
        if not isinstance(now, datetime):
            raise InvalidTypeError(f"clock must return a datetime, not {type(now).__name__}")
        return now

    def given(self) -> dict[str, Any]:
        """The variables passed as keywords, without those that are None."""
        given = {**(self.variables or {}), "enable_thinking": self.enable_thinking}
        return {name: value for name, value in given.items() if value is not None}
