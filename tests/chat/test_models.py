"""Messages that are objects with model_dump(), such as pydantic models and OpenAI's answers."""

from __future__ import annotations

from typing import Any

import pytest

import ggtok
from fixtures.build import CHAT
from tests.chat.made import templated
from tests.chat.requests import TOOLS, user


class Model:
    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def model_dump(self) -> dict[str, Any]:
        return {k: v.model_dump() if isinstance(v, Model) else v for k, v in self._fields.items()}


FUNCTION = {"name": "f", "arguments": "{}"}
CALL = {"type": "function", "id": "1", "function": FUNCTION}
# An answer as OpenAI's library returns it: all fields are present, and unset ones are None.
ANSWER = Model(
    role="assistant", content=None, name=None, reasoning_content=None, function_call=None,
    tool_calls=[Model(type="function", id="1", function=Model(**FUNCTION))],
)  # fmt: skip
PLAIN = [
    user("Hi"),
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": [{"type": "text", "text": "no"}], "tool_call_id": "1"},
    {"role": "assistant", "content": None},
    user("Bye"),
]
MODELS = [
    Model(role="user", content="Hi"),
    ANSWER,
    {"role": "tool", "content": [Model(type="text", text="no")], "tool_call_id": "1"},
    Model(role="assistant", content=None, tool_calls=None),
    Model(role="user", content="Bye", name=None),
]


SHOWS_ALL = "{% for m in messages %}{{ m.items() | list }}{% endfor %}{{ tools or '' }}"


@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
@pytest.mark.parametrize("n", range(1, 6))
def test_models_are_their_fields(like: Any, n: int) -> None:
    tok = templated(default=SHOWS_ALL)
    options = {"like": like, "continue_final_message": None if like == "transformers" else False}
    tools = [Model(**tool) for tool in TOOLS]
    want = tok.apply_chat_template(PLAIN[:n], tools=TOOLS, **options)
    assert tok.apply_chat_template(MODELS[:n], tools=tools, **options) == want  # type: ignore[arg-type]
    ids = tok.encode_chat(PLAIN[:n], **options)
    assert tok.encode_chat(MODELS[:n], **options) == ids
    assert tok.encode_chat_batch([MODELS[:n]], **options) == [ids]
    assert tok.count_chat(MODELS[:n], **options) == len(ids)


def test_models_are_trimmed() -> None:
    tok = ggtok.load(CHAT)
    messages = [MODELS[0], Model(role="assistant", content="Hello"), MODELS[4]]
    n = tok.count_chat(messages)
    assert ggtok.trim_chat(tok, messages, n - 1) == [MODELS[4]]


def test_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Message(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        role: str
        content: str | None = None
        name: str | None = None

    tok = ggtok.load(CHAT)
    assert tok.encode_chat([Message(role="user", content="Hi")]) == tok.encode_chat([user("Hi")])
    count = pydantic.validate_call(tok.count_chat)
    assert count([Message(role="user", content="Hi")]) == tok.count_chat([user("Hi")])


def test_wrong_objects_raise_errors() -> None:
    tok = ggtok.load(CHAT)

    class Odd:
        def model_dump(self) -> list[int]:
            return [1]

    for wrong in (Model, Odd(), 5):
        for like in ("llama.cpp", "transformers"):
            with pytest.raises(ggtok.InvalidTypeError, match=r"messages\[0\] must be a mapping"):
                tok.encode_chat([wrong], like=like)  # type: ignore[list-item, call-overload]
