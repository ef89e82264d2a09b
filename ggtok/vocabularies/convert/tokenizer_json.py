"""Reads the parts of tokenizer.json that are common to all models: tokens, and the conditions under
which added tokens match.

Dropped spaces: llama.cpp decides by names whether to drop spaces next to special tokens. Some names
of pre-tokenizers (for any model) set lstrip for <mask>. A model's name that contains phi-3 sets
rstrip for most special tokens.

Overlapping added tokens: llama.cpp parses the longest first, tokenizers the leftmost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as field_
from typing import Any

from ggtok.base.concurrency import cached_property
from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Difference
from ggtok.vocabularies.convert import structure
from ggtok.vocabularies.convert.draft import Draft, Json
from ggtok.vocabularies.convert.folder import SourceFolder, merge_tokens
from ggtok.vocabularies.convert.source_files import by_id, expect_type, field, token_id, utf8
from ggtok.vocabularies.patterns import CHAIN_OF_PRE, MASK

# ---- dropped spaces ----

_NAME = "general.name"
_PHI3 = "Phi-3"
_PHI3_NEEDS = {"</s>", "<unk>", "<s>", "<|endoftext|>"}
_UNIGRAM_PRE = "jina-v2-de"  # only affects <mask> in a Unigram model
_SPECIAL = (spelling.CONTROL, spelling.USER_DEFINED, spelling.UNKNOWN)


def strips_mask(added: Sequence[Json]) -> bool:
    """Whether the source drops spaces before <mask>."""
    return any(row.get("content") == MASK and row.get("lstrip") is True for row in added)


def name_by_strips(draft: Draft, added: Sequence[Json]) -> None:
    """Sets the names that make llama.cpp drop the same spaces as the source."""
    if draft.model == "t5" and strips_mask(added):
        draft.pre = _UNIGRAM_PRE
        draft.notes.append(f"pre is {draft.pre!r}, with which llama.cpp drops spaces before {MASK}")
    wanted = {row["content"] for row in added if row.get("rstrip") is True}
    if draft.model == "llama" and wanted and wanted == _phi3(draft):
        draft.keys[_NAME] = _PHI3
        draft.notes.append(
            f"the model's name is {_PHI3!r}, with which llama.cpp drops spaces after special tokens"
        )


def _phi3(draft: Draft) -> set[str]:
    texts = {id: text.decode("utf-8", "replace") for id, text in draft.texts.items()}
    if not set(texts.values()) >= _PHI3_NEEDS:
        return set()
    special = {texts[id] for id, kind in draft.types.items() if kind in _SPECIAL}
    return (special - _PHI3_NEEDS) | {"</s>"}


def strips_of(draft: Draft) -> dict[str, str]:
    """Returns the texts of the tokens next to which llama.cpp drops spaces, each with "lstrip" or
    "rstrip"."""
    chain = CHAIN_OF_PRE.get(draft.pre or "")
    pres = () if chain is None else chain.pres
    strips = {}
    if any(pre.strips_mask for pre in pres if pre.name == draft.pre):
        strips[MASK] = "lstrip"
    if draft.keys.get(_NAME) == _PHI3:
        strips |= dict.fromkeys(_phi3(draft), "rstrip")
    return strips


def obey(document: Json, strips: dict[str, str]) -> None:
    """Makes added tokens follow llama.cpp's rules: they match literally and anywhere, in text that
    isn't normalized."""
    plain: dict[str, Any] = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
    for token in document["added_tokens"]:
        token |= plain
        if token["content"] in strips:
            token[strips[token["content"]]] = True


# ---- overlapping added tokens ----

# If there are more than _MOST tokens, overlaps aren't searched for. Overlaps of more than _LONGEST
# characters are ignored.
_MOST = 1 << 13
_LONGEST = 32  # characters in an overlap
_RUN = re.compile(r"(.)\1*", re.DOTALL)


