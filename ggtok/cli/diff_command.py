"""``ggtok diff``: compares two vocabularies, and tells whether one can draft for the other."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from math import isnan
from typing import Any

import ggtok
from ggtok.base.escape import printable
from ggtok.cli import input_texts, progress, standard_output
from ggtok.cli.inspect_command import SPECIALS
from ggtok.cli.messages import FINDING, OK, UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import add_words, reporting_waits
from ggtok.errors import MissingExtraError, VocabError
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.originals import Package
from ggtok.vocabularies.convert.source_files import read_object
from ggtok.vocabularies.convert.tokenizer_json import TokenizerJson, ids_of
from ggtok.vocabularies.read import merges_in, metadata_of
from ggtok.vocabularies.spelling import from_characters, scheme

_MAX_EXAMPLES = 5  # the most examples to show for each kind of difference


def add_arguments(parser: Parser) -> None:
    add_words(parser)
    add = parser.add_argument
    add("--text", metavar="FILE", help="also compare the ids of each line of this file")
    add("--draft", action="store_true", help="only report whether B may draft for A")


def run(args: argparse.Namespace) -> int:
    if len(args.words) != 2:
        raise UsageError("give two models")
    if args.draft and args.text is not None:
        raise UsageError("--draft and --text exclude each other")
    with progress.waiting(args.quiet, "reading the vocabularies"):
        a, b = (_load(name, args) for name in args.words)
    if isinstance(a, ComparedOriginal):
        raise UsageError(f"{args.words[0]}: the first must be a GGUF file or a model's name")
    if args.draft:
        if isinstance(b, ComparedOriginal):
            raise UsageError(f"{args.words[1]}: llama.cpp drafts only with a GGUF model")
        return _draft(a, b, args)
    text = None if args.text is None else input_texts.file(args.text)
    with progress.waiting(args.quiet, "comparing the vocabularies") as say:
        found = _compare(a, b)
        if text is not None:
            say("comparing the ids of the lines")
            found["text"] = _compare_lines(a, b, text)
    standard_output.write_result(args, found, _lines(found, a, b))
    differs = (
        found["values"]
        or any(found["tokens"].values())
        or any(found["merges"].values())
        or found.get("text", {}).get("different")
    )
    return FINDING if differs else OK


def _load(name: str, args: argparse.Namespace) -> ComparedModel | ComparedOriginal:
    if name.endswith(".json") and os.path.isfile(name):
        return ComparedOriginal(name)
    args.model = name
    with reporting_waits(args):
        return ComparedModel(name)


# ---- the two vocabularies ----


class ComparedModel:
    """A vocabulary from a GGUF file."""

    def __init__(self, source: str) -> None:
        self.tok = tok = ggtok.load(source)
        self.texts = tok._loaded.texts()
        self.attrs, self.scores = tok._loaded.attrs(), tok._loaded.scores()
        self.merges = merges_in(metadata_of(source)[1])
        self._byte_mapped = scheme(tok.model, tok.pre) == "characters"

    def readable(self, text: str) -> str:
        """Returns the text that a stored text represents, with surrogates for bytes that aren't
        UTF-8."""
        return _undo_byte_map(text) if self._byte_mapped else text

    def values(self) -> dict[str, object]:
        tok = self.tok
        return {
            "type": tok.vocab_type,
            "model": tok.model,
            "pre-tokenizer": tok.pre,
            "tokens": tok.n_tokens,
            **tok._loaded.flags,
            **{f"{name}_id": getattr(tok, f"{name}_id") for name in SPECIALS},
            "end of generation": " ".join(map(str, sorted(tok.eog_ids))),
            **{f"template {name}": text for name, text in tok.chat_templates.items()},
        }

    def ids(self, lines: Sequence[bytes], *, parse_special: bool) -> list[list[int]]:
        return self.tok.encode_batch(lines, add_special=False, parse_special=parse_special)

    def piece(self, id: int) -> str:
        return self.tok.token_to_piece(id).decode("utf-8", "surrogateescape")


class ComparedOriginal:
    """A tokenizer.json, loaded by the package tokenizers in a child process with limits."""

    def __init__(self, path: str) -> None:
        try:
            source = TokenizerJson(read_object(path), SourceFolder(None))
            encode = Package("tokenizers").read(json.dumps(source.document))
            if encode is None:
                raise MissingExtraError(
                    f"{path}: reading it needs a package: pip install tokenizers"
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
        self._byte_mapped = '"ByteLevel"' in json.dumps(decoders)
        self.continuing_prefix = source.model.get("continuing_subword_prefix", "##")

    def ids(self, lines: Sequence[bytes], *, parse_special: bool) -> list[list[int]]:
        """Returns the ids of each line. The package tokenizers always parses special tokens."""
        return self._encode([line.decode("utf-8", "replace") for line in lines])

    def readable(self, text: str) -> str:
        return _undo_byte_map(text) if self._byte_mapped else text

    def piece(self, id: int) -> str:
        return self.readable(self._texts[id]) if id < len(self._texts) else ""


def _undo_byte_map(text: str) -> str:
    """Undoes GPT-2's byte map in a text."""
    data = from_characters(text.encode())
    return text if data is None else data.decode("utf-8", "surrogateescape")


