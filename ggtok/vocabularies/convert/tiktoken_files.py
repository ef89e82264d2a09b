"""Converts ``*.tiktoken`` and ``tekken.json``: tokens with ranks instead of merges."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as field_
from typing import Any, NamedTuple

from ggtok.errors import UnknownPreTokenizerError, VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Difference
from ggtok.vocabularies.convert import structure
from ggtok.vocabularies.convert.confirm import Original
from ggtok.vocabularies.convert.draft import (
    Draft,
    add_configured,
    check_holes,
    fewer_categories,
    name_end,
    newer_characters,
    set_configured,
)
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.originals import Package
from ggtok.vocabularies.convert.ranks import recover_merges
from ggtok.vocabularies.convert.source_files import (
    MAX_TOKEN_BYTES,
    MAX_TOKENS,
    expect_type,
    field,
    lines_of,
    token_id,
    utf8,
)
from ggtok.vocabularies.patterns import CHAIN_OF_PRE, Chain
from ggtok.vocabularies.pre_tokenizer_json import limit_to_unicode_15

# ---- *.tiktoken: each line has a token's bytes in base64 and its rank, which is its id ----


class Known(NamedTuple):
    """A published file. It is recognized by its SHA-256, because it doesn't contain the expression
    that splits text."""

    name: str
    pre: str
    special: dict[str, int]
    end: str


_END = {"<|endoftext|>": 50256}
_CL100K = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}
_O200K = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
# Qwen 1's special tokens, which come after the ranks.
QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205)))
_QWEN = {text: 151643 + i for i, text in enumerate(QWEN)}
_QWEN_35 = {
    text: 248044 + i
    for i, text in enumerate(
        "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> "
        "<|box_start|> <|box_end|> <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> "
        "<|vision_pad|> <|image_pad|> <|video_pad|> <tool_call> </tool_call> <|fim_prefix|> "
        "<|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> <tool_response> "
        "</tool_response> <think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> "
        "<tts_text_eod> <tts_text_bos_single> <|audio_pad|>".split()
    )
}
KNOWN = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": Known(
        "r50k_base", "gpt-2", _END, "<|endoftext|>"
    ),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": Known(
        "p50k_base", "gpt-2", _END, "<|endoftext|>"
    ),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": Known(
        "cl100k_base", "dbrx", _CL100K, "<|endoftext|>"
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": Known(
        "o200k_base", "gpt-4o", _O200K, "<|endoftext|>"
    ),
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": Known(
        "qwen", "qwen2", _QWEN, "<|endoftext|>"
    ),
    "8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd": Known(
        "qwen3.6", "qwen35", _QWEN_35, "<|im_end|>"
    ),
}


@dataclass
class Ranks:
    """The ids of tokens by their bytes, and of special tokens by their texts."""

    ranks: dict[bytes, int]
    special: dict[str, int] = field_(default_factory=dict)


def read_ranks(data: bytes, where: str) -> dict[bytes, int]:
    """Reads the ranks of tokens by their bytes."""
    ranks: dict[bytes, int] = {}
    taken: dict[int, int] = {}
    for number, line in lines_of(data):
        if not line:
            continue
        at = f"{where}: line {number}"
        encoded, _, digits = line.partition(b" ")
        if not digits.isdigit() or len(digits) > 9:
            raise VocabError(f"{at}: not a token in base64 and its rank")
        if encoded == b"=":
            continue  # this is Whisper's empty token, which no text produces
        try:
            token, rank = base64.b64decode(encoded, validate=True), int(digits)
        except (binascii.Error, ValueError):
            raise VocabError(f"{at}: the token is not base64") from None
        if not 0 < len(token) <= MAX_TOKEN_BYTES or rank >= MAX_TOKENS:
            raise VocabError(f"{at}: the token has {len(token)} bytes, or the rank is too large")
        if token in ranks:
            raise VocabError(f"{at}: the token {token!r} has rank {ranks[token]} too")
        if rank in taken:
            raise VocabError(f"{at}: line {taken[rank]} has rank {rank} too")
        ranks[token], taken[rank] = rank, number
    if not ranks:
        raise VocabError(f"{where}: there are no tokens")
    return ranks


def draft_of(
    data: bytes, where: str, folder: SourceFolder, pre: str | None
) -> tuple[Draft, str, Ranks, Chain | None]:
    """Returns the draft of the vocabulary, the name of its format, the ranks, and the
    pre-tokenizer's chain."""
    known = KNOWN.get(hashlib.sha256(data).hexdigest())
    name = pre or (_pre_of(folder, where) if known is None else known.pre)
    if name is None:
        raise UnknownPreTokenizerError(
            f"{where}: a .tiktoken file doesn't say how text is split, and this one isn't known: "
            "pre=NAME (--pre NAME) sets the pre-tokenizer, such as 'qwen2' for Qwen, 'llama-bpe' "
            "for Llama 3, 'gpt-4o' for o200k"
        )
    ranks = Ranks(read_ranks(data, where), dict(known.special) if known is not None else {})
    draft = Draft(model="gpt2", pre=name)
    add_ranks(draft, ranks.ranks, 0)
    for text, id in ranks.special.items():
        draft.set(id, text.encode(), spelling.CONTROL)
    if known is not None:
        draft.special_ids["eos"] = known.special[known.end]
    draft.flags = {"add_bos": False, "add_eos": False}
    add_configured(draft, folder, where)
    if known is None:  # published ranks come with all their special tokens
        _add_reserved(draft, folder, ranks.ranks, where)
    ranks.special = _special_of(draft)
    set_configured(draft, folder, ranks.special)
    name_end(draft)
    chain = CHAIN_OF_PRE.get(name)
    complete_draft(draft, ranks.ranks, name, chain)
    format = "tiktoken" if known is None else f"tiktoken ({known.name})"
    return draft, format, ranks, chain


