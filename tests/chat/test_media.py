"""Images, audio and video in chat messages. (tests.chat.parity compares them with llama-server.)"""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import pytest

import ggtok
from ggtok import InvalidTypeError, InvalidValueError, Tokenizer, VocabError, VocabWarning, load
from ggtok.chat import api, media
from tests.chat.requests import AUDIO, IMAGE, INPUT_VIDEO, VIDEO, says, text, user
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

TURNS = (
    "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>{{ m.content }}"
    "<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>{% endif %}"
)
TYPED = (
    "{% for m in messages %}{{ m.role }}:{% for p in m.content %}({{ p.text }}){% endfor %}"
    "<|eot_id|>{% endfor %}"
)
TRANSFORMERS = (
    "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}"
    "{% else %}<{{ p.type }}>{% endif %}{% endfor %}{% endfor %}"
)


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set("tokenizer.chat_template", TURNS.encode())
    return load(gguf.dump())


def render(tok: Tokenizer, parts: Any, **more: Any) -> str:
    rendered = tok.apply_chat_template([user(parts)], add_generation_prompt=False, **more)
    return rendered.removeprefix("<|start_header_id|>user<|end_header_id|>").removesuffix(
        "<|eot_id|>"
    )


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([IMAGE], "<__media__>"),
        ([text("a"), IMAGE], "a<__media__>"),
        ([IMAGE, text("a")], "<__media__>a"),
        ([text("a"), text("b"), IMAGE, text("c"), text("d")], "a\nb<__media__>c\nd"),
        ([AUDIO, VIDEO, INPUT_VIDEO], "<__media__>" * 3),
        ([text(""), IMAGE, text(""), text("a")], "<__media__>\na"),
        ([text("a"), text(""), IMAGE, text("")], "a\n<__media__>"),
    ],
)
def test_parts_become_markers(tok: Tokenizer, parts: Any, shown: str) -> None:
    assert render(tok, parts) == shown
    assert render(tok, parts, media_marker="<M>") == shown.replace(media.MARKER, "<M>")


def test_typed_templates_get_one_text(tok: Tokenizer) -> None:
    messages = [user([text("a"), IMAGE, text("b")]), user([text("c"), text("d")]), user("e")]
    shown = tok.apply_chat_template(messages, template=TYPED)
    assert shown == ("user:(a<__media__>b)<|eot_id|>user:(c)(d)<|eot_id|>user:(e)<|eot_id|>")


def test_ids_are_those_of_the_texts_around(tok: Tokenizer) -> None:
    messages = [user([text("Hello the"), IMAGE, text("re"), AUDIO]), user("So?")]
    with pytest.warns(VocabWarning, match=r"^the tokens of 2 image, audio or video parts aren't"):
        ids = tok.encode_chat(messages, trusted=True)
    texts = tok.apply_chat_template(messages).split(media.MARKER)
    assert len(texts) == 3
    bos = [] if not tok.add_bos else [tok.bos_id]
    assert ids == bos + [
        id for t in texts for id in tok.encode(t, add_special=False, parse_special=True)
    ]


@pytest.mark.parametrize("name", ["spm", "bpe-llama3", "wpm", "ugm", "rwkv"])
def test_bos_and_eos_are_added_around_media(name: str) -> None:
    gguf = GGUF.read(fixture(name))
    gguf.set("tokenizer.chat_template", b"{% for m in messages %}{{ m.content }}{% endfor %}")
    for flag in "bos", "eos":
        gguf.set(f"tokenizer.ggml.add_{flag}_token", True)
        gguf.set(f"tokenizer.ggml.{flag}_token_id", 1, "u32")
    tok = load(gguf.dump())
    with pytest.warns(VocabWarning, match="1 image, audio or video part aren't"):
        ids = tok.encode_chat([user([text("Hi"), IMAGE])])
    assert ids == [1, *tok.encode("Hi", add_special=False), 1]


def test_a_missing_bos_raises_an_error() -> None:
    gguf = GGUF.read(fixture("rwkv"))
    gguf.set("tokenizer.ggml.add_bos_token", True)
    tok = load(gguf.dump())
    assert tok.bos_id is None
    with pytest.raises(VocabError, match="adds BOS to texts, but has no such token"):
        tok.count_chat([user([IMAGE])], template=TURNS)


def test_image_tokens_are_added_to_counts(tok: Tokenizer) -> None:
    messages = [user([IMAGE, text("Hi"), AUDIO]), says("assistant", [IMAGE]), user("x")]
    with pytest.warns(VocabWarning) as record:
        n = tok.count_chat(messages)
    assert len(record) == 1
    with pytest.warns(VocabWarning):
        assert n == len(tok.encode_chat(messages))
    parts = []

    def tokens(part: Any) -> int:
        parts.append(part)
        return 100 if part["type"] == "image_url" else 7

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tok.count_chat(messages, image_tokens=256) == n + 768
        assert tok.count_chat(messages, image_tokens=0) == n
        assert tok.count_chat(messages, image_tokens=tokens) == n + 207
        assert tok.count_chat([user("Hi")], image_tokens=5) == tok.count_chat([user("Hi")])
        tok.apply_chat_template(messages)
    assert parts == [IMAGE, AUDIO, IMAGE]


