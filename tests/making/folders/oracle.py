"""What transformers makes of the folders, live or as recorded in recorded.json."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from ggtok.vocabularies.convert import originals
from ggtok.vocabularies.convert.package_facts import PackageFacts
from tests.making.folders.shapes import Shape, shapes

RECORDED = Path(__file__).with_name("recorded.json")
TEXTS = (
    "Hello world",
    "The quick brown fox jumps over the lazy dog.",
    "it's 12345 + 678 = 13023",
    "  two  spaces\n\nand lines\t\n",
    "def f(x):\n    return x ** 2  # TODO",
    "CamelCase IT'S LOUD",
    "https://example.org/a?b=c&d=%20",
    "a",
    " a",
    "",
)


def texts_for(facts: PackageFacts) -> list[str]:
    """Returns texts with the tokens that transformers knows, in every position."""
    texts = list(TEXTS)
    for id in sorted(facts.added or {}):
        text = facts.tokens[id]
        texts += [text, f"a{text}b", f"{text} a {text}", f"{text}{text}\n{text}"]
    return texts


def answer(shape: Shape) -> dict[str, Any]:
    """Returns the facts and the ids of texts, according to the installed transformers."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = originals._transformers(os.fspath(shape.write(Path(folder))))
        facts = json.loads(json.dumps(loaded.describe()))
        known = PackageFacts.of_answer(facts)
        texts = texts_for(known)
        return {"facts": facts, "ids": loaded.encode(texts)}


def recorded() -> dict[str, dict[str, Any]]:
    answers: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text("utf-8"))
    bases = answers.pop("vocabularies")
    for each in answers.values():
        base = bases[each["facts"].pop("base")]
        each["facts"]["tokens"] = {**dict(enumerate(base)), **each["facts"]["tokens"]}
    return answers


def record() -> None:
    """Writes recorded.json: facts without the texts of the tokens that many shapes share."""
    answers: dict[str, Any] = {}
    bases: list[list[str]] = []
    for shape in shapes():
        if shape.refused or shape.rule:
            continue
        each = answer(shape)
        tokens = {int(id): text for id, text in each["facts"]["tokens"].items()}
        texts = [tokens[id] for id in range(len(tokens)) if id in tokens]
        n = min(300, len(texts))
        base = next((i for i, old in enumerate(bases) if old[:n] == texts[: len(old)][:n]), None)
        if base is None:
            bases.append(texts)
            base = len(bases) - 1
        known = dict(enumerate(bases[base]))
        more = {id: text for id, text in tokens.items() if known.get(id) != text}
        gone = [id for id in known if id not in tokens]
        if gone:  # a longer base
            bases.append(texts)
            base, more = len(bases) - 1, {}
        each["facts"] |= {"base": base, "tokens": more}
        answers[shape.name] = each
    answers = {"vocabularies": bases, **answers}
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
    RECORDED.write_text("{\n" + rows + "\n}\n", "utf-8")


if __name__ == "__main__":
    record()
