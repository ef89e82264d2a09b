"""Ids, spans, texts, vocabularies and chats equal those of the library."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.chat.media import parts_of
from tests.chat.made import TEMPLATES
from tests.chat.mediafiles import AUDIO, IMAGE, INPUT_VIDEO, VIDEO
from tests.chat.requests import says, text, user
from tests.support.patch import GGUF
from tests.support.samples import some, times
from tests.support.vocabularies import fixture, fixture_names
from tests.web import compare
from tests.web.hosts import Host, Tokenizer

SEED = 3


@pytest.mark.parametrize("name", fixture_names())
def test_a_vocabulary_equals_the_library_s(host: Host, load_fixture: Any, name: str) -> None:
    tok, js = load_fixture(name), Tokenizer(host, fixture(name))
    compare.compare_vocabulary(tok, js)
    compare.compare_file(tok, js, fixture(name))
    if tok.n_tokens:
        compare.compare_texts(tok, js, compare.texts(tok, times(20, 100)))
    js.free()


def test_chats_are_rendered_as_in_llama_server(host: Host, load_fixture: Any) -> None:
    tok, js = load_fixture("bpe-llama3"), Tokenizer(host, fixture("bpe-llama3"))
    rendered = refused = 0
    for i, template in enumerate(some(TEMPLATES.values(), 3)):
        found = compare.compare_bodies(tok, js, template, times(6, 60), SEED + i)
        rendered, refused = rendered + found[0], refused + found[1]
    assert rendered > 50 and refused > 20
    js.free()


def test_chats_are_rendered_as_in_transformers(host: Host, load_fixture: Any) -> None:
    tok, js = load_fixture("bpe-llama3"), Tokenizer(host, fixture("bpe-llama3"))
    rendered = refused = 0
    for template in some(TEMPLATES.values(), 16):
        found = compare.compare_transformers(tok, js, template)
        rendered, refused = rendered + found[0], refused + found[1]
    assert rendered > 300 and refused > 100
    js.free()


@pytest.mark.parametrize("name", [*fixture_names(), "chat"])
def test_the_file_s_own_template_is_rendered(host: Host, load_fixture: Any, name: str) -> None:
    """Every fixture renders its template, or ChatML, with its special tokens."""
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
            for options, ids in (({}, found["ids"]), ({"trusted": True}, trusted)):
                counted = {"count": len(ids), "uncountedParts": 0}
                assert js.countChat(request, options) == counted
    js.free()


def ends(name: str) -> bytes:
    """Returns a fixture whose vocabulary adds BOS and EOS."""
    gguf = GGUF.read(fixture(name))
    for flag in "bos", "eos":
        gguf.set(f"tokenizer.ggml.add_{flag}_token", True)
        gguf.set(f"tokenizer.ggml.{flag}_token_id", 1, "u32")
    return gguf.dump()


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
@pytest.mark.parametrize("name", ["spm", "bpe-llama3", "wpm", "ugm", "rwkv"])
def test_images_audio_and_video_become_markers(host: Host, tmp_path: Path, name: str) -> None:
    path = tmp_path / "ends.gguf"
    path.write_bytes(ends(name))
    tok, js = ggtok.load(path), Tokenizer(host, path)
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}</s>{% endfor %}"
    typed = "{% for m in messages %}{% for p in m.content %}({{ p.text }}){% endfor %}{% endfor %}"
    shown = "{% for m in messages %}{% for p in m.content %}<{{ p.type }}>{% endfor %}{% endfor %}"
    a, b = text("Grüße </s>"), text("\U0001f44d the<__media__>")
    chats = [[user(parts)] for parts in ([IMAGE], [a, IMAGE, AUDIO, a], [VIDEO, b, INPUT_VIDEO])]
    chats.append([user([text(""), a, a, IMAGE, a, b]), says("assistant", [IMAGE]), user("x")])
    chats.append([user("x"), says("assistant", [a, IMAGE])])
    results = 0
    for messages in [*chats, [user([a, {"type": "image"}, IMAGE])]]:
        for source, like in (
            (template, "llama.cpp"),
            (typed, "llama.cpp"),
            (shown, "transformers"),
        ):
            for marker in (None, "<M>", "</s>"):
                options = {"template": source, "mediaMarker": marker, "like": like}
                same: Any = {"template": source, "media_marker": marker, "like": like}
                for trusted in (False, True):
                    [found] = js.each(
                        "encodeChat", [({"messages": messages}, {**options, "trusted": trusted})]
                    )
                    with warnings.catch_warnings(record=True):
                        warnings.simplefilter("always")
                        expected = compare.attempt(
                            tok.encode_chat, messages, trusted=trusted, **same
                        )
                    if expected is None:
                        assert found.data["name"] == "ArgumentError"
                        continue
                    results += 1
                    assert found["ids"] == expected
                    assert found["text"] == tok.apply_chat_template(messages, **same)
                    assert found["uncountedParts"] == len(parts_of(messages, same["like"]))
                    counted = js.countChat({"messages": messages}, {**options, "trusted": trusted})
                    assert counted["count"] == len(expected)
                    assert counted["uncountedParts"] == found["uncountedParts"]
    assert 50 < results < 108
    js.free()


def test_wrong_markers_are_refused(host: Host) -> None:
    js = Tokenizer(host, fixture("bpe-llama3"))
    request = {"messages": [user([text("<__media__>"), IMAGE])]}
    for marker, message in (
        ("", "mediaMarker must not be empty"),
        (5, "mediaMarker must be a string"),
        (None, "the prompt has 2 media markers (<__media__>) for 1 image, audio or video part"),
        (None, "(mediaMarker chooses another)"),
    ):
        options = {"template": "chatml", "mediaMarker": marker}
        [error] = js.each("encodeChat", [(request, options)])
        assert message in error.data["message"]
    js.free()


def test_a_missing_bos_around_media_is_an_error(host: Host, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("rwkv"))
    gguf.set("tokenizer.ggml.add_bos_token", True)
    path = tmp_path / "no-bos.gguf"
    path.write_bytes(gguf.dump())
    js = Tokenizer(host, path)
    request = {"messages": [user([IMAGE])]}
    [error] = js.each("encodeChat", [(request, {"template": "chatml"})])
    assert error.data["name"] == "VocabError"
    assert "adds BOS to texts, but has no such token" in error.data["message"]
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
    for like in ("llama.cpp", "transformers"):
        for source in sources:
            with pytest.raises(ggtok.TemplateError) as expected:
                tok_render(source, like)
            [error] = js.each("renderChat", [(request, {"template": source, "like": like})])
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


def test_long_texts_have_the_library_s_ids_and_spans(host: Host, load_fixture: Any) -> None:
    """Ids and spans in each unit equal the library's for texts too long to be encoded in place."""
    tok, js = load_fixture("bpe-llama3"), Tokenizer(host, fixture("bpe-llama3"))
    rng = random.Random(SEED)
    words = ("word ", "Grüße ", "你好", "\U0001f44d\u200d", "\n\n", "12345 ", "é")
    text = "".join(rng.choices(words, k=40_000))
    for unit in compare.UNITS:
        ids, spans = tok.encode_with_offsets(text, unit=unit)
        found = js.spans(text, {"unit": unit})
        assert found == {"ids": ids, "starts": spans[:, 0].tolist(), "ends": spans[:, 1].tolist()}
    js.free()


@pytest.mark.parametrize("worker", [False, True])
def test_a_growing_text_may_be_cut_inside_a_surrogate_pair(
    host: Host, load_fixture: Any, worker: bool
) -> None:
    tok = load_fixture("bpe-llama3")
    js = Tokenizer(host, {"$contents": host.file(fixture("bpe-llama3"))}, worker=worker)
    found = js.grow(["a \ud83d", "\ude00 b", b" c", "\ud83d"])
    wanted = ["a \ufffd", "a \U0001f600 b", "a \U0001f600 b c", "a \U0001f600 b c\ufffd"]
    assert found["after"] == [tok.encode(text) for text in wanted]
    assert found["whole"] == found["after"][-1]
    block = js.encodeBlock("The kettle is on", {})
    ids, used = block["ids"], block["used"]
    rest = js.encodeBlock("The kettle is on"[used:], {"isFirst": False, "isLast": True})
    assert used > 0 and [*ids, *rest["ids"]] == tok.encode("The kettle is on")
    assert rest["used"] == len("The kettle is on") - used