def test_one_warning_for_a_batch(tok: Tokenizer) -> None:
    conversations = [[user([IMAGE])], [user("Hi")], ([user([IMAGE, IMAGE])])] * 50
    with pytest.warns(VocabWarning, match="of 150 image") as record:
        lists = tok.encode_chat_batch(conversations, threads=2)
    assert len(record) == 1
    assert record[0].filename == __file__
    with pytest.warns(VocabWarning):
        assert lists[2] == tok.encode_chat(conversations[2])


def test_media_in_bodies_are_counted(tok: Tokenizer) -> None:
    body = {"messages": [user([text("Hi"), IMAGE, IMAGE])]}
    n, uncounted = api.count_body(tok._loaded, body)
    assert uncounted == 2
    assert api.count_body(tok._loaded, body, image_tokens=10) == (n + 20, 0)
    assert api.count_body(tok._loaded, {"messages": [user("Hi")]})[1] == 0


def test_continued_messages_lose_their_media(tok: Tokenizer) -> None:
    """As in llama-server, a continued message loses its media, so the request can't be counted."""
    messages = [user("x"), says("assistant", [text("a"), IMAGE, text("b")])]
    assert tok.apply_chat_template(messages).endswith("a\n\nb")
    with pytest.raises(InvalidValueError, match=r"the prompt has 0 media markers .* for 1 image"):
        tok.count_chat(messages)


@pytest.mark.parametrize(
    ("template", "n"),
    [
        ("{% for m in messages %}{{ m.role }}{% endfor %}", 0),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", 2),
    ],
)
def test_templates_that_lose_or_repeat_markers_raise_errors(
    tok: Tokenizer, template: str, n: int
) -> None:
    with pytest.raises(InvalidValueError, match=f"has {n} media marker.* for 1 image.*media_mark"):
        tok.count_chat([user([IMAGE])], template=template)


def test_markers_in_texts_raise_errors(tok: Tokenizer) -> None:
    messages = [user([text(f"{media.MARKER}?"), IMAGE])]
    with pytest.raises(InvalidValueError, match="has 2 media markers"):
        tok.encode_chat(messages)
    assert tok.count_chat(messages, media_marker="<M>", image_tokens=0) > 0
    # Without media, the marker is ordinary text.
    plain = [user(media.MARKER)]
    assert tok.decode(tok.encode_chat(plain)).count(media.MARKER) == 1


def test_control_tokens_next_to_media_are_text(tok: Tokenizer) -> None:
    messages = [user([text("<|eot_id|>"), IMAGE, text("<|eot_id|>")])]
    eot = tok.eot_id
    with pytest.warns(VocabWarning):
        assert tok.encode_chat(messages).count(eot) == 1
    with pytest.warns(VocabWarning):
        assert tok.encode_chat(messages, trusted=True).count(eot) == 3
    # The marker may be a control token's text: it isn't encoded.
    with pytest.warns(VocabWarning):
        ids = tok.encode_chat([user([IMAGE])], media_marker="<|end_of_text|>")
    assert tok.text_to_token("<|end_of_text|>") not in ids


def test_masks_cover_the_texts_between_media(tok: Tokenizer) -> None:
    template = (
        "{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content }}{% endgeneration %}"
        "<|eot_id|>{% endfor %}"
    )
    messages = [user([text("Hi"), IMAGE, text("there")])]
    keywords: Any = {"template": template, "like": "llama.cpp"}
    with pytest.warns(VocabWarning):
        ids, mask = tok.encode_chat(messages, return_assistant_mask=True, **keywords)
    with pytest.warns(VocabWarning):
        assert ids == tok.encode_chat(messages, **keywords)
    masked = [id for id, on in zip(ids, mask, strict=True) if on]
    assert masked == tok.encode("Hi", add_special=False) + tok.encode("there", add_special=False)


def test_known_ids_are_kept_with_media(tok: Tokenizer) -> None:
    messages = [user([text("Hi"), IMAGE]), says("assistant", "A cat"), user([IMAGE, text("And?")])]
    with pytest.warns(VocabWarning, match="2 image"):
        whole = tok.encode_chat(messages, trusted=True)
    with pytest.warns(VocabWarning, match="1 image"):
        known = tok.encode_chat(messages[:2], trusted=True, continue_final_message=False)
    known = known[: -1 if known[-1] != tok.eot_id else None]
    with pytest.warns(VocabWarning, match="1 image"):
        found = tok.encode_chat(messages, trusted=True, known=(2, known))
    assert found[: len(known)] == known
    assert len(found) >= len(known)
    assert tok.decode(found) == tok.decode(whole)
    n = tok.count_chat(messages, trusted=True, known=(2, known), image_tokens=50)
    assert n == len(found) + 50