def overlaps(texts: Sequence[str]) -> Difference | None:
    """Returns a difference if some of these tokens overlap, because llama.cpp (longest first) and
    the source (leftmost first) may then find different tokens."""
    found = sorted(_overlapping(texts)) if len(texts) <= _MOST else []
    if not found:
        return None
    pattern = re.compile("|".join(map(re.escape, sorted(found, key=len, reverse=True))))
    return Difference(
        "overlaps",
        f"{len(found)} added tokens overlap with others, such as {found[0]!r}: llama.cpp finds the "
        "longest first, the source the leftmost",
        # Replace each of these tokens by a character, so that its neighbours don't form a token.
        without=lambda line: pattern.sub("\0", line),
    )


def _overlapping(texts: Sequence[str]) -> set[str]:
    """Returns the texts in overlapping pairs whose first text isn't the longer one.

    Runs of one character, such as newlines, are ignored, since both rules find the longest run.
    """
    ends: dict[str, list[str]] = {}
    begins: dict[str, list[str]] = {}
    for text in sorted(texts, key=len):
        for i in range(1, min(len(text), _LONGEST + 1)):
            ends.setdefault(text[-i:], []).append(text)
            begins.setdefault(text[:i], []).append(text)
    found: set[str] = set()
    for overlap in ends.keys() & begins.keys():
        firsts, seconds = ends[overlap], begins[overlap]
        pair = {text for text in firsts if len(text) <= len(seconds[-1])}
        pair |= {text for text in seconds if len(text) >= len(firsts[0])}
        if len(pair) > 1 and not all(map(_RUN.fullmatch, pair)):
            found |= pair
    return found


# ---- Mistral's expression ----

_MISTRAL = ("mistral", "mistral3", "voxtral", "ministral", "pixtral")
_LEAST = 100_000  # transformers repairs only larger vocabularies


def _repair_expression(source: TokenizerJson, n: int) -> None:
    """Replaces the expression of Mistral's first tokenizer.json files, which is another model's,
    if tokenizer_config.json asks for it (`fix_mistral_regex`), as transformers does."""
    folder, document = source.folder, source.document
    if folder.tokenizer_config.get("fix_mistral_regex") is not True:
        return
    version = str(folder.config.get("transformers_version") or "0").split(".")[0]
    applies = (
        n > _LEAST
        and document.get("pre_tokenizer") is not None
        and folder.file("config.json") is not None
        and (folder.model_type in _MISTRAL or not folder.model_type)
        and version.isdecimal()
        and int(version) < 5
    )
    if not applies:
        source.notes.append(
            "fix_mistral_regex has no effect: transformers replaces the expression only of "
            f"Mistral's models of more than {_LEAST} tokens that an older version saved"
        )
        return
    (pattern,) = CHAIN_OF_PRE["tekken"].published[0]
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    old = document["pre_tokenizer"]
    if old.get("type") == "Sequence":
        steps = [split, *field(old, "pretokenizers", list, "pre_tokenizer")[1:]]
    elif old.get("type") == "Metaspace":
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
        steps = [split, {**level, "use_regex": False}]
    else:
        steps = [split, old]
    source.document = {
        **document,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
    }
    source.notes.append("fix_mistral_regex: text is split as by Mistral's tekken.json")


# ---- the file ----


