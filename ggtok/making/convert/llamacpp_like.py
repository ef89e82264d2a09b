"""What llama.cpp's converter (b11549) writes for a folder, faults included.

It names the pre-tokenizer by a hash of ids, gives all tokens of a byte-fallback tokenizer.json
the same score, takes user-defined pieces for normal ones, and more. Each way in which the
result isn't the faithful conversion's is named in the report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ggtok.errors import GGTokError, UnknownPreTokenizerError, VocabError
from ggtok.making import spelling
from ggtok.making.contents import Pair
from ggtok.making.convert import confirm
from ggtok.making.convert.architectures import ARCHITECTURES, LLAMA, Architecture
from ggtok.making.convert.bpe import merges_of
from ggtok.making.convert.draft import Draft
from ggtok.making.convert.folder import Folder
from ggtok.making.convert.llamacpp_hashes import PRE_OF_HASH, TEXT
from ggtok.making.convert.llamacpp_special import Special
from ggtok.making.convert.reading import field, read_bytes, read_object, read_text, token_id
from ggtok.making.convert.sentencepiece_model import BPE, UNIGRAM, Model, read_model
from ggtok.making.convert.tokenizer_json import Source, ids_of, vocab_of
from ggtok.making.gguf_writer import CHARSMAP, FLAG_KEYS, SPECIAL_KEYS, TEMPLATE
from ggtok.making.report import ConversionReport, Difference
from ggtok.making.vocabulary import Vocabulary

_MARK = "\u2581"
_GGML = "tokenizer.ggml."
_TYPE_COUNT = _GGML + "token_type_count"
_FIRST = ("model", "pre", "tokens", "scores", "token_type")
_OF_TEXT = ("add_space_prefix", "remove_extra_whitespaces")
_OF_UNIGRAM = (*_OF_TEXT, CHARSMAP.removeprefix(_GGML))
_CODE_LLAMA, _CODE_LLAMA_EOT = 32016, 32010  # vocab_size, by which the converter knows them
_GRANITE = 49152
_LOOK_SPECIAL = ("<pad>", "<mask>", "<2mass>", "[@BOS@]")


class _NotThis(Exception):
    """A helper doesn't apply; the next one is tried."""


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
        except _NotThis:
            continue
        return _finished(draft, row, folder, faithful, helper)
    raise VocabError(f"{name}: the folder has no file that llama.cpp's converter reads for it")


def _finished(
    draft: Draft, row: Architecture, folder: Folder, faithful: Callable[[], Vocabulary], helper: str
) -> Vocabulary:
    before: tuple[str, ...] = ()
    if row.helpers == LLAMA:
        prefix = folder.tokenizer_config.get("add_prefix_space")
        if isinstance(prefix, bool):
            draft.flags["add_space_prefix"] = prefix
            before = (_GGML + FLAG_KEYS["add_space_prefix"],)
    draft.order = (*before, *_order(draft))
    if row.helpers == LLAMA:
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
    names = [*_FIRST, *(_OF_UNIGRAM if draft.model == "t5" else ()), "merges", *ids, *added]
    keys = [key for key in draft.keys if key not in (CHARSMAP, _TYPE_COUNT)]
    return (_TYPE_COUNT, *(_GGML + name for name in names), TEMPLATE, *keys)


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


# ---- helpers ----


def _document(folder: Folder) -> Source:
    path = folder.file("tokenizer.json")
    if path is None:
        raise _NotThis
    return Source(read_object(path), folder)


def _size(folder: Folder, default: int) -> int:
    size = folder.config.get("vocab_size")
    return default if size is None else token_id(size, "config.json: vocab_size")


def _looks_special(text: str) -> bool:
    return (
        text in _LOOK_SPECIAL
        or (text.startswith("<|") and text.endswith("|>"))
        or (text.startswith("<\uff5c") and text.endswith("\uff5c>"))
        or (text.startswith("<unused") and text.endswith(">"))
    )


