"""tokenizer.json of Hugging Face's tokenizers: what its models have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as field_
from typing import Any

from ggtok.making import spelling
from ggtok.making.convert.differences import plain_added
from ggtok.making.convert.draft import Draft
from ggtok.making.convert.folder import Folder
from ggtok.making.convert.reading import by_id, checked, field, token_id, utf8
from ggtok.making.report import Difference


@dataclass
class Source:
    """A tokenizer.json, and the folder that it lies in."""

    document: dict[str, Any]
    folder: Folder
    pre: str | None = None  # that the caller wants
    special: Mapping[str, str] = field_(
        default_factory=dict
    )  # special tokens' texts by name, of the format itself

    @property
    def model(self) -> dict[str, Any]:
        return field(self.document, "model", dict, "")

    @property
    def added(self) -> list[dict[str, Any]]:
        entries = field(self.document, "added_tokens", list, "", [])
        return [checked(row, dict, f"added_tokens[{i}]") for i, row in enumerate(entries)]


def vocab_of(source: Source) -> dict[int, str]:
    """A model's tokens by id."""
    vocab = field(source.model, "vocab", dict, "model")
    return by_id(vocab.items(), "model.vocab")


def ids_of(source: Source) -> dict[str, int]:
    """All tokens' ids, the added ones on top."""
    vocab = source.model.get("vocab")
    ids: dict[str, int] = {}
    if isinstance(vocab, dict):
        ids = dict(vocab)
    elif isinstance(vocab, list):
        ids = {row[0]: id for id, row in enumerate(vocab)}
    for i, row in enumerate(source.added):
        where = f"added_tokens[{i}]"
        ids[field(row, "content", str, where)] = token_id(row.get("id"), where + ".id")
    return ids


def add_added(source: Source, draft: Draft, *, score: float = 0.0) -> None:
    """The added tokens: control tokens if special, else user-defined ones."""
    for i, row in enumerate(source.added):
        where = f"added_tokens[{i}]"
        id = token_id(row.get("id"), where + ".id")
        text = utf8(field(row, "content", str, where), where + ".content")
        special = field(row, "special", bool, where, False)
        kind = spelling.CONTROL if special else spelling.USER_DEFINED
        if draft.types.get(id) == spelling.UNKNOWN:
            kind = spelling.UNKNOWN
        draft.set(id, text, kind, score)
    _note_conditions(source, draft)


def _note_conditions(source: Source, draft: Draft) -> None:
    """Added tokens that are found under conditions which llama.cpp doesn't have."""
    conditions = ["lstrip", "rstrip", "single_word"]
    if source.document.get("normalizer") is not None:
        conditions.append("normalized")
    bound = [row for row in source.added if any(row.get(name) is True for name in conditions)]
    if bound:
        names = [name for name in conditions if any(row.get(name) is True for row in bound)]
        draft.differences.append(
            Difference(
                "added-tokens",
                f"{len(bound)} added tokens such as {bound[0].get('content')!r} are found under "
                f"conditions ({', '.join(names)}) that llama.cpp doesn't have",
                change=plain_added,
            )
        )
