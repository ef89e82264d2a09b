"""Writes tokenizer.json for Hugging Face's tokenizers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ggtok.errors import VocabError
from ggtok.tokenizer import TokenAttr, Tokenizer
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Contents, Differs
from ggtok.vocabularies.convert.source_files import check_splits
from ggtok.vocabularies.gguf_writer import CHARSMAP, tokenizer_of
from ggtok.vocabularies.patterns import CHAIN_OF_PRE, Chain
from ggtok.vocabularies.pre_tokenizer_json import (
    NEWLINES,
    is_published_but_for_long_s,
    pre_tokenizer_of,
    published_pre_tokenizer_of,
    unmerged_run,
)
from ggtok.vocabularies.wordpiece_json import UNLIMITED, replace, wordpiece_steps

# ---- special tokens, which other libraries parse by different rules ----


@dataclass(frozen=True)
class AddedToken:
    id: int
    text: bytes
    control: bool
    lstrip: bool
    rstrip: bool


def found_whole(tok: Tokenizer) -> Iterator[tuple[int, TokenAttr]]:
    """Yields ids and attributes of the tokens that llama.cpp parses before it pre-tokenizes."""
    for id in range(tok.n_tokens):
        attr = tok.token_attr(id)
        if attr & (TokenAttr.CONTROL | TokenAttr.USER_DEFINED | TokenAttr.UNKNOWN):
            yield id, attr


def special_of(tok: Tokenizer, format: str, differs: Differs) -> list[AddedToken]:
    """Returns the tokens that llama.cpp parses in a text, by id.

    `differs` collects texts in which the other library finds different tokens, or strips more white
    space.
    """
    found = [
        AddedToken(
            id,
            tok.token_text(id),
            not attr & TokenAttr.USER_DEFINED,
            bool(attr & TokenAttr.LSTRIP),
            bool(attr & TokenAttr.RSTRIP),
        )
        for id, attr in found_whole(tok)
    ]
    strips = [special.text for special in found if special.lstrip or special.rstrip]
    if strips and tok.vocab_type != "WPM":  # WPM drops all white space anyway
        differs(
            f"{format}: next to {_quote_token(strips[0])}, llama.cpp strips only ASCII white "
            "space, the other library also U+00A0 or U+3000: ids of such texts differ"
        )
    conflict = _conflict([special.text for special in found])
    if conflict is not None:
        differs(
            f"{format}: in the text {_quote_token(conflict)} llama.cpp finds the longest special "
            "token first, the other library the leftmost: their ids differ"
        )
    return found


def _conflict(texts: Sequence[bytes]) -> bytes | None:
    """Returns the joint text of two overlapping tokens in which llama.cpp (longest first) and the
    other library (leftmost first) find different tokens, or None."""
    begins: dict[bytes, list[bytes]] = {}
    ends = {text[i:] for text in texts for i in range(1, len(text))}
    for text in texts:
        for i in range(1, len(text)):
            if text[:i] in ends:
                begins.setdefault(text[:i], []).append(text)
    known = set(texts)
    for first in texts:
        for i in range(1, len(first)):
            for second in begins.get(first[i:], ()):
                joint = first[:i] + second
                if first != second and not _agree(joint, second, known):
                    return joint
    return None


def _agree(joint: bytes, second: bytes, known: set[bytes]) -> bool:
    """Whether llama.cpp and the other library find the same token at the start of the joint text.

    In llama.cpp, the order of ids decides between two tokens of the same length.
    """
    at = len(joint) - len(second)
    longest = next(joint[:n] for n in range(len(joint), 0, -1) if joint[:n] in known)
    return longest == second or len(longest) > len(second) or len(longest) <= at


def _quote_token(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))


# ---- the file ----

Json = dict[str, Any]
_FORMAT = "tokenizer.json"
_MARK = "\u2581"
# Bytes that don't occur in UTF-8, or occur only in planes 4 to 11, which have no characters.
_NEVER = {0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100)}


def tokenizer_json(vocabulary: Contents, differs: Differs) -> bytes:
    """Returns the file's bytes. `differs` collects texts for which tokenizers' ids differ.

    Raises:
        VocabError: tokenizers couldn't produce llama.cpp's ids.
    """
    if vocabulary.pre_patterns is not None:
        raise VocabError(f"{_FORMAT}: pre_patterns are Python's expressions, not tokenizers'")
    writers: dict[str, Callable[[Contents, Tokenizer, list[str]], Json]] = {
        "gpt2": partial(_bpe, differs),
        "llama": _spm,
        "gemma4": _gemma4,
        "bert": _wordpiece,
        "t5": _unigram,
    }
    if vocabulary.model not in writers:
        known = ", ".join(writers)
        raise VocabError(f"{_FORMAT}: model {vocabulary.model!r} isn't supported, only {known}")
    texts, tok = _decode_texts(vocabulary), tokenizer_of(vocabulary)
    document: Json = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tok, texts, differs),
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": _post_processor(vocabulary.model, tok, texts),
        "decoder": None,
    }
    if vocabulary.model == "t5":
        differs(
            f"{_FORMAT}: tokenizers splits text at spaces and normalizes by other rules than "
            "llama.cpp: ids of texts with repeated or rare spaces, and of user-defined tokens, "
            "differ"
        )
    unused = [id for id, type in enumerate(vocabulary.types) if type == spelling.UNUSED]
    if unused:
        differs.accepted.append(
            f"{_FORMAT}: the format doesn't know unused tokens: {len(unused)}, such as "
            f"{_quote_token(vocabulary.texts[unused[0]])}, become ordinary tokens with a text"
        )
    document |= writers[vocabulary.model](vocabulary, tok, texts)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def exact_tokenizer_json(vocabulary: Contents) -> bytes:
    """Returns the same as tokenizer_json, but raises VocabError if tokenizers' ids would differ for
    any text."""
    differs = Differs(allowed=False)
    data = tokenizer_json(vocabulary, differs)
    if differs.reasons:
        raise VocabError("; ".join(differs.reasons))
    return data


def changed_types(vocabulary: Contents) -> dict[tuple[int, int], list[int]]:
    """Returns the ids of the tokens whose type a conversion of the exported file changes, by the
    types before and after.

    The format knows ordinary tokens, added tokens, which are special or not, and, in some models,
    the unknown token.
    """
    tok = tokenizer_of(vocabulary)
    by_characters = vocabulary.model in ("llama", "gemma4", "t5")
    after = [
        spelling.BYTE if by_characters and spelling.is_byte_token(text) else spelling.NORMAL
        for text in vocabulary.texts
    ]
    for id, attr in found_whole(tok):
        after[id] = spelling.USER_DEFINED if attr & TokenAttr.USER_DEFINED else spelling.CONTROL
    if by_characters and tok.unk_id is not None:
        after[tok.unk_id] = spelling.UNKNOWN
    changes: dict[tuple[int, int], list[int]] = {}
    for id, types in enumerate(zip(vocabulary.types, after, strict=True)):
        if types[0] != types[1]:
            changes.setdefault(types, []).append(id)
    return changes


def _decode_texts(vocabulary: Contents) -> list[str]:
    texts = []
    for id, text in enumerate(vocabulary.texts):
        try:
            texts.append(text.decode())
        except UnicodeDecodeError:
            raise VocabError(f"{_FORMAT}: token {id} ({text!r}) is not UTF-8") from None
    return texts


def _added_tokens(tok: Tokenizer, texts: Sequence[str], differs: Differs) -> list[Json]:
    return [
        {
            "id": special.id,
            "content": texts[special.id],
            "single_word": False,
            "lstrip": special.lstrip,
            "rstrip": special.rstrip,
            "normalized": False,
            "special": special.control,
        }
        for special in special_of(tok, _FORMAT, differs)
    ]


def _post_processor(model: str, tok: Tokenizer, texts: Sequence[str]) -> Json | None:
    """Returns a post_processor that adds what llama.cpp adds: BOS and EOS according to the flags,
    or, for BERT, CLS and SEP."""
    bert = model == "bert"
    first = tok.bos_id if tok.add_bos or bert else None
    last = tok.sep_id if bert else tok.eos_id if tok.add_eos else None
    if bert and (first is None or last is None):
        raise VocabError(f"{_FORMAT}: there is no token to add before or after a text")
    single = _around(first, texts, "A", 0, last)
    if len(single) == 1:
        return None
    ids = sorted({id for id in (first, last) if id is not None})
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": single + _around(None if bert else first, texts, "B", 1, last),
        "special_tokens": {
            texts[id]: {"id": texts[id], "ids": [id], "tokens": [texts[id]]} for id in ids
        },
    }


def _around(
    first: int | None, texts: Sequence[str], sequence: str, type: int, last: int | None
) -> list[Json]:
    """Returns one sequence in a template, with the tokens added before and after it."""
    before, after = (
        [] if id is None else [{"SpecialToken": {"id": texts[id], "type_id": type}}]
        for id in (first, last)
    )
    return [*before, {"Sequence": {"id": sequence, "type_id": type}}, *after]


# ---- models ----


def _model(texts: Sequence[str], merges: Sequence[Sequence[str]], **more: object) -> Json:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        **more,
        "vocab": {text: id for id, text in enumerate(texts)},
        "merges": merges,
    }


def _bpe(differs: Differs, vocabulary: Contents, tok: Tokenizer, texts: list[str]) -> Json:
    chain = CHAIN_OF_PRE.get(vocabulary.pre or "default")
    if chain is None:
        raise VocabError(f"{_FORMAT}: the pre-tokenizer {vocabulary.pre!r} isn't supported")
    known = set(vocabulary.texts)
    for byte, character in enumerate(spelling.byte_characters()):
        if character not in known and byte not in _NEVER:
            raise VocabError(
                f"{_FORMAT}: no token for the byte 0x{byte:02X}: llama.cpp and tokenizers treat "
                "it differently"
            )
    merges = _merges(vocabulary, known)
    ignore = tok._loaded.flags["ignore_merges"]
    pre_tokenizer = pre_tokenizer_of(chain)
    if differs.published:
        pre_tokenizer = _published_pre_tokenizer(chain, differs)
    elif differs.allowed and chain.steps in chain.published:
        pre_tokenizer = published_pre_tokenizer_of(chain)
        differs(
            f"{_FORMAT}: expressions are written as published, so words with characters newer than "
            "llama.cpp's Unicode 15.1 may be split differently"
        )
    return {
        "pre_tokenizer": pre_tokenizer,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": _model(texts, merges, ignore_merges=ignore),
    }


def _published_pre_tokenizer(chain: Chain, differs: Differs) -> Json:
    """Returns the published pre_tokenizer, and says for which texts it differs from llama.cpp's."""
    if not chain.published:
        pres = ", ".join(repr(pre.name) for pre in chain.pres)
        raise VocabError(f"{_FORMAT}: no expressions are published for the pre-tokenizers {pres}")
    texts = ["words with characters newer than Unicode 15.1"]
    if chain.steps not in chain.published:
        texts.append("an apostrophe before U+017F (\u017f), which isn't an s in llama.cpp")
    differing = ", and for ".join(texts)
    differs.accepted.append(
        f"{_FORMAT}: expressions are written as published: ids differ for {differing}"
    )
    if not is_published_but_for_long_s(chain):
        differs(
            f"{_FORMAT}: the published expressions distinguish letters and marks that are one "
            "category in llama.cpp, such as cases outside ASCII: ids of such words differ"
        )
    return published_pre_tokenizer_of(chain)