# The pre-tokenizers of tokenizer classes that are code in the model's repository, by the module.
_PRE_OF_CODE = {
    "tokenization_kimi": "kimi-k2",
    "tokenization_opencua": "kimi-k2",
    "tokenization_qwen": "qwen2",
}
_RESERVED = 256  # how many ids after the ranks these classes reserve for special tokens
_RESERVING = ("tokenization_kimi", "tokenization_opencua")


def _pre_of(folder: SourceFolder, where: str) -> str | None:
    """Returns the pre-tokenizer of the class that reads the ranks, or None if it is unknown."""
    code = folder.code_of_class
    if code is not None:
        return _PRE_OF_CODE.get(code)
    # transformers reads files with these names, and splits text as Llama 3 does.
    is_read = where.startswith(("tokenizer.model", "tiktoken.model"))
    return "llama-bpe" if is_read and folder.path is not None else None


def _add_reserved(
    draft: Draft, folder: SourceFolder, ranks: Mapping[bytes, int], where: str
) -> None:
    """Adds special tokens for the ids after the ranks that the configuration leaves out."""
    code = folder.code_of_class or ""
    end = max(max(draft.texts) + 1, len(ranks) + _RESERVED if code in _RESERVING else 0)
    check_holes(end, len(draft.texts), where)
    reserved = [id for id in range(max(ranks.values()) + 1, end) if id not in draft.texts]
    for id in reserved:
        draft.set(id, b"<|reserved_token_%d|>" % id, spelling.CONTROL)
    if reserved:
        by = f"{code}.py of its repository" if code in _RESERVING else "transformers"
        draft.notes.append(
            f"{len(reserved)} ids without a token are special tokens such as "
            f"'<|reserved_token_{reserved[0]}|>', as in {by}"
        )


def _special_of(draft: Draft) -> dict[str, int]:
    """Returns the ids of the tokens that are searched for before text is split."""
    kinds = (spelling.CONTROL, spelling.USER_DEFINED)
    return {draft.texts[id].decode(): id for id, kind in draft.types.items() if kind in kinds}


def add_ranks(draft: Draft, ranks: Mapping[bytes, int], first: int) -> None:
    """Adds tokens, spelled with GPT-2's byte map, with the ids first + rank."""
    for token, rank in ranks.items():
        draft.set(first + rank, spelling.to_characters(token), spelling.NORMAL)


def complete_draft(draft: Draft, ranks: Mapping[bytes, int], pre: str, chain: Chain | None) -> None:
    """Sets the merges, and adds the differences that the pre-tokenizer causes."""
    merges, unreachable = recover_merges(ranks)
    whole = frozenset(unreachable)
    as_characters = spelling.to_characters
    draft.merges = [(as_characters(left), as_characters(right)) for left, right in merges]
    rows = () if chain is None else chain.pres
    whole_words = any(row.ignore_merges for row in rows if row.name == pre)
    if unreachable and not whole_words:

        def change(document: dict[str, Any]) -> None:
            kept = document["ranks"].items()
            document["ranks"] = {token: rank for token, rank in kept if token not in whole}

        draft.differences.append(
            Difference(
                "ignore-merges",
                f"the source takes a word that is a token before it merges: llama.cpp's {pre} "
                f"doesn't, and no merges produce {len(unreachable)} of the tokens, such as "
                f"{unreachable[0]!r}",
                change=change,
            )
        )


# ---- the source's own package ----


