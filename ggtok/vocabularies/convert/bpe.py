"""Converts BPE in a tokenizer.json to "gpt2" (byte-level), "llama" (byte fallback) or "gemma4"."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Any

from ggtok.errors import UnknownPreTokenizerError, VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Difference, Pair
from ggtok.vocabularies.convert import structure
from ggtok.vocabularies.convert.draft import (
    Draft,
    Json,
    fewer_categories,
    leading_space,
    newer_characters,
    without_normalizer,
)
from ggtok.vocabularies.convert.source_files import check_splits, expect_type, field, utf8
from ggtok.vocabularies.convert.tokenizer_json import (
    TokenizerJson,
    add_added,
    strips_mask,
    vocab_of,
)
from ggtok.vocabularies.patterns import CHAIN_OF_PRE, Chain, Pre
from ggtok.vocabularies.pre_tokenizer_json import NEWLINES, pre_tokenizer_of, unmerged_run

_MARK = "\u2581"
_UTF8 = [*range(0xC0), *range(0xC2, 0xF5)]  # the bytes that can occur in UTF-8


def refuse_marks(model: dict[str, Any]) -> None:
    """Raises VocabError for prefixes and suffixes, which llama.cpp's BPE doesn't support."""
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise VocabError(f"model.{key}: {model[key]!r}: llama.cpp's BPE has no such marks")


def merges_of(model: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the merges as pairs. In older files, each merge is a string."""
    merges: list[tuple[str, str]] = []
    for i, entry in enumerate(field(model, "merges", list, "model")):
        parts = entry.split(" ") if isinstance(entry, str) else entry
        if not (isinstance(parts, list) and len(parts) == 2 and all(map(_is_text, parts))):
            raise VocabError(f"model.merges[{i}]: {entry!r} is not a pair of tokens")
        merges.append((parts[0], parts[1]))
    return merges


