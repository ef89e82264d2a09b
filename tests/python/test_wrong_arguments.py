"""Every public call with every kind of wrong object raises an error of ggtok's, or TypeError."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.support.vocabularies import fixture
from tests.support.wrong import SurrogatePath, wrong_values

pytestmark = pytest.mark.filterwarnings("ignore")
MODEL = str(fixture("bpe-llama3"))


VALID: dict[str, Any] = {
    "text": "x",
    "texts": ["x"],
    "ids": [1],
    "lists": [[1]],
    "n": 3,
    "source": MODEL,
    "path": MODEL,
    "changes": {"general.name": "x"},
    "paths": [os.devnull],
    "out": "out.bin",
    "id": 1,
    "prefix": b"x",
    "unit": "char",
    "special": "keep",
    "sources": ["x"],
    "size": 10,
}
# These run another program, train, or belong to chat, which tests/chat tests.
CHAT = {"apply_chat_template", "count_chat", "encode_chat", "encode_chat_batch", "trim_chat"}
LEFT_OUT = {"convert", "train", "count_words", "doctor", *CHAT}
CHAT_OPTIONS = {"like", "chat_template_kwargs"}


def public_calls() -> Iterator[tuple[str, Callable[..., object]]]:
    tok = ggtok.load(MODEL)
    for name in ggtok.__all__:
        if inspect.isfunction(getattr(ggtok, name)) and name not in LEFT_OUT:
            yield name, getattr(ggtok, name)
    for name in dir(tok):
        if name[0] != "_" and name not in LEFT_OUT and callable(getattr(tok, name)):
            yield f"Tokenizer.{name}", getattr(tok, name)


CALLS = dict(public_calls())


@pytest.mark.parametrize("name", CALLS)
def test_wrong_objects(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = CALLS[name]
    monkeypatch.chdir(tmp_path)
    parameters = [
        p
        for p in inspect.signature(call).parameters.values()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    needed = {p.name: VALID.get(p.name, "x") for p in parameters if p.default is p.empty}
    if name == "edit":
        needed["dry_run"] = True
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
    for parameter in parameters:
        if parameter.name in CHAT_OPTIONS:
            continue
        for value in wrong_values():
            arguments = {**needed, parameter.name: value}
            given = [arguments.pop(each) for each in positional if each in arguments]
            try:
                found = call(*given, **arguments)
                for _ in zip(range(5), found, strict=False) if hasattr(found, "__next__") else ():
                    pass
            except (ggtok.GGTokError, TypeError):
                pass
            except Exception as e:
                raise AssertionError(f"{name}({parameter.name}={type(value)})") from e


def test_messages_quote_little() -> None:
    tok = ggtok.load(MODEL)
    for call in (
        lambda: tok.decode([10**5000]),
        lambda: tok.encode_with_offsets("x", unit="y" * 10**6),
        lambda: tok.encode("x", add_special=["y"] * 10**6),  # type: ignore[arg-type]
        lambda: tok.truncate("x", 10**5000),
    ):
        with pytest.raises(ggtok.GGTokError) as e:
            call()
        assert len(str(e.value)) < 300


def test_paths_that_no_system_has() -> None:
    for path in ("\ud800", "a\0b", SurrogatePath()):
        for call in (ggtok.undo, ggtok.recover, lambda path: ggtok.edit(path, {"x": 1})):
            with pytest.raises(ggtok.InvalidValueError, match="path"):
                call(path)
