"""Requests, messages and batches as JSON text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ggtok import InvalidTypeError, InvalidValueError, Tokenizer, load
from ggtok.chat import api, chat_batches
from ggtok.native import chat_calls
from tests.chat.calls import as_json
from tests.chat.requests import IMAGE, TOOLS, says, user
from tests.support.vocabularies import fixture

SHOWN = (
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
    "{{ tools | length if tools else 'none' }}|{{ x }}|{{ add_generation_prompt }}"
)
TALK = [says("system", "Grüße"), user("Hi <|im_end|>"), says("assistant", "Ho"), user("\U0001f44d")]
LIKES = ("llama.cpp", "transformers")


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(fixture("bpe-qwen2"))


@pytest.mark.parametrize("like", LIKES)
def test_the_methods_take_json_text(tok: Tokenizer, like: Any) -> None:
    more = {"tools": TOOLS, "chat_template_kwargs": {"x": 1.0}, "add_generation_prompt": False}
    keywords: Any = {"template": SHOWN, "like": like}
    for trusted in (False, True):
        for given, options in ((TALK, {}), ({"messages": TALK, **more}, more)):
            text = as_json(given)
            assert tok.apply_chat_template(text, **keywords) == tok.apply_chat_template(
                TALK, **options, **keywords
            )
            ids = tok.encode_chat(TALK, trusted=trusted, **options, **keywords)
            assert tok.encode_chat(text, trusted=trusted, **keywords) == ids
            assert tok.count_chat(text, trusted=trusted, **keywords) == len(ids)
            lists = tok.encode_chat_batch([text, TALK, text], trusted=trusted, **keywords)
            assert lists[0] == lists[2] == ids
            body = given if isinstance(given, dict) else {"messages": given}
            for form in (body, as_json(body)):
                found = api.run_body(
                    tok._loaded, form, chat_calls.IDS, trusted, template=SHOWN, like=like
                )
                assert found == ids
    assert "2|1.0|" in tok.apply_chat_template(as_json({"messages": TALK, **more}), **keywords)


def test_other_arguments_work_with_json_text(tok: Tokenizer) -> None:
    text = as_json(TALK)
    known = tok.encode_chat(TALK[:3], template="chatml", continue_final_message=False)
    assert tok.encode_chat(text, template="chatml", known=(3, known)) == tok.encode_chat(
        TALK, template="chatml", known=(3, known)
    )
    marked = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    assert tok.encode_chat(text, template=marked, return_assistant_mask=True) == tok.encode_chat(
        TALK, template=marked, return_assistant_mask=True
    )
    images = [user([IMAGE, {"type": "text", "text": "x"}])]
    for given in (as_json(images), as_json({"messages": images})):
        assert tok.count_chat(given, template="chatml", image_tokens=7) == tok.count_chat(
            images, template="chatml", image_tokens=7
        )
        parts: list[Any] = []

        def tokens(part: Any, parts: list[Any] = parts) -> int:
            parts.append(part)
            return 1

        tok.count_chat(given, template="chatml", image_tokens=tokens)
        assert parts == [IMAGE]


def test_batches_are_lists_of_texts_or_lines(tok: Tokenizer) -> None:
    talks = [[user(f"Hi {i}" + " word" * 200)] * (i % 3 + 1) for i in range(200)]  # several tasks
    expected = [tok.encode_chat(talk, template="chatml") for talk in talks]
    texts = [as_json(talk) for talk in talks]
    bodies = [as_json({"messages": talk}) for talk in talks]
    lines = [newline.join(texts) for newline in (b"\n", b"\r\n", b"\r", b"\n \n\r\n", b"\r \r")]
    for given in (texts, bodies, *lines):
        for threads in (1, 3):
            found = tok.encode_chat_batch(given, template="chatml", threads=threads)
            assert found == expected
    assert tok.encode_chat_batch(b"\n".join(texts) + b"\n", template="chatml") == expected
    assert tok.encode_chat_batch(b"", template="chatml") == []
    texts[150] = b'[{"role": "user", "content": 1}]'
    texts[180] = b"["
    for given in (texts, b"\n".join(texts), b"\n \n\r\n".join(texts)):
        with pytest.raises(InvalidTypeError, match=r"messages\[0\]\['content'\]") as caught:
            tok.encode_chat_batch(given, template="chatml", threads=2)
        assert getattr(caught.value, "__notes__", ["in conversations[150]"]) == [
            "in conversations[150]"
        ]


@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"])
def test_short_lines_are_several_tasks(newline: bytes) -> None:
    text = newline.join([as_json([user("Hi")])] * 3000)
    tasks = chat_batches._tasks(text, workers=2)
    assert len(tasks) >= 8
    assert [begin for begin, _ in tasks] == [0, *(end for _, end in tasks[:-1])]
    assert sum(len(chat_batches._lines(text[begin:end])) for begin, end in tasks) == 3000


@pytest.mark.parametrize("like", LIKES)
def test_keywords_precede_fields(tok: Tokenizer, like: Any) -> None:
    body = {
        "messages": [user()],
        "tools": TOOLS,
        "add_generation_prompt": False,
        "chat_template_kwargs": {"x": 1, "y": 2},
    }

    def show(**keywords: Any) -> str:
        template = SHOWN + "|{{ y }}"
        return tok.apply_chat_template(as_json(body), template=template, like=like, **keywords)

    no = "" if like == "llama.cpp" else "False"
    assert show() == f"user:Hi;2|1|{no}|2"
    assert show(tools=TOOLS[:1]) == f"user:Hi;1|1|{no}|2"
    assert show(add_generation_prompt=True) == "user:Hi;2|1|True|2"
    assert show(x=3) == f"user:Hi;2|3|{no}|2"
    assert show(chat_template_kwargs={"x": 4}) == f"user:Hi;2|4|{no}|"
    assert show(chat_template_kwargs={"x": 4}, x=5) == f"user:Hi;2|5|{no}|"


@pytest.mark.parametrize(
    ("text", "error", "pattern"),
    [
        (b"", InvalidValueError, "the request is not valid JSON: expected a value at byte 0"),
        (b'[{"role": "user"', InvalidValueError, "not valid JSON: expected ',' or '}' at byte 16"),
        (b"[1,]", InvalidValueError, "not valid JSON: expected a value at byte 3"),
        (b"[] x", InvalidValueError, "not valid JSON: .* at byte 3"),
        (b"\xff", InvalidValueError, "not valid JSON: expected a value at byte 0"),
        (
            b'[{"role": "\xff"}]',
            InvalidValueError,
            "not valid JSON: the string before this is not UTF-8, at byte 13",
        ),
        (b'["\\ud800"]', InvalidValueError, "not valid JSON: unpaired surrogate at byte"),
        (b'["\xed\xa0\x80"]', InvalidValueError, "before this is not UTF-8, at byte 6"),
        (b'["12345678\n90"]', InvalidValueError, "unescaped control character at byte 10"),
        (b'["\\t1234567\x1f"]', InvalidValueError, "unescaped control character at byte 11"),
        (b'["1234567\\', InvalidValueError, "unclosed string at byte 10"),
        (b'["1234567\\"', InvalidValueError, "unclosed string at byte 11"),
        (b'["1234567\\x"]', InvalidValueError, "unknown escape at byte 11"),
        (b'["1234567\\u12"]', InvalidValueError, "four hexadecimal digits at byte 13"),
        (b"{}", InvalidValueError, "messages are missing"),
        (b'{"messages": {}}', InvalidTypeError, "messages must be a list of mappings, not dict"),
        (b"null", InvalidTypeError, "messages must be a list of mappings, not None"),
        (b"3", InvalidTypeError, "messages must be a list of mappings, not int"),
        (b'["Hi"]', InvalidTypeError, r"messages\[0\] must be a mapping, not str"),
        (b"[" * 100 + b"]" * 100, InvalidValueError, "nested more than 93 deep"),
        (b"[" * 100_000, InvalidValueError, "nested"),
        (b'{"a":' * 100_000, InvalidValueError, "nested"),
        (
            b'[{"role": "user", "content": "", "x": ' + b"[" * 100 + b"]" * 100 + b"}]",
            InvalidValueError,
            "nested more than 93 deep",
        ),
    ],
)
@pytest.mark.parametrize("like", LIKES)
def test_wrong_json_text_is_refused(
    tok: Tokenizer, text: bytes, error: type[Exception], pattern: str, like: Any
) -> None:
    for method in (tok.apply_chat_template, tok.encode_chat, tok.count_chat):
        with pytest.raises(error, match=pattern):
            method(text, template="{{ messages[0].role }}", like=like)


def test_strings_are_read_as_json_reads_them(tok: Tokenizer) -> None:
    """Strings of every length up to three words of 8 bytes, with each special character at each
    place, as it is and as an escape."""
    for n in range(25):
        for special in '"\\/\n\t\x1f\x7fé中\ud7ff\U0001f44d':
            for at in range(n + 1):
                content = "a" * at + special + "b" * (n - at)
                for ascii in (True, False):
                    text = json.dumps([user(content)], ensure_ascii=ascii).encode()
                    template = "{{ messages[0].content }}"
                    assert tok.apply_chat_template(text, template=template) == content


def test_json_text_of_90_levels_is_read(tok: Tokenizer) -> None:
    deep: Any = 1
    for _ in range(90):
        deep = [deep]
    body = {"messages": [user()], "chat_template_kwargs": {"x": deep}}
    for like in LIKES:
        keywords: Any = {"template": "{{ x | string | length }}", "like": like}
        assert tok.apply_chat_template(as_json(body), **keywords) == "181"


def test_numbers_keep_their_type(tok: Tokenizer) -> None:
    numbers = b"[1, 1.0, -0.0, 1e2, 18446744073709551616]"
    body = as_json({"messages": [user()], "chat_template_kwargs": {"x": None}})
    body = body.replace(b"null", numbers)
    parsed = json.loads(body)
    for like in LIKES:
        keywords: Any = {"template": "{{ x }}", "like": like}
        assert tok.apply_chat_template(body, **keywords) == tok.apply_chat_template(
            [user()], chat_template_kwargs=parsed["chat_template_kwargs"], **keywords
        )


def test_messages_must_not_be_other_texts(tok: Tokenizer) -> None:
    for wrong in ("[]", bytearray(b"[]"), memoryview(b"[]"), {"messages": []}, 3, None):
        with pytest.raises(InvalidTypeError):
            tok.apply_chat_template(wrong, template="chatml")  # type: ignore[arg-type]


def test_known_ids_keep_the_other_fields_of_a_request(tok: Tokenizer) -> None:
    more: Any = {"tools": TOOLS, "chat_template_kwargs": {"x": 1}, "add_generation_prompt": False}
    talk = [*TALK, says("assistant", "Ho"), user("Bye")]
    ids = tok.encode_chat(talk[:2], template="{{ messages[0].content }}")
    template = "{% for m in messages %}{{ m.content }}{{ x }}{{ tools | length }}{% endfor %}"
    keywords: Any = {"template": template, "known": (2, ids)}
    whole = tok.encode_chat(as_json({"messages": talk, **more}), **keywords)
    assert whole == tok.encode_chat(talk, **more, **keywords)
    assert whole != tok.encode_chat(talk, tools=TOOLS, chat_template_kwargs={"x": 2}, **keywords)


def test_keys_with_a_nul_are_no_fields(tok: Tokenizer) -> None:
    body = {"messages": [user("Hi")], "messages\0": [user("Bye")], "\ud800": 1}
    text = api.run_body(tok._loaded, body, chat_calls.TEXT, template="{{ messages[0].content }}")
    assert text == "Hi"


@pytest.mark.parametrize("body", [{"\ud800": 1}, {1: 2}, float("inf"), object()])
def test_bodies_that_are_no_json_are_refused(body: object) -> None:
    failed = chat_calls.convert(body, chat_calls.RESPONSES)
    assert isinstance(failed, chat_calls.FailedError)
    assert str(chat_calls.error_of(failed)).startswith("the request: ")


def test_bodies_keep_large_integers() -> None:
    body = {"input": "Hi", "seed": 2**64 - 1}
    assert chat_calls.convert(body, chat_calls.RESPONSES)["seed"] == 2**64 - 1
