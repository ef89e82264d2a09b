"""The two sides of ``ggtok diff``, and what differs between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isnan
from typing import Any

import ggtok
from ggtok.base.escape import shown
from ggtok.cli.inspect import _SPECIALS
from ggtok.errors import MissingExtraError, VocabError
from ggtok.vocabularies.convert.originals import Package
from ggtok.vocabularies.convert.reading import Folder, read_object
from ggtok.vocabularies.convert.tokenizer_json import Source, ids_of
from ggtok.vocabularies.spelling import from_characters, scheme

Tokens = list[bytes]
# llama.cpp's common/speculative.cpp, b11549.
_MOST_APART = 128  # tokens by which the sizes may differ
_FIRST = 5  # id from which on texts must be equal


class Model:
    """A GGUF vocabulary."""

    def __init__(self, source: str) -> None:
        self.tok = tok = ggtok.load(source)
        self.texts = [tok.token_text(id) for id in range(tok.n_tokens)]
        pairs = ggtok.vocabulary(source).merge_texts if tok.n_tokens else None
        self.merges = [left + b" " + right for left, right in pairs or ()]
        self._spelled = scheme(tok.model, tok.pre) == "characters"

    def readable(self, text: str) -> str:
        """What a stored text stands for, with surrogates for bytes that aren't UTF-8."""
        return _readable(text) if self._spelled else text

    def values(self) -> dict[str, object]:
        """What there is one of."""
        tok = self.tok
        return {
            "type": tok.vocab_type,
            "model": tok.model,
            "pre-tokenizer": tok.pre,
            "tokens": tok.n_tokens,
            **tok._native.flags(),
            **{f"{name}_id": getattr(tok, f"{name}_id") for name in _SPECIALS},
            "end of generation": " ".join(map(str, sorted(tok.eog_ids))),
            **{f"template {name}": text for name, text in tok.chat_templates.items()},
        }

    def ids(self, lines: Sequence[bytes], *, parse_special: bool) -> list[list[int]]:
        return self.tok.encode_batch(lines, add_special=False, parse_special=parse_special)

    def piece(self, id: int) -> str:
        return self.tok.token_to_piece(id).decode("utf-8", "surrogateescape")


class Original:
    """A tokenizer.json, whose package runs in a limited child process."""

    def __init__(self, path: str) -> None:
        try:
            source = Source(read_object(path), Folder(None))
            encode = Package("tokenizers").read(json.dumps(source.document))
            if encode is None:
                raise MissingExtraError(
                    f"{path}: to read it needs a package: pip install tokenizers"
                )
            by_id = {i: text for text, i in ids_of(source).items()}
            merges = source.model.get("merges") or []
            self.merges = [
                (merge if isinstance(merge, str) else " ".join(merge)).encode() for merge in merges
            ]
        except (VocabError, TypeError) as e:
            raise VocabError(f"{path}: not a tokenizer.json: {e}") from None
        self._encode = encode
        self._texts = [by_id.get(id, "") for id in range(max(by_id, default=-1) + 1)]
        self.texts = [text.encode() for text in self._texts]
        decoders = [source.document.get(key) for key in ("pre_tokenizer", "decoder")]
        self._spelled = '"ByteLevel"' in json.dumps(decoders)
        self.continuing_prefix = source.model.get("continuing_subword_prefix", "##")

    def ids(self, lines: Sequence[bytes], *, parse_special: bool) -> list[list[int]]:
        """It parses special tokens always."""
        return self._encode([line.decode("utf-8", "replace") for line in lines])

    def readable(self, text: str) -> str:
        return _readable(text) if self._spelled else text

    def piece(self, id: int) -> str:
        return self.readable(self._texts[id]) if id < len(self._texts) else ""


def _readable(text: str) -> str:
    """GPT-2's characters as the bytes that they stand for."""
    data = from_characters(text.encode())
    return text if data is None else data.decode("utf-8", "surrogateescape")


def compare(a: Model, b: Model | Original) -> dict[str, Any]:
    """All differences, ready for JSON; with those of a tokenizer.json, tokens and merges alone.

    An SPM vocabulary has scores instead of merges, which a tokenizer.json made of it lists.
    """
    values: dict[str, Any] = {}
    if isinstance(b, Model):
        ours, theirs = a.values(), b.values()
        values = {
            name: [ours.get(name), theirs.get(name)]
            for name in {**ours, **theirs}
            if ours.get(name) != theirs.get(name)
        }
    by_scores = isinstance(b, Original) and a.tok.vocab_type == "SPM"
    merges = _merges([], []) if by_scores else _merges(a.merges, b.merges)
    return {"values": values, "tokens": _tokens(a, b), "merges": merges}


def any_difference(found: dict[str, Any]) -> bool:
    return bool(
        found["values"]
        or any(found["tokens"].values())
        or any(found["merges"].values())
        or found.get("text", {}).get("different")
    )


