"""What llama.cpp's converter (b11549) writes for a folder, faults included.

It names the pre-tokenizer by a hash of ids, gives all tokens of a byte-fallback tokenizer.json
the same score, takes user-defined pieces for normal ones, and more. Each way in which the
result isn't the faithful conversion's is named in the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ggtok.errors import GGTokError, VocabError
from ggtok.vocabularies.convert import llamacpp_documents, llamacpp_files
from ggtok.vocabularies.convert.architectures import ARCHITECTURES, LLAMA, Architecture
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.llamacpp_documents import GGML, TYPE_COUNT, Helper, NotThis
from ggtok.vocabularies.gguf_writer import CHARSMAP, FLAG_KEYS, SPECIAL_KEYS, TEMPLATE
from ggtok.vocabularies.report import ConversionReport, Difference
from ggtok.vocabularies.vocabulary import Vocabulary

_FIRST = ("model", "pre", "tokens", "scores", "token_type")
_OF_TEXT = ("add_space_prefix", "remove_extra_whitespaces")
# XLM-RoBERTa's count of types is among them, BERT's before all.
_OF_UNIGRAM = (
    "add_space_prefix",
    "token_type_count",
    "remove_extra_whitespaces",
    "precompiled_charsmap",
)
_CODE_LLAMA, _CODE_LLAMA_EOT = 32016, 32010  # vocab_size, by which the converter knows them
_GRANITE = 49152

_HELPERS: dict[str, Helper] = {**llamacpp_documents.HELPERS, **llamacpp_files.HELPERS}


def converted_like(
    folder: Folder, arch: str | None, pre: str | None, faithful: Callable[[], Vocabulary]
) -> Vocabulary:
    """The vocabulary, and a report of how it differs from the faithful one."""
    name = arch or folder.architecture
    if name is None:
        raise VocabError("config.json: names no architecture: give one with arch=NAME")
    row = ARCHITECTURES.get(name)
    if row is None:
        raise VocabError(f"architecture {name!r} isn't known here: {', '.join(ARCHITECTURES)} are")
    for helper in row.helpers:
        try:
            draft = _HELPERS[helper](folder, pre, faithful)
        except NotThis:
            continue
        return _finished(draft, row, folder, faithful, helper)
    raise VocabError(f"{name}: the folder has no file that llama.cpp's converter reads for it")


def _finished(
    draft: Draft, row: Architecture, folder: Folder, faithful: Callable[[], Vocabulary], helper: str
) -> Vocabulary:
    before: tuple[str, ...] = ()
    of_llama = row.helpers == LLAMA and helper != "mistral"
    if of_llama:
        prefix = folder.tokenizer_config.get("add_prefix_space")
        if isinstance(prefix, bool):
            draft.flags["add_space_prefix"] = prefix
            before = (GGML + FLAG_KEYS["add_space_prefix"],)
    draft.order = draft.order or (*before, *_order(draft))
    if of_llama:
        if folder.config.get("vocab_size") == _CODE_LLAMA:
            draft.special_ids.setdefault("eot", _CODE_LLAMA_EOT)
        if folder.config.get("vocab_size") == _GRANITE:
            draft.flags["add_bos"] = False
    if helper == row.helpers[0]:
        draft.flags |= dict(row.flags)
    draft.architecture = row.gguf
    made = draft.vocabulary("a folder, as llama.cpp's converter does")
    report = made.report
    assert isinstance(report, ConversionReport)
    return replace(made, report=replace(report, differences=tuple(_faults(made, faithful))))


def _order(draft: Draft) -> tuple[str, ...]:
    """The keys in the order in which the converter writes them; what its classes set is last."""
    ids = [f"{SPECIAL_KEYS[name]}_token_id" for name in draft.special_ids]
    added = [FLAG_KEYS[name] for name in draft.flags if name not in _OF_TEXT]
    of_model = _OF_UNIGRAM if draft.model == "t5" else ()
    names = [*_FIRST, *of_model, "merges", *ids, *added]
    keys = [key for key in draft.keys if key not in (CHARSMAP, TYPE_COUNT)]
    before = () if of_model else (TYPE_COUNT,)
    return (*before, *(GGML + name for name in names), TEMPLATE, *keys)


def _faults(made: Vocabulary, faithful: Callable[[], Vocabulary]) -> list[Difference]:
    """Where it isn't what the source is."""
    try:
        right = faithful()
    except GGTokError as e:
        return [Difference("no-faithful", f"there is no faithful conversion to compare with: {e}")]
    rows: list[Difference] = []
    for name in ("model", "pre", "merge_texts"):
        if getattr(made, name) != getattr(right, name):
            shown = "" if name == "merge_texts" else f": {getattr(made, name)!r}, "
            shown += "" if name == "merge_texts" else f"should be {getattr(right, name)!r}"
            rows.append(Difference(name.replace("_texts", "s"), f"the converter's differ{shown}"))
    for name in ("texts", "types", "scores"):
        mine, theirs = getattr(made, name) or (), getattr(right, name) or ()
        n = sum(a != b for a, b in zip(mine, theirs, strict=False)) + abs(len(mine) - len(theirs))
        if n:
            rows.append(Difference(name, f"{n} tokens have other {name} than the source's"))
    for name in ("special_ids", "flags"):
        for key in {**getattr(made, name), **getattr(right, name)}:
            mine, theirs = getattr(made, name).get(key), getattr(right, name).get(key)
            if mine != theirs:
                rows.append(Difference(key, f"{key} is {mine}, should be {theirs}"))
    return rows