def _base(source: Source) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """Tokens and types of a tokenizer.json: ids from 0 to config.json's vocab_size."""
    ids = ids_of(source)
    texts = {id: text for text, id in ids.items()}
    n = _size(source.folder, len(ids))
    if max(texts) >= n:
        raise VocabError(f"config.json: vocab_size is {n}, but there is a token {max(texts)}")
    added = {row["id"]: row for row in source.added}
    rows: list[tuple[str, int]] = []
    for id in range(n):
        text = texts.get(id)
        if text is None:
            rows.append((f"[PAD{id}]", spelling.UNUSED))
        elif id not in added:
            rows.append((text, spelling.NORMAL))
        elif added[id].get("special") or _looks_special(text):
            rows.append((text, spelling.CONTROL))
        else:
            rows.append((text.replace(_MARK, " "), spelling.USER_DEFINED))
    return rows, ids


def _set_rows(draft: Draft, rows: list[tuple[str, int]]) -> None:
    for id, (text, kind) in enumerate(rows):
        draft.set(id, text.encode("utf-8", "surrogatepass"), kind)


def _hashed(source: Source, pre: str | None, faithful: Callable[[], Vocabulary]) -> str:
    """The pre-tokenizer by the hash of one text's ids, special tokens added."""
    if pre is not None:
        return pre
    right = faithful()
    encode = confirm.hugging_face(source.document).encode()
    if encode is None:
        encode = confirm.encode_ours(right, parse_special=True)
    special, add = right.special_ids, right.flags
    ids = encode([TEXT])[0]
    if add.get("add_bos") and "bos" in special:
        ids = [special["bos"], *ids]
    if add.get("add_eos") or right.model == "bert":
        last = special.get("sep" if right.model == "bert" else "eos")
        ids = [*ids, *([] if last is None else [last])]
    digest = hashlib.sha256(str(ids).encode()).hexdigest()
    if digest not in PRE_OF_HASH:
        raise UnknownPreTokenizerError(
            f"llama.cpp's converter doesn't know the hash {digest}: it names pre-tokenizers of "
            "known vocabularies alone (pre=NAME names one; without like= it is found by structure)"
        )
    return PRE_OF_HASH[digest]