def _text(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _tokens(a: Model, b: Model | Original) -> dict[str, Any]:
    texts = b.texts
    if isinstance(b, Original) and a.tok.vocab_type == "WPM" and b.continuing_prefix:
        texts = [_wpm_text(text) for text in texts]
    theirs = {text: id for id, text in enumerate(texts) if text}
    # Ids that only fill an embedding's rows may have no token in a tokenizer.json.
    unused = ggtok.TokenAttr.UNUSED
    filler = set()
    if isinstance(b, Original):
        filler = {
            id
            for id, text in enumerate(a.texts)
            if unused in a.tok.token_attr(id) and text not in theirs
        }
    ours = {text: id for id, text in enumerate(a.texts) if id not in filler}
    both = [(i, theirs[text], text) for text, i in ours.items() if text in theirs]
    found: dict[str, Any] = {
        "only in A": [(id, _text(text)) for text, id in ours.items() if text not in theirs],
        "only in B": [(id, _text(text)) for text, id in theirs.items() if text not in ours],
        "moved": [(i, j, _text(text)) for i, j, text in both if i != j],
        "types": [],
        "scores": 0,
    }
    if isinstance(b, Model):
        for i, j, text in both:
            x, y = a.tok.token_attr(i), b.tok.token_attr(j)
            if x != y:
                found["types"].append((i, _text(text), _names(x), _names(y)))
            score, other = a.tok.token_score(i), b.tok.token_score(j)
            found["scores"] += score != other and not (isnan(score) and isnan(other))
    return found


def _wpm_text(text: bytes) -> bytes:
    """As GGUF files spell a WordPiece token: a mark where a word begins, not where it goes on."""
    if not text or (text.startswith(b"[") and text.endswith(b"]")):
        return text
    return text[2:] if text.startswith(b"##") else "\u2581".encode() + text


def _names(attr: ggtok.TokenAttr) -> str:
    return ",".join(one.name or "" for one in ggtok.TokenAttr if one and one in attr) or "-"


def _merges(a: Tokens, b: Tokens) -> dict[str, list[tuple[int, str]]]:
    ours, theirs = set(a), set(b)
    common = [merge for merge in a if merge in theirs], [merge for merge in b if merge in ours]
    ranks = {merge: rank for rank, merge in enumerate(a)}
    return {
        "only in A": [(rank, _text(m)) for rank, m in enumerate(a) if m not in theirs],
        "only in B": [(rank, _text(m)) for rank, m in enumerate(b) if m not in ours],
        "in another order": [(ranks[x], _text(x)) for x, y in zip(*common, strict=False) if x != y],
    }


def compare_lines(a: Model, b: Model | Original, data: bytes) -> dict[str, Any]:
    """The lines, each a text of its own with its newline, on which ids differ."""
    parse = isinstance(b, Original)
    if parse:  # which knows characters only
        data = data.decode("utf-8", "replace").encode()
    lines = data.splitlines(keepends=True)
    ours, theirs = (side.ids(lines, parse_special=parse) for side in (a, b))
    different = []
    for number, (x, y) in enumerate(zip(ours, theirs, strict=True), 1):
        if x != y:
            n = next((n for n, (i, j) in enumerate(zip(x, y, strict=False)) if i != j), None)
            at = min(len(x), len(y)) if n is None else n
            row = {"line": number, "token": at, "A": _pieces(a, x[at:]), "B": _pieces(b, y[at:])}
            different.append(row)
    return {"lines": len(lines), "different": different}


def _pieces(side: Model | Original, ids: list[int]) -> str:
    """The first few ids and their pieces."""
    first = " ".join(f"{id} '{shown(side.piece(id))}'" for id in ids[:4])
    return f"{first} ..." if len(ids) > 4 else first


def why_no_draft(one: Model, other: Model) -> str | None:
    """Why b can't draft for a: ``common_speculative_are_compatible``; None: it may."""
    a, b = one.tok, other.tok
    if a.vocab_type != b.vocab_type:
        return f"the types are {a.vocab_type} and {b.vocab_type}"
    for name in "bos", "eos":
        adds = [getattr(tok, f"add_{name}") for tok in (a, b)]
        if adds[0] != adds[1]:
            return f"only {'the first' if adds[0] else 'the second'} adds {name.upper()}"
        ids = [getattr(tok, f"{name}_id") for tok in (a, b)]
        if adds[0] and ids[0] != ids[1]:
            return f"{name.upper()} is {ids[0]} and {ids[1]}"
    if abs(a.n_tokens - b.n_tokens) > _MOST_APART:
        return (
            f"there are {a.n_tokens} and {b.n_tokens} tokens: these numbers may differ by "
            f"{_MOST_APART}"
        )
    for id in range(_FIRST, min(a.n_tokens, b.n_tokens)):
        x, y = a.token_text(id), b.token_text(id)
        if x != y:
            texts = [shown(side.readable(_text(t))) for side, t in ((one, x), (other, y))]
            return f"token {id} is '{texts[0]}' and '{texts[1]}'"
    return None
