"""Each part of a prompt has its origin: the template, a field of a message, or unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ggtok
from ggtok import Tokenizer, load
from ggtok.chat.prompt import Prompt
from tests.chat import answers
from tests.chat.calls import as_json, prompt
from tests.chat.made import TEMPLATES
from tests.chat.requests import IMAGE, says, text, user
from tests.support.vocabularies import fixture

LIKES = ("llama.cpp", "transformers")
FIRST = 0x4E00  # a letter that no template contains


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(fixture("bpe-qwen2"))


def parts_of(found: Prompt) -> list[tuple[str, int | None, str | bool | None]]:
    """Returns each part's text, message and field. Checks that there are no gaps, and that the
    template's parts are the prompt's ranges."""
    data, at, own = found.text.encode(), 0, [False] * len(found.text.encode())
    parts: list[tuple[str, int | None, str | bool | None]] = []
    for end, message, field in found.origins:
        assert at < end
        shown = data[at:end].decode()
        if parts and parts[-1][1:] == (message, field):
            parts[-1] = (parts[-1][0] + shown, message, field)
        else:
            parts.append((shown, message, field))
        own[at:end] = [field is True] * (end - at)
        at = end
    assert at == len(data)
    in_ranges = [False] * len(data)
    for begin, end in found.ranges:
        in_ranges[begin:end] = [True] * (end - begin)
    assert own == in_ranges
    return parts


class Letters:
    """Texts of letters that no other text contains."""

    def __init__(self) -> None:
        self.where: dict[str, tuple[int, str]] = {}

    def new(self, message: int, field: str) -> str:
        letters = "".join(chr(FIRST + len(self.where) + i) for i in range(8))
        self.where |= dict.fromkeys(letters, (message, field))
        return letters


def conversation(letters: Letters, last: str) -> list[dict[str, Any]]:
    def call(i: int) -> dict[str, Any]:
        arguments = {letters.new(i, "tool_calls"): letters.new(i, "tool_calls")}
        function = {"name": letters.new(i, "tool_calls"), "arguments": arguments}
        return {"id": "abcdefgh1", "type": "function", "function": function}

    def said(i: int) -> str:
        return letters.new(i, "content")

    def thought(i: int) -> dict[str, str]:
        return {"reasoning_content": letters.new(i, "reasoning_content")}

    messages = [
        says("system", said(0)),
        user([text(said(1)), text(said(1))]),
        says("assistant", said(2), tool_calls=[call(2)], **thought(2)),
        says("tool", said(3), tool_call_id="abcdefgh1", name=letters.new(3, "name")),
        says("assistant", said(4), **thought(4)),
        user(said(5)),
    ]
    if last == "answer":
        messages.append(says("assistant", said(6), **thought(6)))
    return messages


@pytest.mark.parametrize("last", ["question", "answer"])
@pytest.mark.parametrize("like", LIKES)
def test_origins_are_right_in_every_template(tok: Tokenizer, like: str, last: str) -> None:
    """A part from a field of a message has only characters of that field, or of its JSON; a part of
    the template has none of any message's."""
    letters = Letters()
    messages = conversation(letters, last)
    rendered = n_known = 0
    for template in (*answers.templates().values(), *TEMPLATES.values()):
        for form in (dict, lambda **body: as_json(body)):
            body = form(messages=messages)
            try:
                found = prompt(tok, body, template=template, like=like)
            except ggtok.GGTokError:
                continue
            rendered += 1
            for shown, message, field in parts_of(found):
                wheres = {letters.where[c] for c in shown if c in letters.where}
                if field is True:
                    assert not wheres, (template, shown)
                elif message is not None:
                    n_known += len(wheres)
                    assert isinstance(field, str) and field in messages[message], template
                    assert wheres <= {(message, field)}, (template, shown)
                    written = json.dumps(messages[message][field], ensure_ascii=False)
                    assert {*shown} - {*" \n\t'"} <= {*written}, (template, shown)
    assert rendered > 150 and n_known > 1000


