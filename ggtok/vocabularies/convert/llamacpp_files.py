"""What llama.cpp's converter makes of other files than tokenizer.json: a helper for each."""

from __future__ import annotations

from collections.abc import Callable

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Pair
from ggtok.vocabularies.convert import confirm, plamo_jsonl, rwkv_text, tekken
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.llamacpp_documents import (
    GGML,
    TYPE_COUNT,
    Helper,
    NotThis,
    looks_special,
    named_by_hash,
    size_of,
    type_count,
)
from ggtok.vocabularies.convert.llamacpp_special import Special
from ggtok.vocabularies.convert.ranks import last_merge
from ggtok.vocabularies.convert.reading import (
    check_splits,
    checked,
    field,
    read_bytes,
    read_object,
    read_text,
    token_id,
    utf8,
)
from ggtok.vocabularies.convert.sentencepiece_model import BPE, UNIGRAM, Model, Piece, read_model
from ggtok.vocabularies.convert.tiktoken import QWEN, add_ranks, read_ranks
from ggtok.vocabularies.gguf_writer import CHARSMAP, TEMPLATE
from ggtok.vocabularies.vocabulary import Vocabulary

_MARK = "\u2581"
# Templates that llama.cpp knows by name, for the versions of tekken.json; it has files for others.
_TEKKEN_TEMPLATES = {"v3": "mistral-v3-tekken", "v7": "mistral-v7-tekken"}


def _path(folder: Folder, *names: str) -> str:
    path = folder.file(*names)
    if path is None:
        raise NotThis
    return path


# ---- SentencePiece ----


def _pieces(folder: Folder, model: Model, name: str) -> Draft:
    draft = Draft(model=name, pre="default", scores={}, filler_score=-10000.0)
    n = draft.size = size_of(folder, len(model.pieces))
    for id, piece in enumerate(model.pieces[:n]):
        draft.set(id, piece.text, _type(piece), piece.score)
    for text, value in folder.added_tokens.items():
        if token_id(value, "added_tokens.json") < n:
            data = utf8(text, "added_tokens.json")
            draft.set(value, data, spelling.USER_DEFINED, -1000.0)
    return draft