def _merges(vocabulary: Contents, known: Collection[bytes]) -> list[list[str]]:
    merges: list[list[str]] = []
    seen = set()
    for i, (left, right) in enumerate(vocabulary.merge_texts or ()):
        if left not in known or right not in known or left + right not in known:
            raise VocabError(
                f"{_FORMAT}: merge {i} ({left!r}, {right!r}) has parts or a result that aren't "
                "tokens"
            )
        if (left, right) not in seen:  # llama.cpp uses the first duplicate, tokenizers the last
            seen.add((left, right))
            merges.append([left.decode(), right.decode()])
    return merges


def _spm(vocabulary: Contents, tok: Tokenizer, texts: list[str]) -> Json:
    _check_byte_tokens(texts)
    normalizers = [replace({"String": " "}, _MARK)]
    decoders: list[Json] = [
        replace({"String": _MARK}, " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if tok._loaded.flags["add_space_prefix"]:
        normalizers.insert(0, {"type": "Prepend", "prepend": _MARK})
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    unk = None if tok.unk_id is None else texts[tok.unk_id]
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": _model(
            texts,
            merges_by_score(vocabulary, texts),
            unk_token=unk,
            fuse_unk=True,
            byte_fallback=True,
        ),
    }


def _check_byte_tokens(texts: Sequence[str]) -> None:
    known = set(texts)
    for byte in range(256):
        if spelling.byte_token(byte).decode() not in known:
            raise VocabError(f"{_FORMAT}: no token {spelling.byte_token(byte).decode()!r}")


