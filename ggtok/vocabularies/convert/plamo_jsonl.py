"""Converts PLaMo's ``tokenizer.jsonl``: one JSON array per token, with text, score, type..."""

from __future__ import annotations

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.reading import MAX_TOKENS, checked, lines_of, parse, token_id, utf8
from ggtok.vocabularies.convert.special import set_configured

_TYPES = {"UNKNOWN": spelling.UNKNOWN, "CONTROL": spelling.CONTROL, "BYTE": spelling.BYTE}
_EOT = b"<|plamo:op|>"


def draft_of(data: bytes, where: str, folder: Folder) -> tuple[Draft, str]:
    """The vocabulary, with ids in the order of the lines."""
    draft = Draft(model="plamo2", pre="default", scores={}, filler_score=-1000.0)
    for number, line in lines_of(data):
        if not line.strip():
            continue
        at = f"{where}: line {number}"
        id = len(draft.texts)
        if id == MAX_TOKENS:
            raise VocabError(f"{at}: more than {MAX_TOKENS} tokens")
        row = checked(parse(line, at), list, at)
        if len(row) < 2:
            raise VocabError(f"{at}: must have a text and a score")
        text = utf8(checked(row[0], str, at + "[0]"), at)
        kind = _TYPES.get(
            row[2] if len(row) > 2 and isinstance(row[2], str) else "", spelling.NORMAL
        )
        if text.startswith(b"<|plamo:") and text.endswith(b"|>") and kind == spelling.NORMAL:
            kind = spelling.CONTROL
        draft.set(id, text, kind, checked(row[1], float, at + "[1]"))
    size = folder.config.get("vocab_size")
    draft.size = 0 if size is None else token_id(size, "config.json: vocab_size")
    ids = {text.decode(): id for id, text in draft.texts.items()}
    set_configured(draft, folder, ids)
    if _EOT.decode() in ids:
        draft.special_ids["eot"] = ids[_EOT.decode()]
    draft.flags["add_space_prefix"] = False
    return draft, "PLaMo's JSON lines"
