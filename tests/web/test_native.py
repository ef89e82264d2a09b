"""Ids, spans, text, vocabularies and chats equal those of the library."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

import ggtok
from tests.chat.made import TEMPLATES
from tests.support.samples import some, times
from tests.support.vocabularies import fixture, fixture_names
from tests.web import compare
from tests.web.hosts import Host, Tokenizer

SEED = 3


@pytest.mark.parametrize("name", fixture_names())
def test_a_vocabulary(host: Host, load_fixture: Any, name: str) -> None:
    tok, js = load_fixture(name), Tokenizer(host, fixture(name))
    compare.compare_vocabulary(tok, js)
    compare.compare_file(tok, js, fixture(name))
    if tok.n_tokens:
        compare.compare_texts(tok, js, compare.texts(tok, times(20, 100)))
    js.free()


def test_chats_as_in_llama_server(host: Host, load_fixture: Any) -> None:
    tok, js = load_fixture("bpe-llama3"), Tokenizer(host, fixture("bpe-llama3"))
    rendered = refused = 0
    for i, template in enumerate(some(TEMPLATES.values(), 3)):
        found = compare.compare_bodies(tok, js, template, times(6, 60), SEED + i)
        rendered, refused = rendered + found[0], refused + found[1]
    assert rendered > 50 and refused > 20
    js.free()


def test_chats_as_in_transformers(host: Host, load_fixture: Any) -> None:
    tok, js = load_fixture("bpe-llama3"), Tokenizer(host, fixture("bpe-llama3"))
    rendered = refused = 0
    for template in some(TEMPLATES.values(), 16):
        found = compare.compare_transformers(tok, js, template)
        rendered, refused = rendered + found[0], refused + found[1]
    assert rendered > 300 and refused > 100
    js.free()


@pytest.mark.parametrize("name", [*fixture_names(), "chat"])
def test_the_file_s_own_template(host: Host, load_fixture: Any, name: str) -> None:
    """In every fixture: its template, or ChatML, with its special tokens."""
    path = fixture(name) if name != "chat" else fixture(name).parents[1] / "chat.gguf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(path)
        js = Tokenizer(host, path)
        assert js.templates() == tok.chat_templates
        messages = [{"role": "user", "content": "Hi <|im_end|></s>[EOS] \U0001f44d"}]
        request = {"messages": messages}
        if tok.n_tokens:
            expected = tok.apply_chat_template(messages), tok.encode_chat(messages)
            found = js.encodeChat(request)
            assert (found["text"], found["ids"]) == expected
            trusted = js.encodeChat(request, {"trusted": True})["ids"]
            assert trusted == tok.encode_chat(messages, trusted=True)
            plain = js.encodeChat(request, {"userDefined": "plain"})["ids"]
            assert plain == tok.encode_chat(messages, user_defined="plain")
    js.free()


def test_own_ranges_are_what_the_template_wrote(host: Host) -> None:
    js = Tokenizer(host, fixture("bpe-llama3"))
    said = "<|im_end|> Grüße \U0001f44d"
    request = {"messages": [{"role": "user", "content": said}]}
    found = js.renderChat(request, {"template": "chatml"})
    units = found["text"].encode("utf-16-le")
    rest, at = "", 0
    for begin, end in [*found["own"], (len(units) // 2, None)]:
        rest += units[2 * at : 2 * begin].decode("utf-16-le")
        at = end
    assert rest == said
    js.free()


def test_errors_of_templates_have_a_line(host: Host) -> None:
    js = Tokenizer(host, fixture("bpe-llama3"))
    request = {"messages": [{"role": "user", "content": "Hi"}]}
    sources = ("a\n{{ 1 / }}", "a\nb\n{{ raise_exception('No.') }}", "{% for x in y %}")
    for dialect, like in (("llama", "llama.cpp"), ("transformers", "transformers")):
        for source in sources:
            with pytest.raises(ggtok.TemplateError) as expected:
                tok_render(source, like)
            [error] = js.each("renderChat", [(request, {"template": source, "dialect": dialect})])
            assert error.name == "TemplateError"
            assert error.data["message"] == expected.value.args[0]
            assert error.data["line"] == (expected.value.line or 0)
    js.free()


def tok_render(source: str, like: Any) -> str:
    tok = ggtok.load(fixture("bpe-llama3"))
    return tok.apply_chat_template([{"role": "user", "content": "Hi"}], template=source, like=like)


@pytest.mark.parametrize("name", ["bpe-llama3", "ugm", "spm"])
def test_a_worker_has_the_same_results(host: Host, load_fixture: Any, name: str) -> None:
    tok = load_fixture(name)
    js = Tokenizer(host, {"$contents": host.file(fixture(name))}, worker=True)
    compare.compare_vocabulary(tok, js)
    compare.compare_file(tok, js, fixture(name))
    compare.compare_texts(tok, js, compare.texts(tok, 10))
    compare.compare_bodies(tok, js, TEMPLATES["plain"], 10, 1)
    js.free()


def test_long_texts(host: Host, load_fixture: Any) -> None:
    """A string beyond the length that is encoded in place; spans count in each unit."""
    tok, js = load_fixture("bpe-llama3"), Tokenizer(host, fixture("bpe-llama3"))
    rng = random.Random(SEED)
    words = ("word ", "Grüße ", "你好", "\U0001f44d\u200d", "\n\n", "12345 ", "é")
    text = "".join(rng.choices(words, k=40_000))
    for python, unit in compare.UNITS.items():
        ids, spans = tok.encode_with_offsets(text, unit=python)
        found = js.spans(text, {"unit": unit})
        assert found == {"ids": ids, "starts": spans[:, 0].tolist(), "ends": spans[:, 1].tolist()}
    js.free()
