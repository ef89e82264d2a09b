"""Converts files with one line per token: RWKV's and PLaMo's."""

from __future__ import annotations

import ast
import io
import re

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Difference
from ggtok.vocabularies.convert.draft import Draft, add_configured, set_configured
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.source_files import (
    MAX_TOKEN_BYTES,
    MAX_TOKENS,
    expect_type,
    lines_of,
    parse_json,
    token_id,
    utf8,
)

# ---- RWKV's rwkv_vocab_v*.txt: id, Python literal, length ----

_END = "<s>"
# Matches a single string or bytes literal, and nothing else that Python could evaluate.
_LITERAL = re.compile(r"""b?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)


def rwkv_draft_of(text: str, where: str, folder: SourceFolder) -> tuple[Draft, str]:
    """Returns the draft of the vocabulary. In llama.cpp, texts are escaped, and id 0, which has no
    line, is the end token."""
    draft = Draft(model="rwkv")
    draft.set(0, _END.encode(), spelling.CONTROL)
    for number, line in enumerate(io.StringIO(text), 1):
        if line.strip():
            id, token = _token(line.rstrip("\r\n"), f"{where}: line {number}")
            if id in draft.texts:
                raise VocabError(f"{where}: line {number}: the id {id} occurs twice")
            draft.set(id, escape_token(token), spelling.NORMAL)
    if len(draft.texts) == 1:
        raise VocabError(f"{where}: there are no tokens")
    draft.differences.append(
        Difference(
            "control-by-text",
            f"token 0 needs a text in llama.cpp, which parses {_END!r}: the source doesn't",
            without=lambda line: line.replace(_END, ""),
        )
    )
    draft.size = folder.vocab_size
    draft.special_ids = {"bos": 0, "eos": 0}
    newlines = next((id for id, text in draft.texts.items() if text == escape_token(b"\n\n")), None)
    if newlines is not None:
        draft.special_ids["eot"] = newlines
        draft.notes.append("an empty line ends a turn (EOT), as in llama.cpp's converter")
    draft.set_templates(folder)
    return draft, "RWKV's text"


def _token(line: str, where: str) -> tuple[int, bytes]:
    number, _, rest = line.partition(" ")
    literal, _, length = rest.rpartition(" ")
    if not number.isdecimal() or not length.isdecimal() or len(number) + len(length) > 18:
        raise VocabError(f"{where}: not an id, a literal and a length, as RWKV's lists have")
    if len(literal) > 8 * MAX_TOKEN_BYTES or not _LITERAL.fullmatch(literal):
        raise VocabError(f"{where}: {literal[:40]!r} is not a string or bytes literal")
    try:
        value = ast.literal_eval(literal)
        token = value.encode() if isinstance(value, str) else value
    except (ValueError, SyntaxError) as e:
        raise VocabError(f"{where}: {literal[:40]!r} is not a literal: {e}") from None
    if len(token) != int(length):
        raise VocabError(f"{where}: the token has {len(token)} bytes, but the line says {length}")
    if not token:
        raise VocabError(f"{where}: the token is empty")
    return token_id(int(number), where), token


def escape_token(token: bytes) -> bytes:
    """Escapes a token as in llama.cpp: Python's repr without quotes."""
    return repr(token)[2:-1].encode()


# ---- PLaMo's tokenizer.jsonl: JSON arrays with text, score, type... ----

_TYPES = {"UNKNOWN": spelling.UNKNOWN, "CONTROL": spelling.CONTROL, "BYTE": spelling.BYTE}
_EOT = b"<|plamo:op|>"


def plamo_draft_of(data: bytes, where: str, folder: SourceFolder) -> tuple[Draft, str]:
    """Returns the draft of the vocabulary, with ids in the order of the lines."""
    draft = Draft(model="plamo2", pre="default", scores={}, filler_score=-1000.0)
    for number, line in lines_of(data):
        if not line.strip():
            continue
        at = f"{where}: line {number}"
        id = len(draft.texts)
        if id == MAX_TOKENS:
            raise VocabError(f"{at}: more than {MAX_TOKENS} tokens")
        row = expect_type(parse_json(line, at), list, at)
        if len(row) < 2:
            raise VocabError(f"{at}: must have a text and a score")
        text = utf8(expect_type(row[0], str, at + "[0]"), at)
        kind = _TYPES.get(
            row[2] if len(row) > 2 and isinstance(row[2], str) else "", spelling.NORMAL
        )
        if text.startswith(b"<|plamo:") and text.endswith(b"|>") and kind == spelling.NORMAL:
            kind = spelling.CONTROL
        draft.set(id, text, kind, expect_type(row[1], float, at + "[1]"))
    draft.size = folder.vocab_size
    add_configured(draft, folder, where)
    ids = {text.decode(): id for id, text in draft.texts.items()}
    set_configured(draft, folder, ids)
    if _EOT.decode() in ids:
        draft.special_ids["eot"] = ids[_EOT.decode()]
    draft.flags["add_space_prefix"] = False
    return draft, "PLaMo's JSON lines"