def original_of(ranks: Ranks, chain: Chain | None) -> tuple[Original | None, list[Difference]]:
    """Returns the source in the form that tiktoken reads, with the published expression, and the
    differences that llama.cpp's expression causes."""
    if chain is None or len(chain.steps) != 1:
        return None, []
    published = chain.published[0] if chain.published else chain.steps
    exact = limit_to_unicode_15(chain.steps[0])
    differences = []

    def change(document: dict[str, Any]) -> None:
        document["pattern"] = exact

    if published != chain.steps:
        differences.append(fewer_categories(chain.pres[0].name, change))
    elif published[0] != exact:
        differences.append(newer_characters(change))
    document = {"pattern": published[0], "ranks": ranks.ranks, "special": ranks.special}
    return Original(document, Package("tiktoken"), dict, dict), differences


# ---- Mistral's tekken.json: special tokens, followed by ranks like tiktoken's ----

# The special tokens, in the order of their ids, in files that don't list them.
_FIRST_SPECIAL = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] "
    "[/TOOL_RESULTS] [TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] "
    "[SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
).split()
_NAMED = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"}


def tekken_draft_of(
    document: dict[str, Any], folder: SourceFolder, pre: str | None
) -> tuple[Draft, str, Original | None]:
    """Returns the draft of the vocabulary, the name of its format, and the source for its own
    package."""
    special, ranks = tokens_of(document)
    n_special = len(special)
    config = field(document, "config", dict, "")
    pattern = structure.normal_form(field(config, "pattern", str, "config")[: 1 << 14])
    name = pre
    if name is None:
        chain = structure.chain_of(structure.Structure((pattern,)))
        name = structure.pre_for(chain, ignore_merges=True, keep_spaces=True).name
    draft = Draft(model="gpt2", pre=name)
    add_ranks(draft, ranks, n_special)
    for id, text in enumerate(special):
        draft.set(id, utf8(text, "special_tokens"), spelling.CONTROL)
    ids = {text: id for id, text in enumerate(special)}
    draft.special_ids = {key: ids[text] for key, text in _NAMED.items() if text in ids}
    draft.flags = {"add_bos": True, "add_eos": False}
    add_configured(draft, folder, "tekken.json")
    set_configured(draft, folder, _special_of(draft))
    of_name = CHAIN_OF_PRE.get(name)
    complete_draft(draft, ranks, name, of_name)
    original, differences = original_of(Ranks(ranks), of_name)
    draft.differences += differences
    return draft, "tekken.json", None if original is None else _after(original, n_special)


def tokens_of(document: Mapping[str, Any]) -> tuple[list[str], dict[bytes, int]]:
    """Returns the texts of the special tokens, which have the first ids, and the ranks of the other
    tokens."""
    config = field(document, "config", dict, "")
    n_special = token_id(
        config.get("default_num_special_tokens"), "config.default_num_special_tokens"
    )
    size = token_id(config.get("default_vocab_size"), "config.default_vocab_size")
    return _special(document, n_special), _ranks(document, size - n_special)


def _special(document: Mapping[str, Any], n: int) -> list[str]:
    texts = list(_FIRST_SPECIAL)
    rows = field(document, "special_tokens", list, "", None)
    if rows is not None:
        texts = []
        for i, row in enumerate(rows):
            where = f"special_tokens[{i}]"
            entry = expect_type(row, dict, where)
            if token_id(entry.get("rank"), where + ".rank") != i:
                raise VocabError(f"{where}.rank: special tokens aren't in order")
            texts.append(field(entry, "token_str", str, where))
    if len(texts) > n:
        raise VocabError(f"special_tokens: {len(texts)} are more than {n}")
    return texts + [f"<SPECIAL_{id}>" for id in range(len(texts), n)]


def _ranks(document: Mapping[str, Any], n: int) -> dict[bytes, int]:
    """Returns the ranks of the first `n` tokens. A file may have more than the model uses."""
    rows = field(document, "vocab", list, "")
    if not 0 < n <= len(rows):
        raise VocabError(f"config.default_vocab_size: {n} tokens, but vocab has {len(rows)}")
    ranks: dict[bytes, int] = {}
    for i, row in enumerate(rows[:n]):
        where = f"vocab[{i}]"
        entry = expect_type(row, dict, where)
        if entry.get("rank") != i:
            raise VocabError(f"{where}.rank: is {entry.get('rank')!r}: ranks must be in order")
        try:
            token = base64.b64decode(field(entry, "token_bytes", str, where), validate=True)
        except (binascii.Error, ValueError):
            raise VocabError(f"{where}.token_bytes: is not base64") from None
        if not token or token in ranks:
            raise VocabError(f"{where}.token_bytes: {token!r} is empty or a duplicate")
        ranks[token] = i
    assert len(ranks) <= MAX_TOKENS
    return ranks


def _after(original: Original, first: int) -> Original:
    """Returns the source with `first` added to its package's ids. The package doesn't parse special
    tokens in a text."""
    return replace(original, parses_special=False, number=first.__add__)