@dataclass
class TokenizerJson:
    """A tokenizer.json, its folder, and the caller's options.

    Attributes:
        document: the contents of the file, which :meth:`complete` changes to those of the file
            that transformers would write for the folder.
        name: the file's name for messages.
    """

    document: dict[str, Any]
    folder: SourceFolder
    pre: str | None = None
    arch: str | None = None
    name: str = "tokenizer.json"
    notes: list[str] = field_(default_factory=list)

    def complete(self) -> None:
        """Adds what the folder's other files say: more added tokens, and a repaired expression."""
        if self._is_byte_level() and self.folder.class_loaded == "LlamaTokenizer":
            # transformers doesn't use this class, whose rules are those of SentencePiece.
            self.folder = self.folder.of_class("TokenizersBackend")
        stated = self._rows()
        own = self._numbered(stated)
        moved = [
            row["content"] for row, new in zip(stated, own, strict=True) if row["id"] != new["id"]
        ]
        if moved:
            self.notes.append(
                f"{len(moved)} added tokens such as {moved[0]!r} have other ids than the file "
                "says: tokenizers numbers them from the model's last token on"
            )
        ids = {**_model_ids(self), **{row["content"]: row["id"] for row in own}}
        n = max(ids.values(), default=-1) + 1
        added = merge_tokens(self.folder, self.name, ids, n, own)
        self.document = {**self.document, "added_tokens": added}
        _repair_expression(self, len(ids))

    def _is_byte_level(self) -> bool:
        steps = structure.entries(
            self.document.get("pre_tokenizer"), "pretokenizers", "pre_tokenizer"
        )
        return any(step.get("type") == "ByteLevel" for step, _ in steps)

    @property
    def model(self) -> dict[str, Any]:
        return field(self.document, "model", dict, "")

    @cached_property
    def added(self) -> list[dict[str, Any]]:
        """The added tokens, with the ids that tokenizers assigns.

        Tokens of the model keep their ids. Others get the next ids after the model's last,
        whatever the file says.
        """
        return self._numbered(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        entries = field(self.document, "added_tokens", list, "", [])
        rows = [expect_type(row, dict, f"added_tokens[{i}]") for i, row in enumerate(entries)]
        for i, row in enumerate(rows):
            field(row, "content", str, f"added_tokens[{i}]")
            token_id(row.get("id"), f"added_tokens[{i}].id")
        return rows

    def _numbered(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        known = _ids_of_model(self.model.get("vocab"))
        if known is None:
            return rows
        ids: dict[str, int] = {}
        last = len(known)
        for i, row in enumerate(rows):
            text = row["content"]
            if text in ids:
                raise VocabError(f"added_tokens[{i}]: {text!r} occurs twice")
            ids[text] = known.get(text, last)
            last += text not in known
        return [{**row, "id": id} for row, id in zip(rows, ids.values(), strict=True)]


def _ids_of_model(vocab: Any) -> dict[str, int] | None:
    """Returns the model's ids by text, or None if ids are missing."""
    if isinstance(vocab, list):
        texts = [row[0] if isinstance(row, list) and row else None for row in vocab]
        return {text: id for id, text in enumerate(texts) if isinstance(text, str)}
    if not isinstance(vocab, dict) or not all(type(id) is int for id in vocab.values()):
        return None
    return vocab if set(vocab.values()) == set(range(len(vocab))) else None


def vocab_of(source: TokenizerJson) -> dict[int, str]:
    """Returns the model's tokens by id."""
    vocab = field(source.model, "vocab", dict, "model")
    return by_id(vocab.items(), "model.vocab")


def ids_of(source: TokenizerJson) -> dict[str, int]:
    """Returns the ids of all tokens; added tokens override the model's."""
    ids = _model_ids(source)
    ids |= {row["content"]: row["id"] for row in source.added}
    return ids


def _model_ids(source: TokenizerJson) -> dict[str, int]:
    """Returns the ids of the model's tokens by text."""
    vocab = source.model.get("vocab")
    ids: dict[str, int] = {}
    if isinstance(vocab, dict):
        ids = {text: id for id, text in by_id(vocab.items(), "model.vocab").items()}
    elif isinstance(vocab, list):
        for id, value in enumerate(vocab):
            where = f"model.vocab[{id}]"
            pair: list[Any] = expect_type(value, list, where)
            ids[expect_type(pair[0] if pair else None, str, where + "[0]")] = id
    return ids


def add_added(source: TokenizerJson, draft: Draft, *, score: float = 0.0) -> None:
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
    draft.notes += source.notes
    _add_condition_difference(source, draft)
    found = overlaps([row["content"] for row in source.added])
    draft.differences += [] if found is None else [found]


def _add_condition_difference(source: TokenizerJson, draft: Draft) -> None:
    """Adds a difference for added tokens with conditions that llama.cpp doesn't support."""
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
