"""Helpers that several adapters share."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok.errors import InvalidTypeError, MissingExtraError, TokenIdError, VocabError
from ggtok.native.arguments import index, iterate
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from types import ModuleType
    from typing import SupportsIndex


def check_tokenizer(tok: Tokenizer) -> Tokenizer:
    if isinstance(tok, Tokenizer):
        return tok
    raise InvalidTypeError(f"tok must be a ggtok.Tokenizer, not {type(tok).__name__}")


def special_ids(tok: Tokenizer, also: Iterable[SupportsIndex]) -> frozenset[int]:
    check_tokenizer(tok)
    expected = "also_special must be a collection of ids"
    more = [index(id, "an id of also_special") for id in iterate(also, expected)]
    for id in more:
        if not 0 <= id < tok.n_tokens:
            raise TokenIdError(f"also_special has {id}, but ids are 0 to {tok.n_tokens - 1}")
    return tok.special_ids.union(more)


def blank_special_pieces(tok: Tokenizer, also: Iterable[SupportsIndex]) -> list[bytes]:
    """Returns the pieces of all tokens, with empty ones for special tokens."""
    more = special_ids(tok, also)
    pieces = tok.vocab_bytes()
    for id in more:
        pieces[id] = b""
    return pieces


def ends_of(tok: Tokenizer) -> list[int]:
    """Returns the ids that end generation, EOS first."""
    if not tok.eog_ids:
        raise VocabError(
            f"this vocabulary ({tok.vocab_type}, {tok.n_tokens} tokens) has no token that ends "
            "generation, so nothing can be generated with it"
        )
    eos = tok.eog_ids & {tok.eos_id}
    return [*eos, *sorted(tok.eog_ids - eos)]


def import_library(name: str, extra: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as e:
        raise MissingExtraError(
            f"{name} can't be imported ({e}): pip install 'ggtok[{extra}]'"
        ) from e