def _gemma4(vocabulary: Contents, tok: Tokenizer, texts: list[str]) -> Json:
    _check_byte_tokens(texts)
    merges = _merges(vocabulary, set(vocabulary.texts))
    run = unmerged_run(texts, [(left, right) for left, right in merges])
    if run is not None:
        raise VocabError(
            f"{_FORMAT}: {len(run)} newlines are a token in llama.cpp, but no merges make it"
        )
    unk = None if tok.unk_id is None else texts[tok.unk_id]
    return {
        "normalizer": {"type": "Sequence", "normalizers": [replace({"String": " "}, _MARK)]},
        "pre_tokenizer": NEWLINES,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                replace({"String": _MARK}, " "),
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": _model(texts, merges, unk_token=unk, fuse_unk=True, byte_fallback=True),
    }


def merges_by_score(vocabulary: Contents, texts: Sequence[str]) -> list[list[str]]:
    """Returns all pairs of tokens whose joint text is a token, highest joint score first.

    llama.cpp merges joint tokens of equal scores from left to right. An order of merges can express
    this only if these tokens don't overlap, or if each is a run of the same character (runs grow
    from the left if the longest comes first).

    Raises:
        VocabError: other joint tokens of equal scores may overlap.
    """
    scores = vocabulary.scores or [0.0] * len(texts)
    check_splits(texts, _FORMAT)
    ids = {text: id for id, text in enumerate(texts)}
    ranked: list[tuple[float, int, int, int, int]] = []
    joint: dict[float, list[str]] = {}
    for text, score in zip(texts, scores, strict=True):
        before = len(ranked)
        for i in range(1, len(text)):
            left, right = ids.get(text[:i]), ids.get(text[i:])
            if left is not None and right is not None:
                ranked.append((-score, -len(text), ids[text], left, right))
        if len(ranked) > before:
            joint.setdefault(score, []).append(text)
    for tied in joint.values():
        _check_tied(tied)
    ranked.sort()
    return [[texts[left], texts[right]] for *_, left, right in ranked]


