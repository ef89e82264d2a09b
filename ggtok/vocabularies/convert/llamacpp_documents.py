"""What llama.cpp's converter makes of a tokenizer.json: its helpers, by its names for them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from ggtok.errors import UnknownPreTokenizerError, VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Pair
from ggtok.vocabularies.convert import confirm
from ggtok.vocabularies.convert.bpe import merges_of
from ggtok.vocabularies.convert.config_defaults import default_vocab_size
from ggtok.vocabularies.convert.draft import Draft, check_holes
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.llamacpp_hashes import PRE_OF_HASH, TEXT
from ggtok.vocabularies.convert.llamacpp_special import Special
from ggtok.vocabularies.convert.originals import Encode
from ggtok.vocabularies.convert.reading import field, read_object, token_id, utf8
from ggtok.vocabularies.convert.special import Template, content_of, template_of
from ggtok.vocabularies.convert.tokenizer_json import Source, ids_of, vocab_of
from ggtok.vocabularies.vocabulary import Vocabulary

# Of a folder and the pre-tokenizer wanted; the last makes the faithful conversion.
Helper = Callable[[Folder, "str | None", Callable[[], Vocabulary]], Draft]
GGML = "tokenizer.ggml."
TYPE_COUNT = GGML + "token_type_count"
_MARK = "\u2581"
_LOOK_SPECIAL = ("<pad>", "<mask>", "<2mass>", "[@BOS@]")


class NotThis(Exception):
    """A helper doesn't apply; the next one is tried."""


def _document(folder: Folder) -> Source:
    path = folder.file("tokenizer.json")
    if path is None:
        raise NotThis
    return Source(read_object(path), folder)


def _stated_size(folder: Folder) -> Any:
    """The text model's vocab_size; one above it is another's."""
    part = folder.config if folder.text_config is None else folder.text_config
    return part.get("vocab_size")


def size_of(folder: Folder, default: int) -> int:
    sizes = _stated_size(folder), default_vocab_size(folder), folder.config.get("vocab_size")
    size = next((size for size in sizes if size is not None), None)
    if size is None:
        return default
    check_holes(token_id(size, "config.json: vocab_size"), default, "config.json: vocab_size")
    return int(size)


def type_count(folder: Folder) -> int:
    """transformers, which reads config.json there, has 2 as default."""
    return field(folder.config, "type_vocab_size", int, "config.json", 2)


def looks_special(text: str) -> bool:
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
    n = size_of(source.folder, len(ids))
    if max(texts) >= n:
        stated = _stated_size(source.folder) is not None
        unsaid = "" if stated else ", transformers' default for the model_type"
        raise VocabError(
            f"config.json: vocab_size is {n}{unsaid}, but there is a token {max(texts)}"
        )
    added = {row["id"]: row for row in source.added}
    rows: list[tuple[str, int]] = []
    for id in range(n):
        text = texts.get(id)
        if text is None:
            rows.append((f"[PAD{id}]", spelling.UNUSED))
        elif id not in added:
            rows.append((text, spelling.NORMAL))
        elif added[id].get("special") or looks_special(text):
            rows.append((text, spelling.CONTROL))
        else:
            rows.append((text.replace(_MARK, " "), spelling.USER_DEFINED))
    return rows, ids


def _set_rows(draft: Draft, rows: list[tuple[str, int]]) -> None:
    for id, (text, kind) in enumerate(rows):
        draft.set(id, utf8(text, f"token {id}"), kind)


def _hashed(source: Source, pre: str | None, faithful: Callable[[], Vocabulary]) -> str:
    """The pre-tokenizer by the hash of one text's ids, special tokens added."""
    if pre is not None:
        return pre
    added = _added(source)
    encode = confirm.hugging_face(_document_of_class(source)).encode()
    if encode is None:
        encode = confirm.encode_ours(faithful(), parse_special=True)
    ids = ids_of(source)
    before = [ids[token] for token in added.before if token in ids]
    after = [ids[token] for token in added.after if token in ids]
    return named_by_hash(encode, before, after)


# transformers' classes (version 5) that don't take all of a tokenizer.json.
_OF_BERT = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
_WITHOUT_TEMPLATE = ("GPTNeoXTokenizer",)


def _class_of(source: Source) -> str:
    return source.folder.tokenizer_class.removesuffix("Fast")


def _is_of_bert(source: Source) -> bool:
    name = _class_of(source)
    return source.model.get("type") == "WordPiece" and (not name or name in _OF_BERT)


def _added(source: Source) -> Template:
    """What transformers puts around a text: what the post_processor says, not add_bos_token."""
    if _is_of_bert(source):
        config = source.folder.tokenizer_config
        around = [content_of(config.get(f"{name}_token")) for name in ("cls", "sep")]
        return Template([around[0] or "[CLS]"], [around[1] or "[SEP]"])
    if _class_of(source) in _WITHOUT_TEMPLATE:
        return Template()
    return template_of(source.document.get("post_processor"))


def _document_of_class(source: Source) -> dict[str, Any]:
    """The tokenizer.json with the normalizer that BERT's class makes anew."""
    if not _is_of_bert(source):
        return source.document
    config = source.folder.tokenizer_config
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": config.get("tokenize_chinese_chars", True),
        "strip_accents": config.get("strip_accents"),
        "lowercase": config.get("do_lower_case", True),
    }
    return {**source.document, "normalizer": normalizer}


def named_by_hash(encode: Encode, before: Sequence[int] = (), after: Sequence[int] = ()) -> str:
    """The pre-tokenizer that llama.cpp's converter has for the ids of its text."""
    ids = [*before, *encode([TEXT])[0], *after]
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
        (_merged(left, f"model.merges[{i}]"), _merged(right, f"model.merges[{i}]"))
        for i, (left, right) in enumerate(merges_of(source.model))
    ]


def _merged(part: str, where: str) -> bytes:
    return utf8(part.replace(" ", "\u0120"), where)


def _bert(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    source = _document(folder)
    rows, _ = _base(source)
    draft = Draft(model="bert", pre=_hashed(source, pre, faithful))
    draft.keys[TYPE_COUNT] = type_count(folder)
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
        raise NotThis
    decoder = source.document.get("decoder")
    if not isinstance(decoder, dict) or decoder.get("type") != "Sequence":
        raise NotThis
    vocab = vocab_of(source)
    special = _special_texts(source)
    draft = Draft(model="llama", pre="default", scores={})
    for id, text in vocab.items():
        kind = spelling.CONTROL if text in special else spelling.NORMAL
        data = utf8(text, f"model.vocab: token {id}")
        if spelling.is_byte_token(data):
            kind = spelling.BYTE
        draft.set(id, data, kind, -1000.0)
    for row in source.added:
        if row["id"] not in vocab:
            kind = spelling.CONTROL if row["content"] in special else spelling.USER_DEFINED
            draft.set(row["id"], utf8(row["content"], "added_tokens"), kind, -1000.0)
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
    names = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
    entries: list[Any] = [config.get(f"{name}_token") for name in names]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = config.get(key)
        entries += more.values() if isinstance(more, dict) else []
        entries += more if isinstance(more, list) else []
    texts = (entry.get("content") if isinstance(entry, dict) else entry for entry in entries)
    return {text for text in texts if isinstance(text, str)}


HELPERS: dict[str, Helper] = {
    "gpt2": _gpt2,
    "bert": _bert,
    "llama_hf": _llama_hf,
    "gemma4": _gemma4,
}