@pytest.mark.parametrize("like", LIKES)
def test_roles_and_separators_are_the_templates(tok: Tokenizer, like: str) -> None:
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    messages = [user("a"), says("wizard", "b"), user("user")]
    found = prompt(
        tok,
        {"messages": messages, "add_generation_prompt": False},
        template=template,
        like=like,
    )
    assert parts_of(found) == [
        ("<user>", None, True),
        ("a", 0, "content"),
        ("<", None, True),
        ("wizard", 1, "role"),
        (">", None, True),
        ("b", 1, "content"),
        ("<user>", None, True),
        ("user", 2, "content"),
    ]


# ---- markers of media ----


@pytest.mark.parametrize(
    ("messages", "template"),
    [
        (
            [says("system", [IMAGE]), user("<__media__>")],
            "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}",
        ),
        ([user([IMAGE, text("<__media__>")])], "{{ messages[0].content[12:] }}"),
        ([user([IMAGE]), user("<__media__>")], "{{ messages[1].content }}"),
        # a continued answer loses its image
        (
            [user("<__media__>"), says("assistant", [text("a"), IMAGE])],
            "{% for m in messages %}{{ m.content }}{% endfor %}",
        ),
    ],
)
def test_a_text_with_the_marker_is_no_image(
    tok: Tokenizer, messages: list[Any], template: str
) -> None:
    for given in (messages, as_json(messages)):
        for trusted in (False, True):
            keywords: Any = {"template": template, "trusted": trusted}
            for call in (tok.encode_chat, tok.count_chat):
                with pytest.raises(ggtok.InvalidValueError, match=r"media marker") as caught:
                    call(given, **keywords)
                assert "media_marker" in str(caught.value)
            with pytest.raises(ggtok.InvalidValueError, match=r"media marker"):
                tok.count_chat(given, image_tokens=5, **keywords)


# As phi-3's: messages of other roles aren't written.
KNOWS_TWO = (
    "{% for m in messages %}{% if m.role in ('user', 'assistant') %}"
    "<|{{ m.role }}|>{{ m.content }}{% endif %}{% endfor %}<|assistant|>"
)
SILENT = "the prompt has no text of the messages: the chat template writes none, perhaps because"


@pytest.mark.parametrize("like", LIKES)
def test_a_prompt_without_text_of_its_messages_is_a_warning(tok: Tokenizer, like: Any) -> None:
    given: Any = {"template": KNOWS_TWO, "like": like}
    unknown = [says("human", "Hi")]
    for call in (
        tok.count_chat,
        tok.encode_chat,
        tok.apply_chat_template,
        lambda messages, **options: tok.encode_chat(
            messages, return_assistant_mask=True, **options
        ),
        lambda messages, **options: tok.encode_chat_batch([messages, [user("Hi")]], **options),
    ):
        with pytest.warns(ggtok.VocabWarning, match=SILENT):
            call(unknown, **given)
    with pytest.warns(ggtok.VocabWarning, match="the prompts of 70 conversations have no text of"):
        tok.encode_chat_batch([unknown] * 70, **given, threads=2)


@pytest.mark.parametrize("like", LIKES)
@pytest.mark.parametrize(
    ("template", "messages"),
    [
        (KNOWS_TWO, [user("Hi")]),
        (KNOWS_TWO, [says("human", "Hi"), says("assistant", "x")]),
        (KNOWS_TWO, [user("")]),
        (KNOWS_TWO, [says("human", "")]),
        ("{{ messages[0].content[1:] }}", [user("Hi")]),
        ("{{ messages[0].role }}", [says("narrator", "Hi")]),
        ("{{ messages[0].content | length }}|{{ messages[0].content | upper }}", [user("Hi")]),
    ],
)
def test_no_warning_if_any_text_may_be_of_a_message(
    tok: Tokenizer, like: Any, template: str, messages: Any, recwarn: pytest.WarningsRecorder
) -> None:
    tok.count_chat(messages, template=template, like=like)
    assert not [each for each in recwarn if "no text of the messages" in str(each.message)]