@pytest.mark.filterwarnings("ignore:the tokens of")
@pytest.mark.parametrize(
    "messages",
    [
        [user("Hi"), user([IMAGE, text("the")])],
        [user([text("Hi"), IMAGE]), user("the")],
        [user([IMAGE]), user([IMAGE])],
    ],
)
def test_space_prefix_after_a_marker(messages: list[Any]) -> None:
    """SPM adds a space at the beginning of each text between markers, also after known ids."""
    tok = load(fixture("spm"))
    keywords: Any = {"template": "{% for m in messages %}{{ m.content }}{% endfor %}"}
    known = tok.encode_chat(messages[:1], **keywords)
    assert tok.encode_chat(messages, known=(1, known), **keywords) == tok.encode_chat(
        messages, **keywords
    )


def test_like_transformers(tok: Tokenizer) -> None:
    parts = [text("a"), {"type": "image"}, {"type": "audio", "audio": "x.wav"}, IMAGE]
    keywords: Any = {"like": "transformers", "template": TRANSFORMERS}
    shown = tok.apply_chat_template([user(parts)], **keywords)
    assert shown == "a<image><audio><image_url>"
    with pytest.warns(VocabWarning, match="3 image"):
        n = tok.count_chat([user(parts)], **keywords)
    assert n == tok.count(shown)
    assert tok.count_chat([user(parts)], image_tokens=10, **keywords) == n + 30


def test_trim_chat_counts_media(tok: Tokenizer) -> None:
    messages = [user([IMAGE]), says("assistant", "A"), user("B")]
    assert ggtok.trim_chat(tok, messages, 500, image_tokens=600) == messages[2:]
    assert ggtok.trim_chat(tok, messages, 500, image_tokens=6) == messages
    talk = [user([IMAGE]), says("assistant", "A")] * 20 + [user("B")]
    with pytest.warns(VocabWarning) as warned:
        kept = ggtok.trim_chat(tok, talk, 100)
    assert 1 < len(kept) < len(talk)
    [warning] = warned
    assert "20 image, audio or video parts" in str(warning.message)
    assert warning.filename == __file__
    assert kept == ggtok.trim_chat(tok, talk, 100, image_tokens=0)


def test_objects_with_model_dump(tok: Tokenizer) -> None:
    class Message:
        def model_dump(self) -> dict[str, Any]:
            return {**user([text("Hi"), IMAGE]), "name": None}

    assert render(tok, [text("Hi"), IMAGE]) in tok.apply_chat_template([Message()])
    with pytest.warns(VocabWarning, match="1 image"):
        tok.count_chat([Message()])


def test_show(tok: Tokenizer) -> None:
    shown = tok.show([user([text("Hi"), IMAGE, text("there")])], trusted=True)
    with pytest.warns(VocabWarning):
        ids = tok.encode_chat([user([text("Hi"), IMAGE, text("there")])], trusted=True)
    assert shown.ids == ids


@pytest.mark.parametrize(
    ("keywords", "error", "pattern"),
    [
        ({"image_tokens": "4"}, InvalidTypeError, "image_tokens must be an integer, not str"),
        ({"image_tokens": 1.5}, InvalidTypeError, "image_tokens must be an integer, not float"),
        ({"image_tokens": -1}, InvalidValueError, "image_tokens must not be negative, not -1"),
        (
            {"image_tokens": lambda part: None},
            InvalidTypeError,
            "the result of image_tokens must be an integer, not NoneType",
        ),
        (
            {"image_tokens": lambda part: -2},
            InvalidValueError,
            "the result of image_tokens must not be negative, not -2",
        ),
        ({"media_marker": b"x"}, InvalidTypeError, "media_marker must be str, not bytes"),
        ({"media_marker": ""}, InvalidValueError, "media_marker must not be empty"),
        ({"media_marker": "\ud800"}, InvalidValueError, "media_marker: .* lone surrogate"),
    ],
)
def test_wrong_arguments_raise_errors(
    tok: Tokenizer, keywords: Any, error: type[Exception], pattern: str
) -> None:
    with pytest.raises(error, match=pattern):
        tok.count_chat([user([IMAGE])], **keywords)


def test_errors_of_a_function_pass_through(tok: Tokenizer) -> None:
    def fail(part: object) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tok.count_chat([user([IMAGE])], image_tokens=fail)


def test_markers_are_part_of_the_cached_request(tok: Tokenizer) -> None:
    for marker in "<A>", "<B>", None, "<A>":
        assert render(tok, [IMAGE], media_marker=marker) == (marker or media.MARKER)
    unpickled = pickle.loads(pickle.dumps(tok))
    assert render(unpickled, [IMAGE], media_marker="<B>") == "<B>"


def test_many_parts_take_linear_time(tok: Tokenizer) -> None:
    n = 5_000
    messages = [user([IMAGE, text("a")] * n)]
    assert tok.count_chat(messages, image_tokens=1) > 2 * n
