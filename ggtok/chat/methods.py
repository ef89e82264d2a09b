"""The chat calls of :class:`ggtok.Tokenizer`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from ggtok import _types as types
from ggtok.errors import InvalidValueError
from ggtok.native.arguments import truth
from ggtok.text.decoding import Decoding

TYPE_CHECKING = False  # as in _native/library.py
if TYPE_CHECKING:
    from typing import Literal, overload


class _Served(int):
    """True as a default that can be told from a True that somebody gave: `like` decides."""

    def __repr__(self) -> str:
        return "True"


_AS_SERVED: bool = _Served(1)  # type: ignore[assignment]


@cache
def _modules() -> tuple[types.Any, types.Any]:
    """What the chat calls need, imported with the first."""
    from ggtok.chat import api, options

    return api, options


class Chatting(Decoding):
    """The part of :class:`ggtok.Tokenizer` that turns chat messages into text and ids."""

    def apply_chat_template(
        self,
        messages: types.Messages,
        *,
        tools: Sequence[Mapping[str, types.Any]] | None = None,
        like: types.Like = "llama.cpp",
        add_generation_prompt: bool | None = _AS_SERVED,
        continue_final_message: bool | str | None = None,
        template: str | None = None,
        enable_thinking: bool | None = None,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Mapping[str, types.Any] | None = None,
        reasoning_format: str | None = None,
        reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, types.Any] | None = None,
        clock: Callable[[], types.datetime] | None = None,
        **variables: types.Any,
    ) -> str:
        """Chat messages as the text that a model is prompted with.

        By default that is the text which llama.cpp's ``llama-server`` (build b11549) makes of
        a request with these fields, its ``/apply-template``; with ``like="transformers"`` that
        of ``transformers``' method of this name. To get ids, use :meth:`encode_chat`: it keeps
        control tokens that a message holds from being parsed.

        None stands for a field that the request doesn't have.

        Args:
            messages: mappings with ``"role"``, ``"content"`` (str, None or a list of parts
                ``{"type": "text", "text": ...}``), ``"tool_calls"``, ``"reasoning_content"``
                and so on, of plain data: str, numbers, bool, None, lists and mappings. An
                object with ``model_dump()``, as pydantic's models have, is what that gives,
                without the fields that are None (but for the content).
            tools: JSON schemas of the functions that the model may call. Python functions
                aren't taken; ``transformers.utils.get_json_schema`` makes a schema of one.
            like: whose text.
            add_generation_prompt: end with the beginning of the assistant's next message. True
                by default, as in llama-server, but under ``like="transformers"`` False, as there.
            continue_final_message: end inside the last message instead, for the model to go
                on with it: in its content, or where a str says (``"content"``,
                ``"reasoning_content"``). Requires ``add_generation_prompt=False``. By default
                llama-server goes on with a last message that is the assistant's; False closes
                it, as the server does with ``--no-prefill-assistant``.
            template: the name of one of :attr:`chat_templates`, or a template. By default it is
                ``"tool_use"`` if there are tools and such a template, else ``"default"``;
                a file without any is served with ChatML, with a warning.
            enable_thinking: a variable of many templates; llama-server's default is whether it
                finds that the template has reasoning.
            tool_choice: ``"auto"``, ``"none"`` or ``"required"``. This one and the next change no
                prompt; they are checked.
            parallel_tool_calls: whether several calls at once are allowed.
            response_format: as in OpenAI's API; a few templates show the schema.
            reasoning_format: checked, and without influence on the prompt.
            reasoning_effort: for templates that know efforts; ``"none"`` turns thinking off.
            chat_template_kwargs: more variables for the template, by any name.
            clock: what tells the local time to templates that ask for it; ``datetime.now`` by
                default.
            **variables: more variables for the template (``documents``, ...), by names that it
                reads. ``bos_token`` and its like come from the vocabulary.

        Raises:
            TemplateError: the template can't be compiled, refuses the messages, fails, or
                exceeds its budget of time or memory; or llama-server doesn't start with it.
            InvalidValueError, InvalidTypeError: the request is one that llama-server refuses;
                an argument makes no sense; there is no such template; a keyword is none of
                these, and the template doesn't read it.

        Warns:
            VocabWarning: the file has no chat template, so ChatML takes its place, on which the
                model was not trained. Once for each tokenizer.

        Any number of threads may call this at a time.
        """
        api, options = _modules()
        given = options.Options(
            tools,
            like,
            None if add_generation_prompt is _AS_SERVED else add_generation_prompt,
            continue_final_message,
            template,
            clock,
            enable_thinking,
            tool_choice,
            parallel_tool_calls,
            response_format,
            reasoning_format,
            reasoning_effort,
            chat_template_kwargs,
            variables,
        )
        text: str = api.text(self, messages, given)
        return text

    if TYPE_CHECKING:

        @overload
        def encode_chat(
            self,
            messages: types.Messages,
            *,
            tools: Sequence[Mapping[str, types.Any]] | None = ...,
            like: types.Like = ...,
            add_generation_prompt: bool | None = ...,
            continue_final_message: bool | str | None = ...,
            template: str | None = ...,
            enable_thinking: bool | None = ...,
            tool_choice: str | None = ...,
            parallel_tool_calls: bool | None = ...,
            response_format: Mapping[str, types.Any] | None = ...,
            reasoning_format: str | None = ...,
            reasoning_effort: str | None = ...,
            chat_template_kwargs: Mapping[str, types.Any] | None = ...,
            clock: Callable[[], types.datetime] | None = ...,
            trusted: bool = ...,
            user_defined: types.UserDefined = ...,
            return_assistant_mask: Literal[False] = ...,
            known: types.Known | None = ...,
            **variables: types.Any,
        ) -> list[int]: ...
        @overload
        def encode_chat(
            self,
            messages: types.Messages,
            *,
            tools: Sequence[Mapping[str, types.Any]] | None = ...,
            like: types.Like = ...,
            add_generation_prompt: bool | None = ...,
            continue_final_message: bool | str | None = ...,
            template: str | None = ...,
            enable_thinking: bool | None = ...,
            tool_choice: str | None = ...,
            parallel_tool_calls: bool | None = ...,
            response_format: Mapping[str, types.Any] | None = ...,
            reasoning_format: str | None = ...,
            reasoning_effort: str | None = ...,
            chat_template_kwargs: Mapping[str, types.Any] | None = ...,
            clock: Callable[[], types.datetime] | None = ...,
            trusted: bool = ...,
            user_defined: types.UserDefined = ...,
            return_assistant_mask: Literal[True],
            **variables: types.Any,
        ) -> tuple[list[int], list[bool]]: ...
        @overload
        def encode_chat(
            self,
            messages: types.Messages,
            *,
            tools: Sequence[Mapping[str, types.Any]] | None = ...,
            like: types.Like = ...,
            add_generation_prompt: bool | None = ...,
            continue_final_message: bool | str | None = ...,
            template: str | None = ...,
            enable_thinking: bool | None = ...,
            tool_choice: str | None = ...,
            parallel_tool_calls: bool | None = ...,
            response_format: Mapping[str, types.Any] | None = ...,
            reasoning_format: str | None = ...,
            reasoning_effort: str | None = ...,
            chat_template_kwargs: Mapping[str, types.Any] | None = ...,
            clock: Callable[[], types.datetime] | None = ...,
            trusted: bool = ...,
            user_defined: types.UserDefined = ...,
            return_assistant_mask: bool,
            **variables: types.Any,
        ) -> list[int] | tuple[list[int], list[bool]]: ...

    def encode_chat(
        self,
        messages: types.Messages,
        *,
        tools: Sequence[Mapping[str, types.Any]] | None = None,
        like: types.Like = "llama.cpp",
        add_generation_prompt: bool | None = _AS_SERVED,
        continue_final_message: bool | str | None = None,
        template: str | None = None,
        enable_thinking: bool | None = None,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Mapping[str, types.Any] | None = None,
        reasoning_format: str | None = None,
        reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, types.Any] | None = None,
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        return_assistant_mask: bool = False,
        known: types.Known | None = None,
        **variables: types.Any,
    ) -> list[int] | tuple[list[int], list[bool]]:
        """The ids of chat messages, as llama.cpp's server would tokenize their prompt.

        Control tokens are parsed where the template wrote them, and nowhere else: a message,
        a tool or a variable that holds ``<|im_end|>`` gives that text's plain tokens. Without
        such texts the ids are the server's. BOS and EOS are added as the vocabulary's flags
        ask for; the template's own is then dropped.

        Args:
            trusted: parse control tokens everywhere, in messages, too: always the server's ids.
            user_defined: ``"plain"``: user-defined tokens (``<tool_call>``) aren't parsed
                outside the template's text either, which llama.cpp does.
            return_assistant_mask: give ``(ids, mask)``; the mask has a bool for each id: does
                a byte of it lie inside the template's ``{% generation %}`` blocks? Where such
                a block begins within raw text, the tokens there must spell that text: WPM and
                UGM tokens may not, an InvalidValueError. A last message of the assistant's is
                closed unless ``continue_final_message`` says otherwise.

            known: ``(n, ids)``: the first n messages have these ids already, such as a prompt's
                and those that a model generated: they stay, whatever their text would encode
                to. After them comes the control token that closes the n-th message, if they
                don't end with it, and what the template writes behind it, encoded as a
                continuation (see :meth:`encode`). The template must write the first n messages
                alike with and without those after them.

        The other arguments and errors are those of :meth:`apply_chat_template`, and also

        Raises:
            TemplateError: ``known``, but the template writes the first messages otherwise once
                others follow: the message shows both. (Qwen3's drops earlier reasoning.)
            InvalidValueError: a message holds a control token's text and the vocabulary (RWKV,
                PLaMo-2, PLaMo-3) makes that token of plain text.
            TextEncodeError, VocabError: as for :meth:`encode`.

        Any number of threads may call this at a time.
        """
        api, options = _modules()
        if truth(return_assistant_mask, "return_assistant_mask") and continue_final_message is None:
            continue_final_message = False
        given = options.Options(
            tools,
            like,
            None if add_generation_prompt is _AS_SERVED else add_generation_prompt,
            continue_final_message,
            template,
            clock,
            enable_thinking,
            tool_choice,
            parallel_tool_calls,
            response_format,
            reasoning_format,
            reasoning_effort,
            chat_template_kwargs,
            variables,
        )
        if return_assistant_mask:
            if known is not None:
                raise InvalidValueError("known= and return_assistant_mask= don't go together")
            return api.ids_and_mask(  # type: ignore[no-any-return]
                self, messages, given, trusted=trusted, user_defined=user_defined
            )
        if known is not None:
            return api.ids_after(  # type: ignore[no-any-return]
                self, messages, given, trusted, user_defined, known
            )
        return api.ids(self, messages, given, trusted, user_defined)  # type: ignore[no-any-return]

    def count_chat(
        self,
        messages: types.Messages,
        *,
        tools: Sequence[Mapping[str, types.Any]] | None = None,
        like: types.Like = "llama.cpp",
        add_generation_prompt: bool | None = _AS_SERVED,
        continue_final_message: bool | str | None = None,
        template: str | None = None,
        enable_thinking: bool | None = None,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Mapping[str, types.Any] | None = None,
        reasoning_format: str | None = None,
        reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, types.Any] | None = None,
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        known: types.Known | None = None,
        **variables: types.Any,
    ) -> int:
        """How many ids :meth:`encode_chat` gives; llama-server's
        ``/v1/chat/completions/input_tokens``."""
        api, options = _modules()
        given = options.Options(
            tools,
            like,
            None if add_generation_prompt is _AS_SERVED else add_generation_prompt,
            continue_final_message,
            template,
            clock,
            enable_thinking,
            tool_choice,
            parallel_tool_calls,
            response_format,
            reasoning_format,
            reasoning_effort,
            chat_template_kwargs,
            variables,
        )
        if known is not None:
            return len(api.ids_after(self, messages, given, trusted, user_defined, known))
        return api.count(  # type: ignore[no-any-return]
            self, messages, given, trusted, user_defined
        )

    def encode_chat_batch(
        self,
        conversations: Iterable[types.Messages],
        *,
        tools: Sequence[Mapping[str, types.Any]] | None = None,
        like: types.Like = "llama.cpp",
        add_generation_prompt: bool | None = _AS_SERVED,
        continue_final_message: bool | str | None = None,
        template: str | None = None,
        enable_thinking: bool | None = None,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Mapping[str, types.Any] | None = None,
        reasoning_format: str | None = None,
        reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, types.Any] | None = None,
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        threads: int = 0,
        **variables: types.Any,
    ) -> list[list[int]]:
        """:meth:`encode_chat` for each of many conversations.

        Args:
            threads: how many to use; 0 for one a processor.

        An error is that of the first conversation that has one, and its note says which.
        """
        api, options = _modules()
        given = options.Options(
            tools,
            like,
            None if add_generation_prompt is _AS_SERVED else add_generation_prompt,
            continue_final_message,
            template,
            clock,
            enable_thinking,
            tool_choice,
            parallel_tool_calls,
            response_format,
            reasoning_format,
            reasoning_effort,
            chat_template_kwargs,
            variables,
        )
        return api.encode_batch(  # type: ignore[no-any-return]
            self, conversations, given, trusted, user_defined, threads
        )
