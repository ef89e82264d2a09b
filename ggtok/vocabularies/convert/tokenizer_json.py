"""Reads the parts of tokenizer.json that are common to all models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as field_
from typing import Any

from ggtok.base.concurrency import cached_property
from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.overlaps import overlaps
from ggtok.vocabularies.convert.reading import by_id, checked, field, token_id, utf8
from ggtok.vocabularies.convert.strips import name_by_strips, obey, strips_of
from ggtok.vocabularies.report import Difference


@dataclass
class Source:
    """A tokenizer.json, its folder, and the caller's options."""

    document: dict[str, Any]
    folder: Folder
    pre: str | None = None
    arch: str | None = None
    special: Mapping[str, str] = field_(
        default_factory=dict
    )  # texts of special tokens by name, as the format defines them

    @property
    def model(self) -> dict[str, Any]:
        return field(self.document, "model", dict, "")

    @cached_property
    def added(self) -> list[dict[str, Any]]:
        """The added tokens, with the ids that tokenizers assigns.

        Tokens of the model keep their ids. Others get the next ids after the model's last,
        whatever the file says.
        """
        entries = field(self.document, "added_tokens", list, "", [])
        rows = [checked(row, dict, f"added_tokens[{i}]") for i, row in enumerate(entries)]
        known = _ids_of_model(self.model.get("vocab"))
        if known is None:
            return rows
        ids: dict[str, int] = {}
        last = len(known)
        for i, row in enumerate(rows):
            text = field(row, "content", str, f"added_tokens[{i}]")
            token_id(row.get("id"), f"added_tokens[{i}].id")
            if text in ids:
                raise VocabError(f"added_tokens[{i}]: {text!r} occurs twice")
            ids[text] = known.get(text, last)
            last += text not in known
        return [{**row, "id": id} for row, id in zip(rows, ids.values(), strict=True)]

    @property
    def renumbered(self) -> list[str]:
        """Added tokens to which tokenizers assigns other ids than the file."""
        entries = self.document.get("added_tokens") or []
        pairs = zip(entries, self.added, strict=True)
        return [row["content"] for given, row in pairs if given["id"] != row["id"]]


def _ids_of_model(vocab: Any) -> dict[str, int] | None:
    """The model's ids by text, or None if the ids have holes."""
    if isinstance(vocab, list):
        texts = [row[0] if isinstance(row, list) and row else None for row in vocab]
        return {text: id for id, text in enumerate(texts) if isinstance(text, str)}
    if not isinstance(vocab, dict) or not all(type(id) is int for id in vocab.values()):
        return None
    return vocab if set(vocab.values()) == set(range(len(vocab))) else None


def vocab_of(source: Source) -> dict[int, str]:
    """The model's tokens by id."""
    vocab = field(source.model, "vocab", dict, "model")
    return by_id(vocab.items(), "model.vocab")


def ids_of(source: Source) -> dict[str, int]:
    """The ids of all tokens; added tokens override the model's."""
    vocab = source.model.get("vocab")
    ids: dict[str, int] = {}
    if isinstance(vocab, dict):
        ids = {text: id for id, text in by_id(vocab.items(), "model.vocab").items()}
    elif isinstance(vocab, list):
        for id, value in enumerate(vocab):
            where = f"model.vocab[{id}]"
            pair: list[Any] = checked(value, list, where)
            ids[checked(pair[0] if pair else None, str, where + "[0]")] = id
    for i, row in enumerate(source.added):
        where = f"added_tokens[{i}]"
        ids[field(row, "content", str, where)] = token_id(row.get("id"), where + ".id")
    return ids


def add_added(source: Source, draft: Draft, *, score: float = 0.0) -> None:
    """Adds the added tokens: special ones as control tokens, others as user-defined tokens."""
    for i, row in enumerate(source.added):
        where = f"added_tokens[{i}]"
        id = token_id(row.get("id"), where + ".id")
        text = utf8(field(row, "content", str, where), where + ".content")
        special = field(row, "special", bool, where, False)
        kind = spelling.CONTROL if special else spelling.USER_DEFINED
        if draft.types.get(id) == spelling.UNKNOWN:
            kind = spelling.UNKNOWN
        draft.set(id, text, kind, score)
    if source.renumbered:
        draft.notes.append(
            f"{len(source.renumbered)} added tokens such as {source.renumbered[0]!r} have other "
            "ids than the file says: tokenizers numbers them from the model's last token on"
        )
    _note_conditions(source, draft)
    found = overlaps([row["content"] for row in source.added])
    draft.differences += [] if found is None else [found]


def _note_conditions(source: Source, draft: Draft) -> None:
    """Notes added tokens with matching conditions that llama.cpp doesn't support."""
    conditions = ["lstrip", "rstrip", "single_word"]
    if source.document.get("normalizer") is not None:
        conditions.append("normalized")
    name_by_strips(draft, source.added)
    strips = strips_of(draft)
    bound = {}
    for row in source.added:
        names = {name for name in conditions if row.get(name) is True}
        names ^= {strips[row["content"]]} if row["content"] in strips else set()
        if names:
            bound[row["content"]] = names
    if bound:
        found = {name for names in bound.values() for name in names}
        ordered = [name for name in conditions if name in found]
        first = next(iter(bound))
        draft.differences.append(
            Difference(
                "added-tokens",
                f"{len(bound)} added tokens such as {first!r} are matched under other conditions "
                f"({', '.join(ordered)}) than in llama.cpp",
                change=lambda document: obey(document, strips),
            )
        )
