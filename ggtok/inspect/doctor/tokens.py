"""The tokens' texts: empty ones, and those that aren't what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.base.escape import number
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, File, is_utf8
from ggtok.vocabularies.spelling import NORMAL, USER_DEFINED


def check(file: File) -> Iterator[Finding]:
    stored = file.values.get(GGML + "tokens")
    if not stored or not file.tok.n_tokens:
        return
    empty = tuple(id for id, text in enumerate(stored) if not text.split(b"\0")[0])
    if empty:
        first = ", ".join(map(str, empty[:5])) + (", ..." if len(empty) > 5 else "")
        yield finding("GGT405", f"{number(len(empty), 'token')}: {first}", empty)
    broken = tuple(
        id
        for id, text in enumerate(stored)
        if text
        and (b"\0" in text or not is_utf8(text))
        and file.types[id] in (NORMAL, USER_DEFINED)
        and id not in empty
    )
    if broken:
        yield finding("GGT406", f"{number(len(broken), 'token')}: {file.examples(broken)}", broken)
