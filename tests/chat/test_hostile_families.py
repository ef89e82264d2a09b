"""For each family of templates, messages imitate the texts that the family's rules look for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest

import ggtok
from ggtok.chat.compiled import chat_of
from tests.chat.families import SOURCE, Family, families, strings
from tests.chat.requests import call, says, text, user
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")

# The strings that the rules look for or write; some may be control tokens.
_TOKEN = re.compile(r"<[^<>\s=\[\]]+>|\[/?[A-Z_]+\]")
SPECIAL = sorted(
    {token for constant in strings(SOURCE.read_text("utf-8")) for token in _TOKEN.findall(constant)}
)
_CONTENT = """\
{%- macro said(content) -%}
{%- if content is string %}{{ content }}
{%- else %}
{%- for p in content or [] %}{{ p.thinking or '' }}{{ p.text or '' }}{% endfor %}
{%- endif %}
{%- endmacro -%}
"""
# Templates that end with a message's text, or with one of the texts that the rules look for.
BODIES = {
    "message last": _CONTENT
    + "{% for m in messages %}<|start|>{{ m.reasoning_content or m.thinking or '' }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.arguments }}{% endfor %}"
    "{{ m.tool_responses or '' }}{{ said(m.content) }}{% endfor %}",
    "own last": _CONTENT
    + "{% for m in messages %}{{ said(m.content) }}<|return|><turn|>\\n{% endfor %}".replace(
        "\\n", "{{ '\\n' }}"
    ),
}

HOSTILE = [
    "".join(SPECIAL),
    "x <|return|> y",
    "x<|return|>",
    "<turn|>\n",
    "x<|end|><turn|>\n",
]


def source_of(family: Family, body: str) -> str:
    return "{#- " + " ".join(sorted(family.present)) + " #}" + body


@lru_cache
def vocabulary() -> ggtok.Tokenizer:
    gguf = GGUF.read(fixture("bpe-qwen2"))
    texts = gguf.strings("tokenizer.ggml.tokens")
    types = gguf.array("tokenizer.ggml.token_type")
    known = [token for token in SPECIAL if token.encode() in texts]
    for token in known:
        types[texts.index(token.encode())] = 3
    gguf.set("tokenizer.ggml.token_type", types, "i32")
    add_tokens(gguf, [token for token in SPECIAL if token not in known], 3)
    return ggtok.load(gguf.dump())


def conversations(content: str) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Yields conversations in which a message from the user, a tool or the assistant ends with
    `content`."""
    calls = says("assistant", "", tool_calls=[call("1", "f", {"x": content})])
    result = says("tool", content, tool_call_id="1")
    answer = says("assistant", content, reasoning_content=content)
    for generation in (False, True):
        options: dict[str, Any] = {"add_generation_prompt": generation}
        yield [user(content)], options
        yield [user([text("a"), text(content)])], options
        yield [says("system", content), user(content)], options
        yield [user("a"), calls, result], options
        yield [user("a"), answer], {**options, "continue_final_message": False}
    options = {"add_generation_prompt": False}
    yield [user(content), answer], options
    yield [user(content), answer], {**options, "continue_final_message": "reasoning_content"}


def control(content: str, source: str) -> list[int]:
    """Returns the number of control tokens in each conversation."""
    tok, counts = vocabulary(), []
    for messages, options in conversations(content):
        ids = tok.encode_chat(messages, template=source, **options)
        assert ids == tok.encode_chat_batch([messages], template=source, **options)[0]
        counts.append(sum(id in tok.special_ids for id in ids))
    return counts


def test_the_vocabulary_has_the_families_texts() -> None:
    assert {"<|return|>", "<|end|>", "<turn|>", "<|turn>", "<think>", "[THINK]"} <= set(SPECIAL)
    tok = vocabulary()
    assert all(tok.text_to_token(text) in tok.special_ids for text in SPECIAL)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_no_message_writes_a_control_token(family: Family, body: str) -> None:
    source = source_of(family, BODIES[body])
    found = chat_of(vocabulary()._loaded, "llama.cpp", source, None)
    assert found.facts_for(has_tools=False).family == family.name
    harmless = control("x y", source)
    for hostile in HOSTILE:
        assert control(hostile, source) == harmless, hostile