def _gpt2(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    source = _document(folder)
    rows, _ = _base(source)
    draft = Draft(model="gpt2", pre=_hashed(source, pre, faithful))
    _set_rows(draft, rows)
    draft.merges = _merges(source)
    Special(folder).write(draft)
    return draft


def _merges(source: Source) -> list[Pair]:
    return [
        (left.replace(" ", "\u0120").encode(), right.replace(" ", "\u0120").encode())
        for left, right in merges_of(source.model)
    ]


def _bert(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    source = _document(folder)
    rows, _ = _base(source)
    draft = Draft(model="bert", pre=_hashed(source, pre, faithful))
    count = field(folder.config, "type_vocab_size", int, "config.json", 1)
    draft.keys[_TYPE_COUNT] = count
    marked = [
        (
            text
            if kind == spelling.CONTROL
            else text[2:]
            if text.startswith("##")
            else _MARK + text,
            kind,
        )
        for text, kind in rows
    ]
    _set_rows(draft, marked)
    Special(folder, len(rows)).write(draft)
    return draft


def _llama_hf(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    """All tokens have the score -1000: text isn't merged in the source's order."""
    source = _document(folder)
    if source.model.get("type") != "BPE" or not source.model.get("byte_fallback"):
        raise _NotThis
    decoder = source.document.get("decoder")
    if not isinstance(decoder, dict) or decoder.get("type") != "Sequence":
        raise _NotThis
    vocab = vocab_of(source)
    special = _special_texts(source)
    draft = Draft(model="llama", pre="default", scores={})
    for id, text in vocab.items():
        kind = spelling.CONTROL if text in special else spelling.NORMAL
        if spelling.is_byte_token(text.encode()):
            kind = spelling.BYTE
        draft.set(id, text.encode(), kind, -1000.0)
    for row in source.added:
        if row["id"] not in vocab:
            kind = spelling.CONTROL if row["content"] in special else spelling.USER_DEFINED
            draft.set(row["id"], row["content"].encode(), kind, -1000.0)
    Special(folder, len(draft.texts)).write(draft)
    return draft


# Gemma 4's tokens that are always shown.
_VISIBLE = (
    "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
    "<tool_response|>", '<|"|>',
)  # fmt: skip


def _gemma4(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    """As _llama_hf, and the merges; the file names no pre-tokenizer."""
    draft = _llama_hf(folder, pre, faithful)
    draft.model, draft.pre = "gemma4", None
    visible = {text.encode() for text in _VISIBLE}
    for id, text in draft.texts.items():
        if text in visible:
            draft.types[id] = spelling.USER_DEFINED
    draft.merges = _merges(_document(folder))
    draft.special_ids, draft.flags, draft.keys = {}, {}, {}
    Special(folder).write(draft)
    return draft


def _special_texts(source: Source) -> set[str]:
    """What transformers counts among the special tokens: the configuration's, by name."""
    config = source.folder.tokenizer_config
    texts: set[Any] = set()
    for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"):
        entry = config.get(f"{name}_token")
        texts.add(entry.get("content") if isinstance(entry, dict) else entry)
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = config.get(key) or []
        for entry in more.values() if isinstance(more, dict) else more:
            texts.add(entry.get("content") if isinstance(entry, dict) else entry)
    return {text for text in texts if isinstance(text, str)}


def _pieces(folder: Folder, model: Model, name: str) -> Draft:
    draft = Draft(model=name, pre="default", scores={}, filler_score=-10000.0)
    n = draft.size = _size(folder, len(model.pieces))
    for id, piece in enumerate(model.pieces[:n]):
        user_defined = piece.type == spelling.USER_DEFINED
        draft.set(id, piece.text, spelling.NORMAL if user_defined else piece.type, piece.score)
    for text, value in folder.added_tokens.items():
        if token_id(value, "added_tokens.json") < n:
            draft.set(value, text.encode(), spelling.USER_DEFINED, -1000.0)
    return draft


def _sentencepiece(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    path = folder.file("tokenizer.model")
    if path is None:
        raise _NotThis
    draft = _pieces(folder, read_model(read_bytes(path), "tokenizer.model"), "llama")
    for key, row in (folder.tokenizer_config.get("added_tokens_decoder") or {}).items():
        id = token_id(int(key[:10]), "added_tokens_decoder") if key.isdecimal() else draft.size
        if id < draft.size:
            text = str(row.get("content"))
            control = row.get("special") or _looks_special(text)
            kind = spelling.CONTROL if control else spelling.USER_DEFINED
            text = text if control else text.replace(_MARK, " ")
            draft.set(id, text.encode(), kind, -1000.0)
    Special(folder, draft.size).write(draft)
    return draft


def _t5(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    path = folder.file("tokenizer.model", "spiece.model")
    if path is None:
        raise _NotThis
    model = read_model(read_bytes(path), "spiece.model")
    if model.model_type == BPE:
        return _sentencepiece(folder, pre, faithful)
    if model.model_type != UNIGRAM:
        raise VocabError("trainer_spec.model_type: neither Unigram nor BPE")
    draft = _pieces(folder, model, "t5")
    draft.flags["add_space_prefix"] = model.add_dummy_prefix
    draft.flags["remove_extra_whitespaces"] = model.remove_extra_whitespaces
    if model.charsmap:
        draft.keys[CHARSMAP] = model.charsmap
    Special(folder, draft.size).write(draft)
    return draft


def _rwkv(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    """Ids are lines' numbers, and EOT is 261 whatever token that is."""
    from ggtok.making.convert import rwkv_text

    name = "rwkv_vocab_v20230424.txt"
    path = folder.file(name)
    if path is None:
        raise _NotThis
    read, _ = rwkv_text.draft_of(read_text(path), name, folder)
    draft = Draft(model="rwkv", size=_size(folder, 65536))
    for line, id in enumerate(read.texts):
        draft.set(line, read.texts[id], read.types[id])
    special = Special(folder)
    special.set("eot", 261)
    special.ids |= {"bos": 0, "eos": 0}
    special.templates = special.templates or {"default": "rwkv-world"}
    special.write(draft)
    return draft


_HELPERS: dict[str, Callable[[Folder, str | None, Callable[[], Vocabulary]], Draft]] = {
    "gpt2": _gpt2,
    "bert": _bert,
    "llama_hf": _llama_hf,
    "sentencepiece": _sentencepiece,
    "gemma4": _gemma4,
    "t5": _t5,
    "rwkv": _rwkv,
}