def last_of_each(model: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the merges without duplicates. Of equal merges, the last is kept, as in tokenizers;
    llama.cpp would use the first."""
    merges = merges_of(model)
    if len(set(merges)) == len(merges):
        return merges
    return list(dict.fromkeys(reversed(merges)))[::-1]


def _is_text(part: object) -> bool:
    return isinstance(part, str) and part != ""


def checked_merges(merges: Sequence[tuple[str, str]], ids: dict[str, int]) -> list[Pair]:
    """Returns the merges as bytes. Raises VocabError unless their parts and results are tokens."""
    for i, (left, right) in enumerate(merges):
        for text in (left, right, left + right):
            if text not in ids:
                raise VocabError(
                    f"model.merges[{i}]: {text!r}, of {left!r} and {right!r}, is not a token"
                )
    return [(left.encode(), right.encode()) for left, right in merges]


# ---- byte-level ----


def read_byte_level(source: TokenizerJson, draft: Draft) -> None:
    """Reads a vocabulary with GPT-2's byte map, which llama.cpp uses, too."""
    vocab = vocab_of(source)
    draft.model = "gpt2"
    for id, text in vocab.items():
        draft.set(id, utf8(text, f"model.vocab: token {id}"), spelling.NORMAL)
    ids = {text: id for id, text in vocab.items()}
    draft.merges = checked_merges(last_of_each(source.model), ids)
    _set_pre(source, draft)
    add_added(source, draft)
    unk_id = _unknown(source, ids)
    if unk_id is not None:
        draft.special_ids["unk"] = unk_id
    _note_bytes(draft, known=ids)
    _note_normalizers(source, draft)


def _note_bytes(draft: Draft, known: Container[str]) -> None:
    """Adds a difference if bytes that occur in UTF-8 have no token."""
    characters = [character.decode() for character in spelling.byte_characters()]
    lacking = {byte for byte in _UTF8 if characters[byte] not in known}
    if lacking:
        draft.differences.append(
            Difference(
                "bytes",
                f"{len(lacking)} bytes have no token, such as 0x{min(lacking):02X}: llama.cpp "
                "drops them after merging, and the source drops them before merging, or replaces "
                "them by its unknown token",
                without=lambda line: "".join(c for c in line if lacking.isdisjoint(c.encode())),
            )
        )


def _set_pre(source: TokenizerJson, draft: Draft) -> None:
    found = structure.structure_of(source.document.get("pre_tokenizer"))
    ignore = field(source.model, "ignore_merges", bool, "model", False)
    keep = source.folder.tokenizer_config.get("clean_up_tokenization_spaces")
    chain: Chain | None
    if source.pre is not None:
        chain, draft.pre = CHAIN_OF_PRE.get(source.pre), source.pre
        rows = () if chain is None else chain.pres
        pre = next((row for row in rows if row.name == source.pre), None)
    else:
        if not found.byte_level or found.others:
            others = ", ".join(found.others) or "no ByteLevel"
            raise UnknownPreTokenizerError(
                f"pre_tokenizer: has {others}: no pre-tokenizer of llama.cpp splits text "
                "like this (pre=NAME or --pre NAME uses one anyway)"
            )
        chain = structure.chain_of(found)
        pre = structure.pre_for(
            chain,
            ignore_merges=ignore,
            keep_spaces=None if keep is None else not keep,
            strips_mask=strips_mask(source.added),
        )
        draft.pre = pre.name
    # This must come before _note_chain, whose change replaces the whole pre-tokenizer and so also
    # removes the prefix space.
    if found.prefix_space:
        draft.differences.append(
            Difference(
                "prefix-space",
                "the source puts a space before a text (add_prefix_space): llama.cpp's BPE doesn't",
                change=_without_prefix_space,
            )
        )
    if chain is not None:
        _note_chain(draft, chain, found)
    if pre is not None and pre.ignore_merges != ignore:
        _note_ignore_merges(draft, pre)


def _note_chain(draft: Draft, chain: Chain, found: structure.Structure) -> None:
    same = tuple(map(structure.normal_form, chain.steps)) == found.steps
    if same and not found.newer_characters:
        return

    def change(document: Json) -> None:
        document["pre_tokenizer"] = pre_tokenizer_of(chain)

    row = newer_characters(change) if same else fewer_categories(str(draft.pre), change)
    draft.differences.append(row)


def _note_ignore_merges(draft: Draft, pre: Pre) -> None:
    def change(document: Json) -> None:
        document["model"]["ignore_merges"] = pre.ignore_merges

    does = "does" if pre.ignore_merges else "doesn't"
    draft.differences.append(
        Difference(
            "ignore-merges",
            f"llama.cpp's {pre.name} {does} take a word that is a token before it merges",
            change=change,
        )
    )


def _without_prefix_space(document: Json) -> None:
    for entry, _ in structure.entries(document["pre_tokenizer"], "pretokenizers", ""):
        if entry["type"] == "ByteLevel":
            entry["add_prefix_space"] = False


def _note_normalizers(source: TokenizerJson, draft: Draft) -> None:
    kinds = [str(row.get("type")) for row in structure.normalizers_of(_normalizer(source))]
    if kinds:
        draft.differences.append(
            Difference(
                "normalizer",
                f"the source normalizes text ({', '.join(kinds)}): llama.cpp doesn't",
                change=without_normalizer,
            )
        )


def _normalizer(source: TokenizerJson) -> Any:
    return source.document.get("normalizer")


# ---- with byte fallback ----


def read_byte_fallback(source: TokenizerJson, draft: Draft) -> None:
    """Reads SentencePiece's BPE. llama.cpp merges by score, so a token's score is the negative of
    its merge's rank."""
    vocab = vocab_of(source)
    ids = {text: id for id, text in vocab.items()}
    merges = last_of_each(source.model)
    checked_merges(merges, ids)
    rank: dict[str, int] = {}
    for i, (left, right) in enumerate(merges):
        rank.setdefault(left + right, i)
    draft.model, draft.pre, draft.scores = "llama", "default", {}
    last = -float(len(merges))
    for id, text in vocab.items():
        data = utf8(text, f"model.vocab: token {id}")
        draft.set(id, data, kind_of(data), -float(rank[text]) if text in rank else last)
    set_unknown(source, draft, ids)
    scores = dict(draft.scores)
    add_added(source, draft, score=last)
    draft.scores |= scores
    check_bytes(draft)
    draft.flags["add_space_prefix"] = space_prefix(
        source, draft, source.document.get("pre_tokenizer")
    )
    _note_order(draft, merges, ids)


def set_unknown(source: TokenizerJson, draft: Draft, ids: dict[str, int]) -> None:
    """Sets the unknown token."""
    unk_id = _unknown(source, ids)
    if unk_id is not None:
        draft.types[unk_id] = spelling.UNKNOWN
        draft.special_ids["unk"] = unk_id


def _unknown(source: TokenizerJson, ids: dict[str, int]) -> int | None:
    unk = source.model.get("unk_token")
    if unk is None:
        return None
    unk_id = ids.get(expect_type(unk, str, "model.unk_token"))
    if unk_id is None:
        raise VocabError(f"model.unk_token: {unk!r} is not a token")
    return unk_id


def kind_of(text: bytes) -> int:
    return spelling.BYTE if spelling.is_byte_token(text) else spelling.NORMAL


def check_bytes(draft: Draft) -> None:
    """Raises VocabError if a byte token is missing: llama.cpp would abort for some characters."""
    texts = set(draft.texts.values())
    for byte in range(256):
        if spelling.byte_token(byte) not in texts and bytes([byte]) not in texts:
            raise VocabError(
                f"model.vocab: no token {spelling.byte_token(byte).decode()!r}: llama.cpp needs "
                "one for each byte"
            )


def space_prefix(source: TokenizerJson, draft: Draft, pre_tokenizer: Any) -> bool:
    """Whether the source adds a space before a text.

    Raises VocabError unless spaces become U+2581. Adds a difference for other normalizers.
    """
    prefix, marks = False, False
    others = []
    for row in structure.normalizers_of(_normalizer(source)):
        kind = field(row, "type", str, "normalizer")
        if kind == "Prepend" and row.get("prepend") == _MARK:
            prefix = True
        elif kind == "Replace" and row.get("pattern") == {"String": " "}:
            marks = row.get("content") == _MARK
        else:
            others.append(kind)
    for row, at in structure.entries(pre_tokenizer, "pretokenizers", "pre_tokenizer"):
        kind = field(row, "type", str, at)
        if kind == "Metaspace":
            prefix, marks = _metaspace(source, row, at, draft), True
        elif not (kind == "Split" and marks and row.get("pattern") == {"String": " "}):
            raise UnknownPreTokenizerError(
                f"{at}: {kind}: llama.cpp's SentencePiece vocabularies don't split text like this"
            )
    if not marks:
        raise VocabError("normalizer: must replace spaces by U+2581, as llama.cpp does")
    if others:
        draft.differences.append(_other_normalizers(others))
    return prefix


def _metaspace(source: TokenizerJson, row: Json, at: str, draft: Draft) -> bool:
    scheme = row.get("prepend_scheme")
    if scheme is None:
        scheme = "always" if field(row, "add_prefix_space", bool, at, True) else "never"
    if scheme == "first":
        draft.differences.append(
            Difference(
                "space-prefix",
                "the source puts a space before the whole text: llama.cpp also after each "
                "special token",
                change=_always_prefixed,
            )
        )
    if scheme == "never":
        return False
    draft.differences.append(leading_space([str(row.get("content")) for row in source.added]))
    return True


def _always_prefixed(document: Json) -> None:
    for row, _ in structure.entries(document["pre_tokenizer"], "pretokenizers", ""):
        if row["type"] == "Metaspace":
            row["prepend_scheme"] = "always"


def _other_normalizers(kinds: list[str]) -> Difference:
    def change(document: Json) -> None:
        kept = [
            row
            for row in structure.normalizers_of(document["normalizer"])
            if row["type"] == "Prepend" or row.get("pattern") == {"String": " "}
        ]
        document["normalizer"] = {"type": "Sequence", "normalizers": kept}

    return Difference(
        "normalizer",
        f"the source normalizes text ({', '.join(kinds)}): llama.cpp doesn't",
        change=change,
    )


def _note_order(draft: Draft, merges: list[tuple[str, str]], ids: dict[str, int]) -> None:
    """Adds a difference if merges are missing or in another order. llama.cpp merges any two tokens
    whose joined text is a token, in the order of the scores of the joined tokens."""
    complete = all_merges(merges, ids)
    if complete == merges:
        return
    extra = len(complete) - len(set(merges))
    lacks = f"lacks {extra} of them" if extra else "has them in another order"

    def change(document: Json) -> None:
        document["model"]["merges"] = [list(pair) for pair in complete]

    draft.differences.append(
        Difference(
            "merge-order",
            "llama.cpp merges any two tokens that join to one, in the order of the results: "
            f"the source {lacks}",
            change=change,
        )
    )


def all_merges(merges: Sequence[tuple[str, str]], ids: dict[str, int]) -> list[tuple[str, str]]:
    """Returns all splits of each token into two tokens, with tokens in the order of their first
    merges.

    Tokens without merges come last.
    """
    check_splits(ids, "model.vocab")
    order: dict[str, list[tuple[str, str]]] = {}
    for left, right in merges:
        order.setdefault(left + right, []).append((left, right))
    for text in ids:
        order.setdefault(text, [])
    for text, pairs in order.items():
        known = set(pairs)
        for i in range(1, len(text)):
            pair = text[:i], text[i:]
            if pair not in known and pair[0] in ids and pair[1] in ids:
                pairs.append(pair)
    return [pair for pairs in order.values() for pair in pairs]


# ---- Gemma 4 (characters, byte fallback and merges) to llama.cpp's "gemma4" ----


def is_gemma4(source: TokenizerJson) -> bool:
    """Whether the source is Gemma 4, according to its architecture or `pre`, or is Gemma 4's
    vocabulary as exported by ggtok."""
    architecture = source.arch or source.folder.architecture or ""
    return (
        architecture.startswith("Gemma4")
        or source.pre == "gemma4"
        or source.document.get("pre_tokenizer") == NEWLINES
    )


def read_gemma4(source: TokenizerJson, draft: Draft) -> None:
    """Reads Gemma 4's tokens, which are stored as text with U+2581 for spaces."""
    vocab = vocab_of(source)
    ids = {text: id for id, text in vocab.items()}
    merges = last_of_each(source.model)
    draft.model = "gemma4"
    for id, text in vocab.items():
        data = utf8(text, f"model.vocab: token {id}")
        draft.set(id, data, kind_of(data))
    draft.merges = checked_merges(merges, ids)
    set_unknown(source, draft, ids)
    add_added(source, draft)
    check_bytes(draft)
    document = source.document
    if document.get("pre_tokenizer") != NEWLINES:
        _note_newlines(draft)
        pre_tokenizer = document.get("pre_tokenizer")
    else:
        pre_tokenizer = None
    if space_prefix(source, draft, pre_tokenizer):
        raise VocabError("normalizer: puts a space before a text: llama.cpp's gemma4 doesn't")
    run = unmerged_run(ids, merges)
    if run is not None:
        draft.differences.append(
            Difference(
                "ignore-merges",
                f"llama.cpp's gemma4 takes a run of newlines that is a token before it merges, "
                f"and no merges make the token of {len(run)} newlines",
                without=lambda line: re.sub("\n+", "\n", line),
            )
        )


def _note_newlines(draft: Draft) -> None:
    def change(document: Json) -> None:
        document["pre_tokenizer"] = NEWLINES

    draft.differences.append(
        Difference(
            "pre-tokenizer",
            "llama.cpp's gemma4 splits text at newlines, and the source doesn't",
            change=change,
        )
    )


def force_bos(draft: Draft) -> None:
    """Sets add_bos for gemma4: llama.cpp always adds BOS, whatever the file says."""
    if draft.model == "gemma4" and not draft.flags.get("add_bos"):
        draft.flags["add_bos"] = True
        draft.differences.append(
            Difference("template", "the source adds no BOS: llama.cpp's gemma4 always does")
        )