# ---- the differences ----


def _compare(a: ComparedModel, b: ComparedModel | ComparedOriginal) -> dict[str, Any]:
    """Returns the differences, in the form of --json's output. With a tokenizer.json, only tokens
    and merges are compared.

    For an SPM vocabulary, merges aren't compared with a tokenizer.json's, because the GGUF file has
    scores instead.
    """
    values: dict[str, Any] = {}
    if isinstance(b, ComparedModel):
        ours, theirs = a.values(), b.values()
        values = {
            name: [ours.get(name), theirs.get(name)]
            for name in {**ours, **theirs}
            if ours.get(name) != theirs.get(name)
        }
    by_scores = isinstance(b, ComparedOriginal) and a.tok.vocab_type == "SPM"
    merges = _merges([], []) if by_scores else _merges(a.merges, b.merges)
    return {"values": values, "tokens": _tokens(a, b), "merges": merges}


def _text(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _tokens(a: ComparedModel, b: ComparedModel | ComparedOriginal) -> dict[str, Any]:
    texts = b.texts
    if isinstance(b, ComparedModel) and (a.texts, a.attrs, a.scores) == (texts, b.attrs, b.scores):
        return {"only in A": [], "only in B": [], "moved": [], "types": [], "scores": 0}
    if isinstance(b, ComparedOriginal) and a.tok.vocab_type == "WPM" and b.continuing_prefix:
        texts = [_wpm_text(text) for text in texts]
    theirs = {text: id for id, text in enumerate(texts) if text}
    # A tokenizer.json may lack the unused tokens that pad a vocabulary to the embedding's size.
    unused = ggtok.TokenAttr.UNUSED
    filler = set()
    if isinstance(b, ComparedOriginal):
        filler = {
            id for id, text in enumerate(a.texts) if unused & a.attrs[id] and text not in theirs
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
    if isinstance(b, ComparedModel):
        for i, j, text in both:
            x, y = a.attrs[i], b.attrs[j]
            if x != y:
                found["types"].append((i, _text(text), _names(x), _names(y)))
            score, other = a.scores[i], b.scores[j]
            found["scores"] += score != other and not (isnan(score) and isnan(other))
    return found


def _wpm_text(text: bytes) -> bytes:
    """Converts a WordPiece token to the spelling in GGUF files, which mark the beginnings of words
    instead of continuations."""
    if not text or (text.startswith(b"[") and text.endswith(b"]")):
        return text
    return text[2:] if text.startswith(b"##") else "\u2581".encode() + text


def _names(attr: int) -> str:
    return ",".join(one.name or "" for one in ggtok.TokenAttr if one & attr) or "-"


def _merges(a: list[bytes], b: list[bytes]) -> dict[str, list[tuple[int, str]]]:
    if a == b:
        return {"only in A": [], "only in B": [], "in another order": []}
    ours, theirs = set(a), set(b)
    common = [merge for merge in a if merge in theirs], [merge for merge in b if merge in ours]
    ranks = {merge: rank for rank, merge in enumerate(a)}
    return {
        "only in A": [(rank, _text(m)) for rank, m in enumerate(a) if m not in theirs],
        "only in B": [(rank, _text(m)) for rank, m in enumerate(b) if m not in ours],
        "in another order": [(ranks[x], _text(x)) for x, y in zip(*common, strict=False) if x != y],
    }


def _compare_lines(
    a: ComparedModel, b: ComparedModel | ComparedOriginal, data: bytes
) -> dict[str, Any]:
    """Compares the ids of each line. A line, with its newline, is encoded as a separate text."""
    parse = isinstance(b, ComparedOriginal)
    if parse:  # the package needs valid UTF-8
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


def _pieces(side: ComparedModel | ComparedOriginal, ids: list[int]) -> str:
    """Returns the first few ids with their pieces."""
    first = " ".join(f"{id} '{printable(side.piece(id))}'" for id in ids[:4])
    return f"{first} ..." if len(ids) > 4 else first


# ---- speculative decoding ----

# Limits from llama.cpp b11549, common/speculative.cpp.
_MAX_SIZE_DIFFERENCE = 128  # the largest allowed difference between the numbers of tokens
_FIRST_COMPARED = 5  # the lowest id at which the tokens' texts must be equal


def _draft(a: ComparedModel, b: ComparedModel, args: argparse.Namespace) -> int:
    reason = _draft_obstacle(a, b)
    name, other = printable(args.words[1]), printable(args.words[0])
    verdict = "may" if reason is None else "can't"
    line = f"{name} {verdict} draft for {other}{f': {reason}' if reason else ''}"
    standard_output.write_result(args, {"may_draft": reason is None, "reason": reason}, [line])
    return OK if reason is None else FINDING


def _draft_obstacle(one: ComparedModel, other: ComparedModel) -> str | None:
    """Returns the reason why `other` can't draft for `one`, or None if it can, according to
    llama.cpp's ``common_speculative_are_compatible``."""
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
    if abs(a.n_tokens - b.n_tokens) > _MAX_SIZE_DIFFERENCE:
        return (
            f"there are {a.n_tokens} and {b.n_tokens} tokens: the numbers may differ by at most "
            f"{_MAX_SIZE_DIFFERENCE}"
        )
    for id in range(_FIRST_COMPARED, min(a.n_tokens, b.n_tokens)):
        x, y = one.texts[id], other.texts[id]
        if x != y:
            texts = [printable(side.readable(_text(t))) for side, t in ((one, x), (other, y))]
            return f"token {id} is '{texts[0]}' and '{texts[1]}'"
    return None


# ---- output ----


def _lines(
    found: dict[str, Any], a: ComparedModel, b: ComparedModel | ComparedOriginal
) -> list[str]:
    lines = [
        f"{name:<24}{_value(values[0])} | {_value(values[1])}"
        for name, values in found["values"].items()
    ]
    for what, side in ("only in A", a), ("only in B", b):
        rows = found["tokens"][what]
        lines += _list(f"tokens {what}", [f"{id:>7}  {_token(side, text)}" for id, text in rows])
    moved = [f"{i:>7} | {j:<7}  {_token(a, t)}" for i, j, t in found["tokens"]["moved"]]
    lines += _list("tokens with other ids", moved)
    types = [f"{i:>7}  {_token(a, t)}: {x} | {y}" for i, t, x, y in found["tokens"]["types"]]
    lines += _list("tokens of other types", types)
    if found["tokens"]["scores"]:
        lines.append(f"tokens with other scores: {found['tokens']['scores']}")
    for what, rows in found["merges"].items():
        side = b if what == "only in B" else a
        merges = [f"{rank:>7}  {_merge(side, text)}" for rank, text in rows]
        lines += _list(f"merges {what}", merges)
    text = found.get("text")
    if text is not None:
        different = text["different"]
        lines.append(f"lines with other ids: {len(different)} of {text['lines']}")
        for row in different[:_MAX_EXAMPLES]:
            lines += [f"  line {row['line']}", f"    A {row['A']}", f"    B {row['B']}"]
    return lines or ["no difference"]


def _token(side: ComparedModel | ComparedOriginal, text: str) -> str:
    return f"'{printable(side.readable(text))}'"


def _merge(side: ComparedModel | ComparedOriginal, text: str) -> str:
    left, _, right = text.partition(" ")
    return f"{_token(side, left)} + {_token(side, right)}"


def _value(value: object) -> str:
    text = "-" if value is None else printable(str(value))
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text)} characters)"


def _list(title: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    more = len(rows) - _MAX_EXAMPLES
    return [
        f"{title}: {len(rows)}",
        *(f"  {row}" for row in rows[:_MAX_EXAMPLES]),
        *([f"  ... and {more} more"] if more > 0 else []),
    ]


HELP = Help(
    usage="A B",
    details="Compares types, flags, special ids, tokens, merges and chat templates, and with "
    "--text the ids of a file's lines. B may be a tokenizer.json, which the package tokenizers "
    "reads; then only tokens, ids and, for BPE, merges are compared.",
    words={"A": "a GGUF file, or a model's name (see 'ggtok --help')", "B": "the same"},
    examples=[
        "ggtok diff old.gguf new.gguf",
        "ggtok diff model.gguf tokenizer.json --text corpus.txt",
        "ggtok diff large.gguf small.gguf --draft",
    ],
    finding="there is a difference; with --draft, B can't draft",
)
