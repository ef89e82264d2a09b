"""Prompts: texts that record which of their parts come from the template."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ggtok import load
from ggtok.chat.prompt import Prompt, Ranges, n_shared
from tests.chat.calls import parts, prompt
from tests.chat.requests import says, user
from tests.support.vocabularies import fixture

PIECES = st.lists(st.tuples(st.text("ab<é👍", max_size=4), st.booleans()), max_size=6)


def marks(text: str, ranges: Ranges) -> list[bool]:
    """Returns for each byte whether it is in a range."""
    inside = [False] * len(text.encode())
    for begin, end in ranges:
        assert begin < end
        inside[begin:end] = [True] * (end - begin)
    return inside


def of_pieces(pieces: list[tuple[str, bool]]) -> list[bool]:
    return [is_own for text, is_own in pieces for _ in text.encode()]


def prompt_of(pieces: list[tuple[str, bool]]) -> Prompt:
    at, ranges = 0, []
    for text, is_own in pieces:
        end = at + len(text.encode())
        if is_own and at < end:
            ranges.append((at, end))
        at = end
    return Prompt("".join(text for text, _ in pieces), tuple(ranges), tuple(ranges))


@given(PIECES, st.integers(0, 30))
def test_cut_and_rest(pieces: list[tuple[str, bool]], at: int) -> None:
    whole = prompt_of(pieces)
    begin, end = whole.cut(at), whole.rest(at)
    assert (begin.text, end.text) == (whole.text[:at], whole.text[at:])
    n = len(begin.text.encode())
    for some, expected in ((begin, of_pieces(pieces)[:n]), (end, of_pieces(pieces)[n:])):
        assert marks(some.text, some.ranges) == expected
        assert some.generated == some.ranges


@given(PIECES, PIECES, PIECES)
def test_texts_around_media(
    first: list[tuple[str, bool]], second: list[tuple[str, bool]], third: list[tuple[str, bool]]
) -> None:
    pieces, marker = (first, second, third), [("<M>", False)]
    whole = prompt_of([*pieces[0], *marker, *pieces[1], *marker, *pieces[2]])
    m = len("".join(text for text, _ in first).encode())
    n = m + 3 + len("".join(text for text, _ in second).encode())
    media = ((m, m + 3), (n, n + 3))
    found = Prompt(whole.text, whole.ranges, whole.generated, media).around_media()
    begins = (0, m + 3, n + 3)
    expected = [(b, p) for b, p in zip(begins, pieces, strict=True) if prompt_of(p).text]
    assert [(begin, some.text) for begin, some in found] == [
        (begin, prompt_of(p).text) for begin, p in expected
    ]
    for (_, some), (_, p) in zip(found, expected, strict=True):
        assert marks(some.text, some.ranges) == of_pieces(p)
        assert marks(some.text, some.generated) == of_pieces(p)


def test_end_of_conversation() -> None:
    assert prompt_of([("é", False), ("<end>", True)]).end_of_conversation() == 1
    assert prompt_of([("<a>", True)]).end_of_conversation() == 0
    assert Prompt("a<M>b", ((0, 5),), (), ((1, 4),)).end_of_conversation() == 4


@given(st.text("ab", max_size=5), st.text("ab", max_size=5))
def test_n_shared(a: str, b: str) -> None:
    n = n_shared(a, b)
    assert a[:n] == b[:n] and (n in (len(a), len(b)) or a[n] != b[n])


# ---- finished prompts ----

QWEN = load(fixture("bpe-qwen2"))
HARMONY = "{#- <|channel|> -#}"
GEMMA = "{#- '<|tool_call>call:' {#- OpenAI Chat Completions: -#}"


def finished(template: str, *messages: dict[str, str], **more: object) -> list[tuple[str, bool]]:
    body = {"messages": [*messages], "add_generation_prompt": False, **more}
    return parts(prompt(QWEN, body, template=template))


def test_bos_and_eos_are_dropped() -> None:
    """BOS and EOS are dropped where encoding adds them. transformers' rules keep those that a
    message wrote; llama-server doesn't distinguish them."""
    tok = load(
        fixture("bpe-qwen2"),
        overrides={
            "tokenizer.ggml.add_bos_token": True,
            "tokenizer.ggml.add_eos_token": True,
            "tokenizer.ggml.bos_token_id": QWEN.eos_id,
        },
    )
    end = QWEN.token_to_piece(QWEN.eos_id or 0).decode()
    own = "{{ bos_token }}é{{ messages[0].content }}{{ eos_token }}"

    def ends(template: str, content: str, like: str) -> list[tuple[str, bool]]:
        body = {"messages": [user(content)], "add_generation_prompt": False}
        return parts(prompt(tok, body, template=template, like=like))

    said = "{{ messages[0].content }}"
    for like, kept in (("llama.cpp", "x"), ("transformers", f"{end}x{end}")):
        assert ends(own, "hi", like) == [("é", True), ("hi", False)]
        assert ends("{{ bos_token }}", "", like) == []
        assert ends(said, f"{end}x{end}", like) == [(kept, False)]


def test_the_last_return_is_replaced() -> None:
    said = "{% for m in messages %}{{ m.content }}{% endfor %}"
    assert finished(HARMONY + said + "<|return|>", user("é")) == [("é", False), ("<|end|>", True)]
    assert finished(HARMONY + said, user("é")) == [("é", False)]
    two = finished(HARMONY + "<|return|>" + said + "<|return|>b", user("a"))
    assert two == [("<|return|>", True), ("a", False), ("<|end|>b", True)]
    # The replacement counts as the conversation's, even if a part of the text is the template's.
    assert finished(HARMONY + said, user("a<|return|>b")) == [("a<|end|>b", False)]
    assert finished(HARMONY + "x<|" + said + "c", user("return|>b")) == [
        ("x", True),
        ("<|end|>b", False),
        ("c", True),
    ]


def test_a_turn_is_opened_after_the_template_s_end() -> None:
    said = "{% for m in messages %}{{ m.content }}{% endfor %}"
    more = {"add_generation_prompt": True}
    ended = finished(GEMMA + said + "<turn|>{{ '\\n' }}", user("a"), **more)
    assert ended == [("a", False), ("<turn|>\n<|turn>model\n", True)]
    assert finished(GEMMA + said, user("a<turn|>\n"), **more) == [
        ("a<turn|>\n<|turn>model\n", False)
    ]
    assert finished(GEMMA + said + "|>{{ '\\n' }}", user("a<turn"), **more) == [
        ("a<turn", False),
        ("|>\n", True),
        ("<|turn>model\n", False),
    ]
    assert finished(GEMMA + said, user("a"), **more) == [("a", False)]


def test_only_known_roles_are_the_templates() -> None:
    template = "{{ messages[0].role }}:{{ messages[1].role }}"
    found = finished(template, says("wizard", "a"), user("b"))
    assert found == [("wizard", False), (":user", True)]
