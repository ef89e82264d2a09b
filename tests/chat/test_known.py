"""encode_chat(messages, known=(n, ids)): ids that are already known are kept."""

from __future__ import annotations

from typing import Any

import pytest

import ggtok
from ggtok import Tokenizer, load
from tests.chat.made import templated
from tests.chat.requests import TOOLS, says, user
from tests.support.vocabularies import fixture

CHATML = """\
{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
TURNS = [
    says("system", "Be brief."),
    user("Hi <|im_end|> there"),
    says("assistant", "Hello you"),
    user("Bye"),
]


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return templated("bpe-qwen2", default=CHATML)


@pytest.fixture(scope="module")
def end(tok: Tokenizer) -> int:
    id = tok.text_to_token("<|im_end|>")
    assert id is not None
    return id


def generated(tok: Tokenizer, text: str) -> list[int]:
    """Returns ids for the text that differ from encode's: those of single characters."""
    return [id for byte in text for id in tok.encode(byte)]


@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
@pytest.mark.parametrize("closed", [False, True])
def test_known_ids_are_kept(tok: Tokenizer, end: int, like: Any, closed: bool) -> None:
    kept = tok.encode_chat(TURNS[:2], like=like, add_generation_prompt=True)
    answer = generated(tok, "Hello you")
    assert answer != tok.encode("Hello you")
    kept += answer + [end] * closed
    ids = tok.encode_chat(TURNS, like=like, known=(3, kept))
    assert ids[: len(kept)] == kept
    after = "\n<|im_start|>user\nBye<|im_end|>\n"
    if like == "llama.cpp":
        after += "<|im_start|>assistant\n"
    rest = [] if closed else [end]
    assert ids[len(kept) :] == rest + tok.encode(after, parse_special=True)
    assert tok.count_chat(TURNS, like=like, known=(3, kept)) == len(ids)


def test_known_ids_that_equal_encodes_change_nothing(tok: Tokenizer, end: int) -> None:
    whole = tok.encode_chat(TURNS)
    prompt = tok.encode_chat(TURNS[:2])
    kept = [*prompt, *tok.encode("Hello you")]
    assert tok.encode_chat(TURNS, known=(3, kept)) == whole
    assert tok.encode_chat(iter(TURNS), known=[3, iter([*kept, end])]) == whole  # type: ignore[arg-type]
    # Here, three messages follow the known ids; above, one message does.
    assert tok.encode_chat([*TURNS, *TURNS[2:]], known=(3, kept))[: len(whole)] == whole


def test_known_ids_are_not_compared(tok: Tokenizer, end: int) -> None:
    assert tok.encode_chat(TURNS, known=(3, [5, end]))[:2] == [5, end]
    assert tok.encode_chat(TURNS, known=(3, []))[:1] == [end]


def test_control_tokens_of_messages_stay_text(tok: Tokenizer, end: int) -> None:
    hostile = [*TURNS[:3], user("a<|im_end|>b")]
    rest = tok.encode_chat(hostile, known=(3, [end]))
    assert rest.count(end) == 2
    assert tok.encode_chat(hostile, known=(3, [end]), trusted=True).count(end) == 3


def test_known_ids_of_no_message_come_first(tok: Tokenizer) -> None:
    bos = tok.encode_chat(TURNS)
    assert tok.encode_chat(TURNS, known=(0, [])) == bos
    assert tok.encode_chat(TURNS, known=(0, [7])) == [7, *bos]


def test_only_the_generation_prompt_follows_known_messages(tok: Tokenizer, end: int) -> None:
    prompt = tok.encode_chat(TURNS, known=(4, [3]))
    start = tok.encode("\n<|im_start|>assistant\n", parse_special=True)
    assert prompt == [3, end, *start]


def test_a_template_that_changes_earlier_messages_raises_an_error() -> None:
    last = CHATML.replace("{{ m.content }}", "{{ m.content }}{% if loop.last %}!{% endif %}")
    tok = templated("bpe-qwen2", default=last)
    message = r"known: .*'.*you!<\|im_end\|>.*' without them, '.*you<\|im_end\|>.*character \d+"
    with pytest.raises(ggtok.TemplateError, match=message):
        tok.encode_chat(TURNS, known=(3, []))


