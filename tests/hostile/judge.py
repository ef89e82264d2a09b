"""Judges the outcome for one input, and whether an error is clear.

An error at load is clear if it is a GGUFError or a VocabError with a key or byte offset that its
message also names, and if a terminal can display the message. An error that a loaded vocabulary
raises later must name a key, a token or the missing special token. All other errors are vague,
including MemoryError, because no input here needs much memory.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import ggtok

OUTCOMES = ("loaded", "GGUFError", "VocabError", "other GGTokError", "vague")
LOADED, GGUF_ERROR, VOCAB_ERROR, OTHER, VAGUE = range(len(OUTCOMES))

# Words, special tokens, malformed UTF-8, a NUL, and characters that the charsmaps replace.
PROBE = (
    b"the kettle\n\n  12345 \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x91\x8d <s></s><|endoftext|> [MASK] "
    b"\xef\xbd\x81\xef\xbd\x9e\xe2\x91\xa0 \xff\xc3(\xe2\x82\xed\xa0\x80\xf5\x90\x80\x80\0"
    b" ACGTACGTAC"
)
SAMPLED = 60  # maximum number of tokens to check in a loaded vocabulary
LONGEST = 1000  # maximum length of a message, in characters


@dataclass(frozen=True)
class Verdict:
    outcome: int
    note: str = ""  # what is wrong with the outcome, or ""


def vagueness(error: BaseException, size: int) -> str:
    """Returns why an error from ggtok.load for a file of `size` bytes is vague, or ""."""
    if not isinstance(error, ggtok.GGUFError | ggtok.VocabError):
        return f"{type(error).__name__} is neither GGUFError nor VocabError: {error}"
    text = str(error)
    if error.key is None and error.offset is None:
        return f"the error has neither a key nor an offset: {text}"
    if error.key is not None and error.key not in text:
        return f"the message doesn't name the key {error.key!r}: {text}"
    if error.offset is not None and error.offset > size:
        return f"the offset {error.offset} is beyond the file's {size} bytes: {text}"
    if isinstance(error, ggtok.GGUFError) and error.offset is None:
        return f"a GGUFError without an offset: {text}"
    if error.key is None and error.offset and str(error.offset) not in text:
        return f"the message doesn't name the offset {error.offset}: {text}"
    return unshowable(text)


def unshowable(text: str) -> str:
    if not text.isprintable():
        return f"the message is not printable: {text!a}"
    return f"the message has {len(text)} characters" if len(text) > LONGEST else ""


def of_error(error: BaseException, size: int) -> Verdict:
    note = vagueness(error, size)
    if note:
        return Verdict(VAGUE, note)
    return Verdict(GGUF_ERROR if isinstance(error, ggtok.GGUFError) else VOCAB_ERROR)


def of_load(data: bytes) -> Verdict:
    """Loads a file and uses the tokenizer."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tok = ggtok.load(data)
    except Exception as error:
        return of_error(error, len(data))
    notes = [unshowable(str(warning.message)) for warning in caught] + [use(tok)]
    note = next(filter(None, notes), "")
    return Verdict(VAGUE if note else LOADED, note)


_NAMES_KEY_OR_TOKEN = re.compile(
    r"tokenizer\.ggml\.|\btoken \d+|\b(BOS|EOS|SEP|CLS) token|no vocabulary"
)


def use(tok: ggtok.Tokenizer) -> str:
    """Encodes, decodes and reads all attributes. Returns what is wrong with the results, or ""."""
    for parse_special in (False, True):
        for add_special in (True, False):
            try:
                ids = tok.encode(PROBE, add_special=add_special, parse_special=parse_special)
            except ggtok.VocabError as error:
                if not _NAMES_KEY_OR_TOKEN.search(str(error)):
                    return f"names neither a key nor a token: {error}"
                if note := unshowable(str(error)):
                    return note
                continue
            if any(not -1 <= id < tok.n_tokens for id in ids):
                return f"an id outside the vocabulary: {ids}"
            if -1 not in ids:  # -1 if there is no unknown token (docs/exactness.md)
                for flag in (False, True):
                    tok.decode_bytes(ids, remove_special=flag, unparse_special=not flag)
    n = tok.n_tokens if tok.vocab_type != "NONE" else 0
    for id in range(0, n, n // SAMPLED + 1):
        tok.token_to_piece(id)
        tok.token_text(id)
        tok.token_score(id)
        tok.token_attr(id)
    tok.decode(range(0, n, n // SAMPLED + 1))
    for name in ("bos", "eos", "eot", "eom", "unk", "sep", "nl", "pad", "mask", "fim_pre"):
        id = getattr(tok, f"{name}_id")
        if id is not None and not 0 <= id < tok.n_tokens and n:
            return f"{name}_id is {id} of {tok.n_tokens}"
    dict(tok.metadata)
    return ""
