"""tokenizer.json of Hugging Face's tokenizers: what its models have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as field_
from typing import Any

from ggtok.base.cached import cached_property
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
    """A tokenizer.json, and the folder that it lies in."""

    document: dict[str, Any]
    folder: Folder
    pre: str | None = None  # that the caller wants
    arch: str | None = None  # that the caller names
    special: Mapping[str, str] = field_(
        default_factory=dict
    )  # special tokens' texts by name, of the format itself

    @property
    def model(self) -> dict[str, Any]:
        return field(self.document, "model", dict, "")

    @cached_property
    def added(self) -> list[dict[str, Any]]:
        """The added tokens, with the ids that tokenizers gives them.

        Those that the model has keep the model's; the others are counted on from its last,
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
                raise VocabError(f"added_tokens[{i}]: {text!r} is there twice")
            ids[text] = known.get(text, last)
            last += text not in known
        return [{**row, "id": id} for row, id in zip(rows, ids.values(), strict=True)]

    @property
    def renumbered(self) -> list[str]:
        """Added tokens whose ids in the file aren't those that tokenizers gives them."""
        entries = self.document.get("added_tokens") or []
        pairs = zip(entries, self.added, strict=True)
        return [row["content"] for given, row in pairs if given["id"] != row["id"]]


def _ids_of_model(vocab: Any) -> dict[str, int] | None:
    """A model's ids by text, if they have no holes."""
    if isinstance(vocab, list):
        texts = [row[0] if isinstance(row, list) and row else None for row in vocab]
        return {text: id for id, text in enumerate(texts) if isinstance(text, str)}
    if not isinstance(vocab, dict) or not all(type(id) is int for id in vocab.values()):
        return None
    return vocab if set(vocab.values()) == set(range(len(vocab))) else None


def vocab_of(source: Source) -> dict[int, str]:
    """A model's tokens by id."""
    vocab = field(source.model, "vocab", dict, "model")
    return by_id(vocab.items(), "model.vocab")


def ids_of(source: Source) -> dict[str, int]:
    """All tokens' ids, the added ones on top."""
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
    if source.renumbered:
        draft.notes.append(
            f"{len(source.renumbered)} added tokens such as {source.renumbered[0]!r} have other "
            "ids than the file says: tokenizers counts them on from the model's last token"
        )
    _note_conditions(source, draft)
    found = overlaps([row["content"] for row in source.added])
    draft.differences += [] if found is None else [found]


def _note_conditions(source: Source, draft: Draft) -> None:
    """Added tokens that are found under conditions which llama.cpp doesn't have."""
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
                f"{len(bound)} added tokens such as {first!r} are found under "
                f"other conditions ({', '.join(ordered)}) than llama.cpp's",
                change=lambda document: obey(document, strips),
            )
        )
