"""Plans: conversations to ids in one call of C.

A plan is made once from the options of a request (`for_server`, and `transformers.Renderer.plan`)
and used for all conversations. ``cext/python/chat.c`` then reads, renders and tokenizes
conversations whose messages are dicts of str, as nearly all are. Messages that it doesn't read are
prepared here. A conversation that needs more (a last message to continue, or a system message that
the template doesn't support) is rendered in Python, which defines the behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ggtok.chat import messages as _messages
from ggtok.chat import server
from ggtok.chat.prompt import ROLES
from ggtok.errors import GGTokError
from ggtok.native import jinja

if TYPE_CHECKING:
    from ggtok.chat.request import Request
    from ggtok.loading.loaded import Loaded

Json = dict[str, Any]
Ends = tuple[str, str, str, str]  # jinja_finish_options: bos, eos, turn, answer

# How messages are prepared and what is wanted: the bits of chat.c.
(
    TYPED,
    DEVELOPER,
    NO_SYSTEM,
    NO_REASON,
    PREFILL,
    GENERATION,
    RENDER_BOTH,
    COUNT,
    TEXT,
    TRUSTED,
    PREPARED,
) = (1 << i for i in range(11))
IDS = 0
_DATES = frozenset(server.dates(datetime(2000, 1, 1)))


@dataclass(slots=True)
class Plan:
    """A request without its messages and tools, as C takes it."""

    template: object  # the compiled template
    variables: Json
    shape: int  # bits from the list above
    ends: Ends
    text_ends: Ends  # the same if the result is text
    dates: frozenset[str]  # date variables that the template reads
    timed: bool  # whether the template may ask for the time itself
    # Prepares a message that C does not read; None: such conversations are rendered in Python.
    prepare: Callable[[Any, int], Json] | None

    def run(
        self,
        loaded: Loaded,
        conversations: Sequence[list[Any]],
        want: int,
        flags: int,
        tools: list[Json] | None,
        clock: Callable[[], datetime],
    ) -> list[Any]:
        """For each conversation: ids, their number or the text, as `want` says; an exception; or
        None if the conversation must be rendered in Python."""
        variables, time = self.variables, None
        if tools is not None:
            variables = {**variables, "tools": tools}
        if self.timed or self.dates:
            now = clock()
            if self.timed:
                time = jinja.fields_of(now)
            shown = server.dates(now)
            variables = {**variables, **{name: shown[name] for name in self.dates}}
        ends = self.text_ends if want & TEXT else self.ends
        shape = self.shape | want
        fields = self.template, variables, shape, flags, ends, ROLES
        results = loaded.native.chat(fields, conversations, time)
        for i, result in enumerate(results):
            if type(result) is tuple:
                results[i] = None
                prepared = self._prepared(conversations[i], result)
                if prepared is not None:
                    fields = self.template, variables, shape | PREPARED, flags, ends, ROLES
                    [retried] = loaded.native.chat(fields, [prepared], time)
                    results[i] = None if type(retried) is tuple else retried
        return results

    def _prepared(self, messages: Any, for_python: tuple[int, ...]) -> list[Any] | None:
        """The messages, those for Python prepared: each alone in a tuple, as C expects it."""
        if self.prepare is None or not for_python or (self.shape & NO_SYSTEM and 0 in for_python):
            return None
        prepared = list(messages)
        try:
            for i in for_python:
                prepared[i] = (self.prepare(prepared[i], i),)
        except (GGTokError, IndexError):  # rendering in Python raises the right error
            return None
        last = prepared[-1]
        continues = self.shape & PREFILL and type(last) is tuple and last[0]["role"] == "assistant"
        return None if continues else prepared


def for_server(
    chat: server.Chat, thinks: bool, request: Request, tokens: server.Tokens, prefill: bool
) -> Plan | None:
    """The plan for llama-server's prompts; None if all conversations are rendered in Python.

    `request` has neither messages nor tools.
    """
    handler, caps = chat.handler, chat.caps
    if request.continues or chat.trims or not {"messages", "tools"}.isdisjoint(request.variables):
        return None
    generation = request.add_generation_prompt
    changes, turn = False, ("", "")
    if handler is not None:
        if not handler.keeps_plain or (handler.finish is not None and not generation):
            return None
        changes = handler.messages is not None
        turn = handler.turn if generation else turn
    ends = (tokens.bos if tokens.add_bos else "", tokens.eos if tokens.add_eos else "", *turn)
    bits = {
        TYPED: caps.only_typed,
        DEVELOPER: _messages.renames_developers(chat.source),
        NO_SYSTEM: not caps.system_role,
        NO_REASON: changes,
        PREFILL: prefill,
        GENERATION: generation,
        RENDER_BOTH: chat.render_both,
    }

    def prepare(message: Any, index: int) -> Json:
        read = _messages.read_one(message, index)
        return _messages.known_role(_messages.write_one(read, caps, index), chat.source)

    # C reads the variables for each conversation, so pass only those that the template reads.
    # Variables of the caller are always passed: they may hide a function of the dialect.
    read = chat.template.variables
    passed = read | request.variables.keys()
    variables = chat.variables_for(request, tokens, datetime(2000, 1, 1), thinks)
    return Plan(
        template=chat.template.compiled,
        variables={name: value for name, value in variables.items() if name in passed},
        shape=sum(bit for bit, on in bits.items() if on),
        ends=ends,
        text_ends=ends,
        dates=(_DATES & read) - request.variables.keys(),
        timed="strftime_now" in chat.source,
        prepare=None if changes else prepare,
    )