def _sentencepiece(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    path = _path(folder, "tokenizer.model")
    draft = _pieces(folder, read_model(read_bytes(path), "tokenizer.model"), "llama")
    where = "tokenizer_config.json: added_tokens_decoder"
    decoder = field(folder.tokenizer_config, "added_tokens_decoder", dict, where, {})
    for key, value in decoder.items():
        id = token_id(int(key[:10]), where) if key.isdecimal() else draft.size
        if id < draft.size:
            row = checked(value, dict, f"{where}.{key}")
            text = str(row.get("content"))
            control = row.get("special") or looks_special(text)
            kind = spelling.CONTROL if control else spelling.USER_DEFINED
            text = text if control else text.replace(_MARK, " ")
            draft.set(id, utf8(text, f"{where}.{key}"), kind, -1000.0)
    Special(folder, draft.size).write(draft)
    return draft


def _t5(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    path = _path(folder, "tokenizer.model", "spiece.model")
    model = read_model(read_bytes(path), "spiece.model")
    if model.model_type == BPE:
        return _sentencepiece(folder, pre, faithful)
    if model.model_type != UNIGRAM:
        raise VocabError("trainer_spec.model_type: neither Unigram nor BPE")
    draft = _pieces(folder, model, "t5")
    _set_normalizer(draft, model)
    Special(folder, draft.size).write(draft)
    return draft


def _type(piece: Piece) -> int:
    return spelling.NORMAL if piece.type == spelling.USER_DEFINED else piece.type


def _set_normalizer(draft: Draft, model: Model) -> None:
    draft.flags["add_space_prefix"] = model.add_dummy_prefix
    draft.flags["remove_extra_whitespaces"] = model.remove_extra_whitespaces
    if model.charsmap:
        draft.keys[CHARSMAP] = model.charsmap


def _xlmr(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    """fairseq's ids: four tokens in place of the first three, and the last piece is lost."""
    name = "sentencepiece.bpe.model"
    if folder.file(name) is None and folder.file("tokenizer.json") is not None:
        raise VocabError(
            f"{name}: isn't there: what llama.cpp's converter makes of tokenizer.json depends on "
            "transformers' version"
        )
    model = read_model(read_bytes(_path(folder, name)), name)
    if model.model_type != UNIGRAM:
        raise VocabError(f"{name}: llama.cpp's converter wants a Unigram model here")
    size = max(size_of(folder, len(model.pieces)), len(model.pieces))
    rows = [(piece.text, _type(piece), piece.score) for piece in model.pieces]
    for id in range(len(rows), size):
        rows.append((f"[PAD{id}]".encode(), spelling.UNUSED, -10000.0))
    control = spelling.CONTROL
    first = [(b"<s>", control), (b"<pad>", control), (b"</s>", control), (b"<unk>", 2)]
    draft = Draft(model="t5", pre="default", scores={})
    for id, row in enumerate([*((*pair, 0.0) for pair in first), *rows[3:-1]]):
        draft.set(id, *row)
    _set_normalizer(draft, model)
    draft.keys[TYPE_COUNT] = type_count(folder)
    Special(folder, size).write(draft)
    return draft


# ---- lists of tokens ----


def _rwkv(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    """Ids are lines' numbers, and EOT is 261 whatever token that is."""
    name = "rwkv_vocab_v20230424.txt"
    read, _ = rwkv_text.draft_of(read_text(_path(folder, name)), name, folder)
    draft = Draft(model="rwkv", size=size_of(folder, 65536))
    for line, id in enumerate(read.texts):
        draft.set(line, read.texts[id], read.types[id])
    special = Special(folder)
    special.set("eot", 261)
    special.ids |= {"bos": 0, "eos": 0}
    special.templates = special.templates or {"default": "rwkv-world"}
    special.write(draft)
    return draft


def _plamo(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    """EOT is 4 whatever token that is, and fillers are numbered from 1."""
    name = "tokenizer.jsonl"
    read, _ = plamo_jsonl.draft_of(read_bytes(_path(folder, name)), name, Folder(None))
    draft = Draft(model="plamo2", pre="default", scores={})
    draft.texts, draft.types, draft.scores = read.texts, read.types, read.scores
    n = len(read.texts)
    for i in range(1, size_of(folder, n) - n + 1):
        draft.set(n + i - 1, f"[PAD{i}]".encode(), spelling.UNUSED, -1000.0)
    ids = {text: id for id, text in draft.texts.items()}
    for role in ("bos", "eos", "pad", "sep", "unk"):
        text = folder.tokenizer_config.get(f"{role}_token")
        if text is not None:
            where = f"tokenizer_config.json: {role}_token"
            id = ids.get(utf8(checked(text, str, where), where))
            if id is None:
                raise VocabError(f"{where}: {text!r} is no token: llama.cpp's converter stops")
            draft.special_ids[role] = id
    draft.special_ids["eot"] = 4
    draft.flags["add_space_prefix"] = False
    return draft


# ---- ranks ----


def _qwen(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    """Qwen 1: its special tokens are in the class that comes with it, after the ranks."""
    name = "qwen.tiktoken"
    ranks = read_ranks(read_bytes(_path(folder, name)), name)
    right = faithful if pre is None else None
    draft = Draft(model="gpt2", pre=pre)
    if right is not None:
        draft.pre = named_by_hash(confirm.encode_ours(right(), parse_special=True))
    add_ranks(draft, ranks, 0)
    special = {text: len(ranks) + i for i, text in enumerate(QWEN)}
    for text, id in special.items():
        draft.set(id, text.encode(), spelling.CONTROL)
    draft.size = size_of(folder, len(draft.texts))
    if max(draft.texts) >= draft.size:
        raise VocabError(
            f"config.json: vocab_size is {draft.size}, but there is a token {max(draft.texts)}"
        )
    draft.merges = [_last_merge(token, ranks, name) for token in ranks if len(token) > 1]
    found = Special(folder)
    for role in ("unk",) if found.ids else ("bos", "eos", "unk"):
        found.set(role, special["<|endoftext|>"])
    found.write(draft)
    return draft


def _last_merge(token: bytes, ranks: dict[bytes, int], where: str) -> Pair:
    pair = last_merge(token, ranks)
    if pair is None or any(ranks[part] > ranks[token] for part in pair):
        raise VocabError(f"{where}: no merges make {token!r}: llama.cpp's converter stops there")
    return spelling.to_characters(pair[0]), spelling.to_characters(pair[1])


def _mistral(folder: Folder, pre: str | None, faithful: Callable[[], Vocabulary]) -> Draft:
    """tekken.json: all splits of a token are merges, and its expression isn't looked at."""
    path = _path(folder, "tekken.json")
    if folder.file("tokenizer.json") is not None:
        raise NotThis
    document = read_object(path)
    special, ranks = tekken.tokens_of(document)
    draft = Draft(model="gpt2", pre="tekken")
    for id, text in enumerate(special):
        draft.set(id, utf8(text, "special_tokens"), spelling.CONTROL)
    add_ranks(draft, ranks, len(special))
    draft.keys[GGML + "scores"] = [0] * len(draft.texts)  # integers, which the converter writes
    draft.merges = _all_splits(ranks)
    ids = {text: id for id, text in enumerate(special)}
    for role, text in (("bos", "<s>"), ("eos", "</s>"), ("unk", "<unk>"), ("pad", "<pad>")):
        if text not in ids:
            raise VocabError(f"tekken.json: special_tokens: {text!r} isn't there")
        draft.special_ids[role] = ids[text]
    draft.flags = {"add_bos": True, "add_eos": False}
    version = field(field(document, "config", dict, ""), "version", str, "config")
    draft.chat_template = _TEKKEN_TEMPLATES.get(version)
    if draft.chat_template is None:
        draft.notes.append(
            f"the converter also writes a chat template for {version}, out of llama.cpp's folder "
            "models/templates"
        )
    roles = ("bos", "eos", "unknown", "padding")
    names = ["model", "pre", "merges", *(f"{role}_token_id" for role in roles)]
    names += ["tokens", "scores", "token_type", "add_bos_token", "add_eos_token"]
    draft.order = (*(GGML + name for name in names), TEMPLATE)
    return draft


def _all_splits(ranks: dict[bytes, int]) -> list[Pair]:
    """By the tokens' ranks, then by the parts'."""
    check_splits(ranks, "tekken.json")
    merges: list[Pair] = []
    for token, rank in ranks.items():
        if rank < 256:
            continue
        splits = ((token[:i], token[i:]) for i in range(1, len(token)))
        known = [pair for pair in splits if pair[0] in ranks and pair[1] in ranks]
        if not known:
            raise VocabError(f"tekken.json: no two tokens make {token!r}: the converter stops")
        known.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += ((spelling.to_characters(a), spelling.to_characters(b)) for a, b in known)
    return merges


HELPERS: dict[str, Helper] = {
    "sentencepiece": _sentencepiece,
    "t5": _t5,
    "xlmr": _xlmr,
    "rwkv": _rwkv,
    "plamo": _plamo,
    "qwen": _qwen,
    "mistral": _mistral,
}