def _check_tied(tied: Sequence[str]) -> None:
    if len({c for text in tied for c in text}) == 1:
        return
    ends = {text[i:]: text for text in tied for i in range(len(text) - 1, 0, -1)}
    for text in tied:
        for i in range(1, len(text)):
            other = ends.get(text[:i])
            if other is not None and other != text:
                raise VocabError(
                    f"{_FORMAT}: the tokens {other!r} and {text!r} have the same score and may "
                    "overlap: llama.cpp merges the leftmost first, tokenizers always the same one"
                )


def _wordpiece(vocabulary: Contents, tok: Tokenizer, texts: list[str]) -> Json:
    if tok.unk_id is None:
        raise VocabError(f"{_FORMAT}: there is no token for unknown words")
    flags = tok._loaded.flags
    return {
        **wordpiece_steps(flags["strip_accents"], flags["lowercase"]),
        "model": {
            "type": "WordPiece",
            "unk_token": texts[tok.unk_id],
            "continuing_subword_prefix": "",
            "max_input_chars_per_word": UNLIMITED,
            "vocab": {text: id for id, text in enumerate(texts)},
        },
    }


def _unigram(vocabulary: Contents, tok: Tokenizer, texts: list[str]) -> Json:
    if tok.unk_id is None or vocabulary.scores is None:
        raise VocabError(f"{_FORMAT}: Unigram needs scores and a token for unknown characters")
    normalizers: list[Json] = [{"type": "NFC"}] if tok._loaded.flags["nfc"] else []
    charsmap = vocabulary.keys.get(CHARSMAP)
    if isinstance(charsmap, bytes) and charsmap:
        packed = base64.b64encode(charsmap).decode()
        normalizers.append({"type": "Precompiled", "precompiled_charsmap": packed})
    metaspace = {
        "type": "Metaspace",
        "replacement": _MARK,
        "prepend_scheme": "always" if tok._loaded.flags["add_space_prefix"] else "never",
        "split": True,
    }
    pre_tokenizer: Json = metaspace
    if tok._loaded.flags["remove_extra_whitespaces"]:
        normalizers.append(replace({"Regex": " {2,}"}, " "))
        steps = [{"type": "WhitespaceSplit"}, metaspace]
        pre_tokenizer = {"type": "Sequence", "pretokenizers": steps}
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": pre_tokenizer,
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": tok.unk_id,
            "vocab": [list(row) for row in zip(texts, vocabulary.scores, strict=True)],
            "byte_fallback": False,
        },
    }
