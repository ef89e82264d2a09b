"""The corpus of faults: each fault is found under its own code; corrections restore the original's
ids and prompts; llama.cpp loads the edited files and agrees."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.inspect.doctor.codes import SERIOUS
from tests.chat.llamaserver import Server, ServerError
from tests.checks.corpus import (
    CORPUS,
    ORIGINALS,
    REAL_ONES,
    SCORES,
    TOKENS,
    TYPES,
    UNUSED,
    Row,
    with_tensors,
)
from tests.checks.healthy import CHAT, base
from tests.support.full import full
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF, add_tokens

TEXTS = [
    "",
    "Hello, World! I'm sure they'LL pay $1234567.89 in 2024.\n\n",
    "\tdef f(x):\r\n        return x**2  # ok...   \n",
    "été Привет مرحبا 你好\uff0c世界 한국어 \U0001f44d\U0001f3fd \x00\x7f",
    "<|im_start|>user\nHi<|im_end|><|done|><|eot_id|><|end|></s><0x0A>",
    "the quick brown fox and the endless land, nd nd la",
]
CHATS: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "Hi"}],
    [
        {"role": "user", "content": "What is 2 + 2?"},
        {"role": "assistant", "content": "4, and"},
        {"role": "user", "content": "Bye <|im_end|>"},
    ],
]
SMALL = [name for name in ORIGINALS if name[0].isupper() or name.startswith("own")]


def marked(names: list[str], originals: list[str]) -> list[Any]:
    """Marks cases with large vocabularies as running only with --full."""
    plain = {*SMALL, *REAL_ONES}
    return [n if o in plain else full(n) for n, o in zip(names, originals, strict=True)]


ROWS = marked(list(CORPUS), [row.original for row in CORPUS.values()])
FIXED = [n for n, row in CORPUS.items() if row.fixed]
FIXED_ROWS = marked(FIXED, [CORPUS[n].original for n in FIXED])


@cache
def original_findings(name: str) -> list[ggtok.Finding]:
    return ggtok.doctor(ORIGINALS[name]().dump())


def original_codes(name: str) -> set[str]:
    return {f.code for f in original_findings(name)}


def faulty(row: Row) -> GGUF:
    gguf = ORIGINALS[row.original]()
    row.fault(gguf)
    return gguf


def loaded(source: Any) -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(source)


def behaviour(tok: ggtok.Tokenizer) -> list[Any]:
    """Returns the ids and prompts for some texts and conversations."""
    results: list[Any] = [
        tok.encode(text, add_special=added, parse_special=parsed)
        for text in TEXTS
        for added in (True, False)
        for parsed in (True, False)
    ]
    for chat in CHATS if tok.chat_template is not None else []:
        for like in ("llama.cpp", "transformers"):
            options: Any = {"like": like, "add_generation_prompt": True}
            results += [tok.apply_chat_template(chat, **options), tok.encode_chat(chat, **options)]
    return results


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 50
    assert len({row.code for row in CORPUS.values()}) >= 25
    assert len(FIXED) >= 20


@pytest.mark.parametrize("name", marked(list(ORIGINALS), list(ORIGINALS)))
def test_originals_have_no_serious_findings(name: str) -> None:
    """The originals have no serious findings."""
    assert [f.code for f in original_findings(name) if f.severity == SERIOUS] == []


@pytest.mark.parametrize("name", ROWS)
def test_each_fault_is_found(name: str) -> None:
    row = CORPUS[name]
    found = ggtok.doctor(faulty(row).dump())
    codes = {f.code for f in found}
    before = original_codes(row.original)
    assert codes - before == {row.code, *row.also}
    assert before - codes <= {*row.lost, *_HIDDEN.get(row.code, ())}
    assert any(f.changes for f in found if f.code not in before) or not row.fixed
    assert row.fixed or not next(f for f in found if f.code == row.code).changes


# By code: other codes that doctor then doesn't report, because they would be meaningless.
_HIDDEN = dict.fromkeys(("GGT101", "GGT102", "GGT103", "GGT104"), ("GGT404",))


@pytest.mark.parametrize("name", FIXED_ROWS)
def test_corrections_restore_the_original(name: str, tmp_path: Path, llama: LlamaCpp) -> None:
    """A corrected file has no findings that `--fix` would correct, and gives the original's ids and
    prompts. llama.cpp gives the same ids."""
    row = CORPUS[name]
    path = faulty(row).write(tmp_path / "model.gguf")
    assert ggtok.edit(path, fix="all").changes
    expected = {f.code for f in original_findings(row.original) if not f.changes}
    assert {f.code for f in ggtok.doctor(path)} == expected
    ours = loaded(path)
    assert behaviour(ours) == behaviour(loaded(ORIGINALS[row.original]().dump()))
    same_ids(llama, path, ours)
    import gguf

    assert set(ours.metadata) <= set(gguf.GGUFReader(path).fields)
    ggtok.undo(path)
    assert path.read_bytes() == faulty(row).dump()


def same_ids(llama: LlamaCpp, path: Path, ours: ggtok.Tokenizer) -> None:
    theirs = llama.load(path)
    for added in (True, False):
        for parsed in (True, False):
            options = {"add_special": added, "parse_special": parsed}
            ids = theirs.tokenize_many([text.encode() for text in TEXTS], **options)
            assert [ours.encode(text, **options) for text in TEXTS] == ids
    theirs.free()


# ---- models with tensors ----


PROMPTS = [[5, 7, 100, 9, 33], [5], [7, 9], [40, 41, 42], [99, 3], [12, 200, 13], [1, 2], [77]]


def logprobs(model: Path) -> list[Any]:
    """Returns llama-server's most probable tokens after each of PROMPTS; None if generation ends
    there."""
    found: list[Any] = []
    with Server(model, CHAT) as server:
        for ids in PROMPTS:
            body = {"prompt": ids, "n_predict": 1, "n_probs": 20, "temperature": 0, "seed": 1}
            status, answer = server.post("/completion", body)
            assert status == 200, answer
            first = answer.get("completion_probabilities")
            found.append(first and [(t["id"], t["logprob"]) for t in first[0]["top_logprobs"]])
    return found


def same_logprobs(model: Path, before: list[Any]) -> None:
    pairs = [pair for pair in zip(before, logprobs(model), strict=True) if None not in pair]
    assert len(pairs) >= 3 and all(one == other for one, other in pairs)
    assert all(len({p for _, p in one}) == 20 for one, _ in pairs)


TENSORS = [
    n
    for n in FIXED
    if CORPUS[n].original in ("ChatML", "own end of turn", "Llama 3")
    and CORPUS[n].code != "GGT602"  # the key has a different name in these models
]


@pytest.mark.parametrize("name", ["EOS is BOS", *[full(n) for n in TENSORS if n != "EOS is BOS"]])
def test_corrections_keep_the_logits(name: str, tmp_path: Path, llama: LlamaCpp) -> None:
    row = CORPUS[name]
    model = with_tensors(faulty(row), tmp_path)
    before = logprobs(model)
    edited = ggtok.edit(model, fix="all")
    assert edited.changes
    same_logprobs(model, before)
    same_ids(llama, model, loaded(model))
    out = tmp_path / "out.gguf"
    ggtok.edit(model, {"general.name": "x" * 5000}, out=out)
    same_logprobs(out, before)


def test_lost_padding_is_restored(tmp_path: Path, llama: LlamaCpp) -> None:
    """The correction of GGT601 restores lost padding tokens, so that llama.cpp loads the model
    again, with the original's ids and logits."""
    original = base()
    add_tokens(original, [f"[PAD{id}]" for id in range(len(original.array(TOKENS)), 416)], UNUSED)
    model = with_tensors(original, tmp_path)
    expected = logprobs(model)
    n = len(base().array(TOKENS))
    assert n < 416
    shorter = {key: original.array(key)[:n] for key in (TOKENS, TYPES, SCORES) if key in original}
    ggtok.edit(model, shorter, force=True)
    with pytest.raises(ServerError):
        logprobs(model)
    [found] = [f for f in ggtok.doctor(model) if f.code == "GGT601"]
    assert found.detail == f"416 rows, {n} tokens"
    ggtok.edit(model, fix="GGT601")
    assert "GGT601" not in {f.code for f in ggtok.doctor(model)}
    assert loaded(model).n_tokens == 416
    same_logprobs(model, expected)
    same_ids(llama, model, loaded(model))
    gguf = base()
    small = with_tensors(gguf, tmp_path)
    more = [*gguf.strings(TOKENS), b"one more"]
    ggtok.edit(small, {TOKENS: more, TYPES: [*gguf.array(TYPES), 1]}, force=True)
    [found] = [f for f in ggtok.doctor(small) if f.code == "GGT601"]
    assert not found.changes  # the embedding's missing rows can't be recreated