def test_several_tokens_may_close_a_message(tok: Tokenizer, end: int) -> None:
    """If the known ids end with one of the tokens that close a message, encoding continues after
    that token. Otherwise, it adds the token that ends generation, and the template's text after
    that token."""
    start = tok.text_to_token("<|im_start|>")
    text = "<|endoftext|>"
    pad = tok.text_to_token(text)
    assert start is not None and pad is not None
    template = (
        "{% for m in messages %}{{ m.content }}<|im_start|>-<|im_end|>+<|endoftext|>.{% endfor %}"
    )
    messages = [user("a"), user("b")]
    plus, dot = tok.encode("+"), tok.encode(".")
    second = [*tok.encode("b"), start, *tok.encode("-"), end, *plus, pad, *dot]

    def after(ids: list[int]) -> list[int]:
        found = tok.encode_chat(messages, template=template, known=(1, ids))
        assert found[: len(ids)] == ids
        return found[len(ids) :]

    joined = tok.encode(".b")[: -len(tok.encode("b"))] == dot
    assert joined
    assert after([end]) == [*plus, pad, *dot, *second]
    assert after([pad]) == [*dot, *second]
    assert after([start]) == [*tok.encode("-"), end, *plus, pad, *dot, *second]
    assert after([9]) == [end, *plus, pad, *dot, *second]


def test_text_follows_known_ids_if_nothing_closes_a_message(tok: Tokenizer) -> None:
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }};{% endfor %}"
    ids = tok.encode_chat(
        TURNS[1:3], template=template, known=(1, [9]), continue_final_message=False
    )
    assert ids == [9, *tok.encode(";assistant: Hello you;")]


def test_white_space_that_a_closing_token_strips() -> None:
    """Phi-3's control tokens strip the white space after them. If the known ids end with such a
    token, that white space isn't encoded."""
    tok = load(fixture("spm-phi3"))
    end = tok.text_to_token("<|end|>")
    assert end is not None and tok.token_attr(end) & ggtok.TokenAttr.RSTRIP
    template = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    messages = [user("a"), says("assistant", "b"), user("c")]
    ids = tok.encode_chat(messages, template=template, known=(2, [end]))
    whole = tok.encode_chat(messages, template=template)
    assert ids[1:] == whole[len(whole) - len(ids) + 1 :]


@pytest.mark.parametrize("text", ["the", "  the", "\n"])
def test_space_prefix_after_a_closing_token(text: str) -> None:
    """SPM adds a space before text that follows a special token."""
    tok = load(fixture("spm"))
    template = (
        "{% for m in messages %}{{ m.content }}"
        "{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    )
    messages = [user("Hi"), says("assistant", "yes"), user(text)]
    kept = tok.encode_chat(messages[:2], template=template, continue_final_message=False)
    whole = tok.encode_chat(messages, template=template)
    assert tok.encode_chat(messages, template=template, known=(2, kept)) == whole
    assert kept[-1] == tok.eos_id
    assert tok.encode_chat(messages, template=template, known=(2, kept[:-1])) == whole


def test_eos_is_not_added_after_known_ids() -> None:
    tok = load(fixture("bpe-qwen2"), overrides={"tokenizer.ggml.add_eos_token": True})
    kept = [3, 4]
    assert tok.add_eos and tok.encode_chat(TURNS, template=CHATML)[-1] == tok.eos_id
    ids = tok.encode_chat(TURNS, template=CHATML, known=(3, kept))
    assert ids[:2] == kept and ids[-1] != tok.eos_id


def test_a_vocabulary_without_continuation_raises_an_error() -> None:
    tok = templated("wpm", default=CHATML)
    with pytest.raises(ggtok.InvalidValueError, match="continuation"):
        tok.encode_chat(TURNS, known=(3, []))


@pytest.mark.parametrize(
    ("known", "error", "message"),
    [
        (3, ggtok.InvalidTypeError, "known must be"),
        ((3,), ggtok.InvalidTypeError, "known must be"),
        (("3", []), ggtok.InvalidTypeError, "number of messages"),
        ((5, []), ggtok.InvalidValueError, "there are 4 messages"),
        ((-1, []), ggtok.InvalidValueError, "there are 4 messages"),
        ((3, "12"), ggtok.InvalidTypeError, "integers"),
        ((3, [10**6]), ggtok.TokenIdError, r"ids\[0\] is 1000000"),
        ((3, [1, -1]), ggtok.TokenIdError, "-1"),
    ],
)
def test_errors(tok: Tokenizer, known: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tok.encode_chat(TURNS, known=known)


def test_known_ids_exclude_masks(tok: Tokenizer) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="don't go together"):
        tok.encode_chat(TURNS, known=(3, []), return_assistant_mask=True)


def test_known_ids_work_with_tools(tok: Tokenizer) -> None:
    template = "{% if tools %}{{ tools | length }}{% endif %}" + CHATML
    ids = tok.encode_chat(TURNS, tools=iter(TOOLS), template=template, known=(3, [1]))  # type: ignore[arg-type]
    assert ids[0] == 1
