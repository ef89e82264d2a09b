"""Converts ``*.tiktoken``: one line per token, with its bytes in base64 and its rank (its id)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ggtok.errors import Argument, UnknownPreTokenizerError, VocabError, Wording
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert.confirm import Original
from ggtok.vocabularies.convert.differences import fewer_categories, newer_characters
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.originals import Package
from ggtok.vocabularies.convert.ranks import recovered
from ggtok.vocabularies.convert.reading import MAX_TOKEN_BYTES, MAX_TOKENS, lines_of
from ggtok.vocabularies.convert.special import name_end, set_configured
from ggtok.vocabularies.newer_characters import limited
from ggtok.vocabularies.patterns import CHAIN_OF_PRE, Chain
from ggtok.vocabularies.report import Difference


class Known(NamedTuple):
    """A published file, identified by its SHA-256, because files don't contain the expression."""

    name: str
    pre: str
    special: dict[str, int]
    end: str


_END = {"<|endoftext|>": 50256}
_P50K = {"<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283}
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
    special: dict[str, int] = field(default_factory=dict)


def read_ranks(data: bytes, where: str) -> dict[bytes, int]:
    """The file's tokens."""
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
            continue  # Whisper's empty token, which no text produces
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
    data: bytes, where: str, folder: Folder, pre: str | None
) -> tuple[Draft, str, Ranks, Chain | None]:
    """The vocabulary, the name of its format, the ranks, and the pre-tokenizer's chain."""
    known = KNOWN.get(hashlib.sha256(data).hexdigest())
    if pre is None and known is None:
        raise UnknownPreTokenizerError(
            Wording(
                f"{where}: a .tiktoken file doesn't say how text is split, and this one isn't "
                "known: ",
                Argument("pre", "NAME"),
                " sets the pre-tokenizer, such as 'qwen2' for Qwen, 'llama-bpe' for Llama 3, "
                "'gpt-4o' for o200k",
            )
        )
    name = pre if pre is not None else known.pre  # type: ignore[union-attr]
    ranks = Ranks(read_ranks(data, where), dict(known.special) if known is not None else {})
    draft = Draft(model="gpt2", pre=name)
    add_ranks(draft, ranks.ranks, 0)
    for text, id in ranks.special.items():
        draft.set(id, text.encode(), spelling.CONTROL)
    if known is not None:
        draft.special_ids["eos"] = known.special[known.end]
    draft.flags = {"add_bos": False, "add_eos": False}
    set_configured(draft, folder, ranks.special)
    name_end(draft)
    chain = CHAIN_OF_PRE.get(name)
    finish(draft, ranks.ranks, name, chain)
    format = "tiktoken" if known is None else f"tiktoken ({known.name})"
    return draft, format, ranks, chain


def add_ranks(draft: Draft, ranks: Mapping[bytes, int], first: int) -> None:
    """Adds tokens in GPT-2's byte map, with the ids first + rank."""
    for token, rank in ranks.items():
        draft.set(first + rank, spelling.to_characters(token), spelling.NORMAL)


def finish(draft: Draft, ranks: Mapping[bytes, int], pre: str, chain: Chain | None) -> None:
    """Sets the merges, and notes the differences of the pre-tokenizer."""
    merges, unreachable = recovered(ranks)
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
                f"doesn't, and {len(unreachable)} tokens such as {unreachable[0]!r} are made by "
                "no merges",
                change=change,
            )
        )


# ---- the source's own package ----


def original_of(ranks: Ranks, chain: Chain | None) -> tuple[Original | None, list[Difference]]:
    """The source for tiktoken with the published expression, and llama.cpp's differences."""
    if chain is None or len(chain.steps) != 1:
        return None, []
    published = chain.published[0] if chain.published else chain.steps
    exact = limited(chain.steps[0])
    differences = []

    def change(document: dict[str, Any]) -> None:
        document["pattern"] = exact

    if published != chain.steps:
        differences.append(fewer_categories(chain.pres[0].name, change))
    elif published[0] != exact:
        differences.append(newer_characters(change))
    document = {"pattern": published[0], "ranks": ranks.ranks, "special": ranks.special}
    return Original(document, Package("tiktoken"), dict, dict), differences
