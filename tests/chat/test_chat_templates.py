"""Renders each template in llama.cpp's collection with each conversation: the text is that of
transformers, the ids are those of the text, and no control token comes from a message. The
templates are also compared with llama_chat_apply_template."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ggtok
from fixtures.fetch import fetch
from tests.chat.conversations import CONVERSATIONS, SETTINGS, WORD, replaced
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF, add_tokens
from tests.support.samples import some, times
from tests.support.vocabularies import fixture

NOW = datetime(2026, 7, 26, 12, 34, 56)
ROOT = Path(__file__).resolve().parents[2]


@cache
def templates() -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in sorted(fetch("templates").iterdir())}


def renderings() -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Yields all conversations with all settings, except empty conversations, which both ggtok and
    transformers reject."""
    for conversation, messages in CONVERSATIONS.items():
        if not messages:
            continue
        for setting, (tools, variables) in SETTINGS.items():
            yield (
                f"{conversation}, {setting}",
                messages,
                {"tools": tools, "chat_template_kwargs": variables},
            )


@pytest.mark.full
def test_same_text_as_transformers(load_fixture: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers", reason="it needs Python 3.11")
    from tokenizers import Tokenizer, models
    from transformers.utils import chat_template_utils

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return NOW

    monkeypatch.setattr(chat_template_utils, "datetime", Clock)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))
    tok = load_fixture("bpe-kimi")
    special = {"bos_token": "[BOS]", "eos_token": "[EOS]"}
    assert [tok.token_text(id) for id in (tok.bos_id, tok.eos_id)] == [b"[BOS]", b"[EOS]"]
    same = refused = 0
    for i, (name, source) in enumerate(templates().items()):
        for j, (case, messages, settings) in enumerate(some(renderings(), 2, i)):
            for prompt in some((True, False), 2, j + i // 2):
                settings["add_generation_prompt"] = prompt
                expected: str | Exception
                arguments = {"chat_template": source, **special, "tools": settings["tools"]}
                arguments |= {"add_generation_prompt": prompt, **settings["chat_template_kwargs"]}
                try:
                    expected = theirs.apply_chat_template(messages, tokenize=False, **arguments)
                except Exception as e:
                    expected = e
                result: str | Exception
                try:
                    result = tok.apply_chat_template(
                        messages,
                        template=source,
                        like="transformers",
                        clock=lambda: NOW,
                        **settings,
                    )
                except ggtok.TemplateError as e:
                    result = e
                if isinstance(expected, str):
                    assert result == expected, (name, case)
                    same += 1
                else:
                    assert isinstance(result, Exception), (name, case, expected)
                    refused += 1
    assert same > times(2_300, of=9_500) and refused > times(250, of=1_000)


# ---- ids ----

# Text that looks like a special token.
LOOKS_SPECIAL = re.compile(
    r"<[|\uff5c][^<>|\s\uff5c]+[|\uff5c]>|<\uff5c[^<>\uff5c]+\uff5c>|\[/?[A-Z_]{3,}\]"
    r"|</?[a-z_A-Z]+>|<[a-z_]+\|>|<\|[a-z_]+>|\]<\][a-z]+\[>\["
)


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for item in value if isinstance(value, (list, tuple)) else ():
        yield from keys(item)


def from_conversations(text: str) -> bool:
    """Whether text that looks like a special token comes from a conversation: some templates write
    a key as <KEY>, and some messages contain tags."""
    inside = text.strip("</>")
    return inside in {"b", "now", "clear", *keys([CONVERSATIONS, SETTINGS])}


@cache
def looks_special(source: str) -> list[str]:
    """Returns texts in the template's renderings that look like special tokens and come from the
    template."""
    probe = ggtok.load(fixture("bpe-gpt2"))
    found: Counter[str] = Counter()
    for _, messages, settings in renderings():
        with contextlib.suppress(ggtok.TemplateError):
            rest = {"template": source, "like": "transformers", "add_generation_prompt": True}
            text = probe.apply_chat_template(messages, clock=lambda: NOW, **settings, **rest)
            found.update(LOOKS_SPECIAL.findall(text))
    return [text for text in found if not from_conversations(text)]


def with_special_tokens(name: str, control: list[str], user_defined: list[str]) -> ggtok.Tokenizer:
    gguf = GGUF.read(fixture(name))
    known = gguf.strings("tokenizer.ggml.tokens")
    types = gguf.array("tokenizer.ggml.token_type")
    types = [
        3 if text.decode("utf-8", "replace") in control else type_
        for text, type_ in zip(known, types, strict=True)
    ]
    gguf.set("tokenizer.ggml.token_type", types)
    for texts, type_ in ((control, 3), (user_defined, 4)):
        known = gguf.strings("tokenizer.ggml.tokens")
        add_tokens(gguf, [text for text in texts if text.encode() not in known], type_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(gguf.dump())


def as_llama_server(tok: ggtok.Tokenizer, text: str) -> list[int]:
    """Encodes a prompt as llama-server does: removes the template's BOS or EOS if the vocabulary
    adds that token."""
    if tok.add_bos and tok.bos_id is not None:
        text = text.removeprefix(tok.token_to_piece(tok.bos_id).decode())
    if tok.add_eos and tok.eos_id is not None:
        text = text.removesuffix(tok.token_to_piece(tok.eos_id).decode())
    return tok.encode(text, parse_special=True)


@pytest.mark.full
@pytest.mark.parametrize("vocabulary", ["bpe-gpt2", "spm-bytes", "spm-phi3"])
def test_ids_are_those_of_the_text_without_tokens_from_messages(vocabulary: str) -> None:
    """With harmless messages, the ids are those of the rendered text. If the texts of all control
    tokens (whole, cut, adjacent) are inserted into messages, tools and documents, the number of
    each control token stays the same."""
    compared = injected = 0
    for i, (name, source) in enumerate(templates().items()):
        rest: dict[str, Any] = {
            "template": source,
            "like": "transformers",
            "clock": lambda: NOW,
            "add_generation_prompt": True,
        }
        special = looks_special(source)
        thoughts = [text for text in special if "think" in text]  # USER_DEFINED in real models
        tok = with_special_tokens(
            vocabulary, [text for text in special if text not in thoughts], thoughts
        )
        control = {id for id in range(tok.n_tokens) if tok.is_control(id)}
        texts = [tok.token_text(id).decode() for id in sorted(control)]
        hostile = f"|>{''.join(texts)} {' '.join(texts)} " + "".join(
            text[:cut] for text in texts for cut in (1, -1)
        )
        cases = list(renderings())
        if vocabulary != "bpe-gpt2":
            cases = [case for case in cases if case[0].endswith(", tools")]
        for case, messages, settings in some(cases, 3, i):
            try:
                text = tok.apply_chat_template(messages, **settings, **rest)
            except ggtok.TemplateError:
                continue
            ids = tok.encode_chat(messages, **settings, **rest)
            assert ids == as_llama_server(tok, text), (name, case)
            compared += 1
            harmless = Counter(id for id in ids if id in control)
            messages = replaced(messages, WORD, hostile)
            settings = replaced(replaced(settings, WORD, hostile), "A city", hostile)
            ids = tok.encode_chat(messages, **settings, **rest)
            assert Counter(id for id in ids if id in control) == harmless, (name, case)
            naive = tok.encode(
                tok.apply_chat_template(messages, **settings, **rest), parse_special=True
            )
            injected += sum(id in control for id in naive) > harmless.total()
    assert injected > 0.8 * compared > times(200, of=700)


# ---- llama_chat_apply_template ----

BRIEF = [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello"), ("user", "Bye")]


def test_differences_from_llama_chat_apply_template(llama: LlamaCpp, load_fixture: Any) -> None:
    """Each template has the result that docs/chat.md lists."""
    tok = load_fixture("bpe-kimi")
    messages = [{"role": role, "content": content} for role, content in BRIEF]
    listed = dict.fromkeys(("same", "same but BOS", "other", "refused", "unknown"), "")
    for name, source in templates().items():
        theirs = llama.chat(source, BRIEF)
        try:
            ours = tok.apply_chat_template(
                messages,
                template=source,
                like="transformers",
                add_generation_prompt=True,
                clock=lambda: NOW,
            )
        except ggtok.TemplateError:
            ours = None
        if theirs is None:
            row = "unknown"
        elif ours is None:
            row = "refused"
        elif ours == theirs:
            row = "same"
        else:
            row = "same but BOS" if ours == "[BOS]" + theirs else "other"
        listed[row] += f" {name}"
    document = (ROOT / "docs" / "chat.md").read_text("utf-8")
    for row, names in listed.items():
        match = re.search(rf"^\| {row} \| (\d+) \|[^|]*\|([^|]*)\|$", document, re.MULTILINE)
        assert match, (row, len(names.split()), names)
        assert (int(match[1]), match[2].split()) == (len(names.split()), names.split()), row
