"""The page's Vocabulary, Chat and File views."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import ggtok
from tests.chat.mediafiles import IMAGE
from tests.chat.requests import text, user
from tests.support.patch import GGUF
from tests.support.vocabularies import FIXTURES, fixture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.web.pages import Shown


# ---- Vocabulary ----


SEARCHES: dict[tuple[str, str], Callable[[int, bytes], object]] = {
    ("Text", "TH"): lambda _, piece: b"th" in piece.lower(),
    ("Bytes (hex)", "20 74"): lambda _, piece: b" t" in piece,
    ("Bytes (hex)", "e4"): lambda _, piece: b"\xe4" in piece,
    ("Regular expression", "^ [a-z]+$"): lambda _, piece: re.fullmatch(b" [a-z]+", piece),
    ("Id", "3, 10-12, 670-"): lambda n, _: n in (3, 10, 11, 12) or n >= 670,
}


@pytest.mark.parametrize(("mode", "query"), SEARCHES)
def test_search_finds_tokens(shown: Shown, mode: str, query: str) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.view("vocabulary")
    shown.page.get_by_label("Search in").select_option(mode)
    shown.page.get_by_label("Search", exact=True).fill(query)
    wanted = SEARCHES[mode, query]
    ids = [id for id in range(tok.n_tokens) if wanted(id, tok.token_to_piece(id))]
    assert 0 < len(ids) < tok.n_tokens
    shown.found(len(ids), tok.n_tokens)
    shown.page.wait_for_function("document.querySelector('.list').scrollTop === 0")
    assert shown.rows == ids[: len(shown.rows)]


def test_filters_select_and_sort_tokens(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.view("vocabulary")
    shown.found(tok.n_tokens, tok.n_tokens)
    shown.page.get_by_label(re.compile("^Type")).select_option("control")
    control = [id for id in range(tok.n_tokens) if tok.is_control(id)]
    shown.found(len(control), tok.n_tokens)
    assert shown.rows == control[: len(shown.rows)]
    shown.page.get_by_role("button", name="Clear filters").click()
    shown.page.get_by_label("Length in bytes, min").fill("5")
    shown.page.keyboard.press("Tab")
    long = [id for id in range(tok.n_tokens) if len(tok.token_to_piece(id)) >= 5]
    shown.found(len(long), tok.n_tokens)
    shown.page.get_by_label("Order").select_option("Longest first")
    longest = max(len(tok.token_to_piece(id)) for id in range(tok.n_tokens))
    shown.page.wait_for_function(
        "n => document.querySelector('.token-row[role=option]').children[3].textContent === n",
        arg=str(longest),
    )
    shown.page.get_by_role("button", name="Clear filters").click()
    shown.page.get_by_label(re.compile("^Script")).select_option("Latin")
    shown.page.locator(".found", has_text=f"of {tok.n_tokens}").wait_for()
    n = shown.page.locator(".found").inner_text()
    shown.page.locator(".segments label", has_text="Charts").click()
    bar = shown.page.locator(".chart").nth(1).locator("button", has_text="Latin")
    assert bar.locator(".number").inner_text() in n


def test_charts_count_and_select_tokens(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.view("vocabulary")
    shown.page.locator(".segments label", has_text="Charts").click()
    lengths = [len(tok.token_to_piece(id)) for id in range(tok.n_tokens)]
    bar = shown.page.get_by_role("button", name=f"2 {lengths.count(2)} tokens")
    bar.click()
    shown.found(lengths.count(2), tok.n_tokens)


def test_picked_tokens_become_logit_bias(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.view("vocabulary")
    shown.page.get_by_label("Word").fill("the")
    shown.page.get_by_role("button", name="Add the word's tokens").click()
    shown.page.locator(".chips li").first.wait_for()
    forms = ("the", " the", "The", " The", "THE", " THE")
    ids = [tok.encode(form, add_special=False) for form in forms]
    expected = [only[0] for only in ids if len(only) == 1]
    assert expected
    shown.page.locator(".token-row[role=option] .pick").first.click()
    expected.append(shown.rows[0])
    shown.page.get_by_label("Bias", exact=True).fill("-5")
    shown.page.keyboard.press("Tab")
    shown.page.locator(".bias pre", has_text=": -5").wait_for()
    bias = json.loads(shown.page.locator(".bias pre").inner_text())
    assert bias == {str(id): -5 for id in dict.fromkeys(expected)}


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "ugm", "rwkv"])
def test_unreachable_tokens_are_found(shown: Shown, name: str) -> None:
    tok = ggtok.load(fixture(name))
    shown.open(fixture(name))
    shown.view("vocabulary")
    shown.page.locator("summary", has_text="Unreachable").click()
    shown.page.get_by_role("button", name="Check all tokens").click()
    shown.page.get_by_text(re.compile("checked (is|are) unreachable")).wait_for()
    ids = shown.page.evaluate("document.querySelector('gg-vocabulary-view').checked.found")
    kinds = shown.page.evaluate(
        "Array.from(document.querySelector('gg-app').app.model.vocab.types)"
    )
    # UGM adds a space before each word, so the page doesn't encode its tokens as continuations.
    continuation = name != "ugm"
    expected = [
        id
        for id in range(tok.n_tokens)
        if kinds[id] not in (2, 3, 5, 6)
        and (piece := tok.token_to_piece(id))
        and tok.encode(piece, add_special=False, continuation=continuation) != [id]
    ]
    assert ids == expected
    shown.page.get_by_label("List them").check()
    if expected:
        shown.found(len(expected), tok.n_tokens)


# ---- Chat ----

MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "What is a token?"},
]


def prompt_ids(shown: Shown, expected: list[int]) -> None:
    shown.page.evaluate("document.querySelector('gg-app').app.set({ 'chat.show': 'tokens' })")
    shown.page.wait_for_function(
        "n => document.querySelectorAll('gg-chat-view gg-tokens [role=option]').length === n",
        arg=len(expected),
    )
    assert shown.ids == expected


def test_the_prompt_follows_messages_and_options(shown: Shown) -> None:
    tok = ggtok.load(FIXTURES / "chat.gguf")
    shown.open(FIXTURES / "chat.gguf")
    shown.view("chat")
    prompt_ids(shown, tok.encode_chat(MESSAGES))
    shown.page.get_by_label("Content of message 2").fill("Hi <|eot_id|>")
    messages = [MESSAGES[0], {"role": "user", "content": "Hi <|eot_id|>"}]
    prompt_ids(shown, tok.encode_chat(messages))
    shown.page.get_by_role("button", name="Add message").click()
    shown.page.get_by_label("Content of message 3").fill("Yes?")
    messages.append({"role": "assistant", "content": "Yes?"})
    shown.page.get_by_label("Role of message 3").select_option("user")
    messages[2]["role"] = "user"
    prompt_ids(shown, tok.encode_chat(messages))
    shown.page.get_by_label("Add generation prompt").uncheck()
    prompt_ids(shown, tok.encode_chat(messages, add_generation_prompt=False))
    shown.page.get_by_role("button", name="Move message 3 up").click()
    messages[1], messages[2] = messages[2], messages[1]
    prompt_ids(shown, tok.encode_chat(messages, add_generation_prompt=False))
    shown.page.get_by_role("button", name="Remove message 1").click()
    prompt_ids(shown, tok.encode_chat(messages[1:], add_generation_prompt=False))
    shown.page.get_by_label("Rendered like").select_option("transformers")
    expected = tok.encode_chat(messages[1:], add_generation_prompt=False, like="transformers")
    prompt_ids(shown, expected)


def test_a_prompt_of_one_token_is_singular(shown: Shown) -> None:
    shown.open(FIXTURES / "chat.gguf")
    values = {"view": "chat", "chat.template": "{{ '' }}"}
    shown.page.evaluate("values => document.querySelector('gg-app').app.set(values)", values)
    shown.page.get_by_text("1 token", exact=True).wait_for()


@pytest.mark.parametrize("message", [None, 5, "text", []])
def test_a_message_that_is_no_object_is_refused(shown: Shown, message: Any) -> None:
    shown.open(FIXTURES / "chat.gguf")
    values = {"view": "chat", "chat.messages": json.dumps([message])}
    shown.page.evaluate("values => document.querySelector('gg-app').app.set(values)", values)
    assert shown.error.startswith("messages[0] must be an object")
    shown.page.get_by_role("button", name="Remove message 1").click()
    assert shown.page.locator(".message:not(.origin)").count() == 0


def test_variables_that_are_no_object_are_refused(shown: Shown) -> None:
    shown.open(FIXTURES / "chat.gguf")
    values = {"view": "chat", "chat.variables": "[1]"}
    shown.page.evaluate("values => document.querySelector('gg-app').app.set(values)", values)
    assert shown.error == "Template variables (JSON object) must be an object."


def test_a_template_that_a_link_names_is_used(shown: Shown, tmp_path: Path) -> None:
    gguf = GGUF.read(FIXTURES / "chat.gguf")
    gguf.set("tokenizer.chat_template.other", "{{ messages[-1].content }}", "str")
    gguf.write(tmp_path / "two.gguf")
    shown.page.evaluate(
        "values => document.querySelector('gg-app').app.set(values)",
        {"view": "chat", "chat.name": "other"},
    )
    shown.open(tmp_path / "two.gguf")
    shown.view("chat")
    tok = ggtok.load(tmp_path / "two.gguf")
    prompt_ids(shown, tok.encode_chat(MESSAGES, template="other"))


def test_long_fields_are_shown_in_parts(shown: Shown) -> None:
    """The page shows long JSON in parts, and refuses JSON that it would need seconds to parse."""
    shown.open(FIXTURES / "chat.gguf")
    shown.view("chat")
    shown.page.locator("summary", has_text="Tools").click()
    field = shown.page.get_by_label("Tools (JSON list)")
    field.fill("[" + " " * 2_000_000 + "]")
    expected = (
        "Tools (JSON list): 2,000,002 characters are too many. The page accepts up to 1,000,000."
    )
    assert shown.error == expected
    assert len(field.input_value()) < 100_000
    field.fill("")
    shown.page.get_by_label("Content of message 2").fill("x" * 200_000)
    assert len(shown.page.get_by_label("Content of message 2").input_value()) < 100_000


def test_images_are_counted_as_parts(shown: Shown) -> None:
    tok = ggtok.load(FIXTURES / "chat.gguf")
    messages = [user([text("What is"), IMAGE, text("and"), IMAGE])]
    shown.open(FIXTURES / "chat.gguf")
    shown.view("chat")
    shown.page.evaluate(
        "value => document.querySelector('gg-app').app.set({ 'chat.messages': value })",
        json.dumps(messages),
    )
    shown.page.get_by_text("without the tokens of 2 image, audio or video parts").wait_for()
    with pytest.warns(ggtok.VocabWarning, match="2 image"):
        prompt_ids(shown, tok.encode_chat(messages))


def test_each_message_is_marked_in_the_prompt(shown: Shown) -> None:
    """Equal texts of two messages, one like the template's own. Usual roles are the template's."""
    messages = [*MESSAGES, {"role": "assistant", "content": "<|eot_id|>"}, MESSAGES[1]]
    shown.open(FIXTURES / "chat.gguf")
    shown.view("chat")
    shown.page.evaluate(
        "value => document.querySelector('gg-app').app.set({ 'chat.messages': value })",
        json.dumps(messages),
    )
    shown.page.locator(".segments label", has_text="Origin").click()
    shown.page.locator(".prompt [data-from='4 user']").wait_for()
    pieces = shown.page.locator(".prompt .origin").evaluate_all(
        "all => all.map((one) => [one.title, one.textContent])"
    )
    expected = [("1 system", messages[0]["content"]), ("2 user", messages[1]["content"])]
    expected += [("3 assistant", "<|eot_id|>"), ("4 user", messages[1]["content"])]
    assert [tuple(piece) for piece in pieces if piece[0] != "Template"] == expected
    whole = shown.page.locator(".prompt").text_content()
    assert whole == ggtok.load(FIXTURES / "chat.gguf").apply_chat_template(messages)


def test_other_texts_are_marked_as_other(shown: Shown) -> None:
    shown.open(FIXTURES / "chat.gguf")
    shown.page.evaluate(
        "values => document.querySelector('gg-app').app.set(values)",
        {
            "view": "chat",
            "chat.show": "origins",
            "chat.template": "{{ messages | length }} {{ messages[0].content }}",
        },
    )
    shown.page.locator(".prompt", has_text="helpful").wait_for()
    pieces = shown.page.locator(".prompt .origin").evaluate_all(
        "all => all.map((one) => [one.title, one.textContent])"
    )
    assert pieces == [["Other", "2"], ["Template", " "], ["1 system", MESSAGES[0]["content"]]]


def test_a_template_can_be_edited_and_restored(shown: Shown) -> None:
    shown.open(FIXTURES / "chat.gguf")
    shown.view("chat")
    shown.page.locator("summary", has_text="Template From the file").click()
    area = shown.page.get_by_label("Template", exact=True)
    own = area.input_value()
    assert own == ggtok.load(FIXTURES / "chat.gguf").chat_template
    area.fill("{{ messages[0].content }}!")
    shown.page.locator(".segments label", has_text="Origin").click()
    shown.page.locator(".prompt", has_text="assistant.!").wait_for()
    area.fill("first\n{{ messages | nothing }}")
    assert shown.error.startswith("Line 2: ")
    assert shown.page.locator(".numbered .wrong").inner_text().strip() == "2"
    shown.page.get_by_role("button", name="Restore the file's template").click()
    shown.page.locator(".prompt", has_text="start_header_id").wait_for()
    assert area.input_value() == own


def test_tools_reach_the_template(shown: Shown) -> None:
    shown.open(FIXTURES / "chat.gguf")
    shown.view("chat")
    shown.page.evaluate(
        "value => document.querySelector('gg-app').app.set({ 'chat.template': value })",
        "{{ tools[0].function.name }} {{ enable_thinking }}",
    )
    shown.page.locator("summary", has_text="Tools").click()
    shown.page.get_by_role("button", name="Insert a sample tool").click()
    shown.page.locator("gg-chat-view .segments label", has_text="Origin").click()
    shown.page.get_by_label("Reasoning").select_option("Off")
    shown.page.locator(".prompt", has_text="get_weather False").wait_for()
    shown.page.get_by_label("Tools (JSON list)").fill("[")
    assert "not valid JSON" in shown.error


# ---- File ----


def test_the_file_s_facts_and_metadata_are_shown(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.view("file")
    shown.page.locator(".metadata tbody tr").first.wait_for()
    assert shown.fact("Vocabulary type") == "bpe"
    assert shown.fact("Pre-tokenizer") == tok.pre
    assert shown.fact("Tokens") == str(tok.n_tokens)
    keys = shown.page.locator(".metadata tbody th").all_text_contents()
    assert keys == [key.decode() for key in GGUF.read(fixture("bpe-llama3")).raw]
    shown.page.get_by_label("Filter keys").fill("tokenizer.ggml.model")
    shown.page.wait_for_function("document.querySelectorAll('.metadata tbody tr').length === 1")
    assert "gpt2" in shown.page.locator(".metadata tbody").inner_text()
    bos = shown.page.locator(".card tr", has_text="BOS")
    assert str(tok.bos_id) in bos.inner_text()
    assert "ggtok doctor bpe-llama3.gguf" in shown.page.locator(".card pre").inner_text()
