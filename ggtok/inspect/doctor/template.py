"""Checks the chat template against the vocabulary: BOS, the end of turn, control tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ggtok.base.escape import printable
from ggtok.errors import GGTokError, TemplateError
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, File
from ggtok.tokenizer import Tokenizer
from ggtok.vocabularies.spelling import CONTROL, NORMAL

# Texts that look like control tokens: <|im_end|>, DeepSeek's with fullwidth bars, <end_of_turn>.
_CONTROL = re.compile(
    r"<\|[^|<>\s]{1,40}\|>|<\uff5c[^\uff5c<>\s]{1,40}\uff5c>|</?s>|<(?:start|end)_of_\w{1,20}>"
)
_ANSWER, _NEXT = "firstanswer", "nextquestion"  # texts that no template contains
_SYSTEM = {"role": "system", "content": "instructions"}
_FIRST = [
    {"role": "user", "content": "firstquestion"},
    {"role": "assistant", "content": _ANSWER},
]
_CHATS = (
    _FIRST,
    [*_FIRST, {"role": "user", "content": _NEXT}],
    [_SYSTEM, *_FIRST, {"role": "user", "content": _NEXT}],
)


def check_template(file: File) -> Iterator[Finding]:
    tok = file.tok
    if tok.chat_template is None or tok.vocab_type == "NONE":
        return
    try:
        tok.apply_chat_template(_FIRST[:1])
    except GGTokError as e:
        other = "" if _render_or_none(tok, _FIRST[:1]) is None else "; transformers renders it"
        lines = (e.line,) if isinstance(e, TemplateError) and e.line is not None else ()
        yield finding("GGT207", printable(str(e), 300) + other, lines=lines)
        return
    texts = [text for chat in _CHATS if (text := _render_or_none(tok, chat)) is not None]
    yield from _bos(file, texts)
    split = [t for t in _control_texts(texts) if len(_encode_text(tok, t)) > 1]
    normal = normal_controls(file)
    if normal:
        changes = file.types_to(CONTROL, normal)
        yield finding("GGT304", file.examples(normal), normal, changes=changes)
    lacking = [t for t in split if tok.text_to_token(t) is None]
    ends = [end for text in texts[:2] if (end := _end_of_turn(text)) is not None]
    plain = {_CONTROL.match(end)[0] for end in map(str.lstrip, ends) if _CONTROL.match(end)}  # type: ignore[index]
    no_token = [text for text in lacking if text in plain]
    if no_token:
        yield finding("GGT205", ", ".join(f"'{printable(text)}'" for text in no_token))
    elif ends and not normal:  # one of `normal` may be the end of turn
        yield from _endless(file, ends)
    others = [text for text in lacking if text not in no_token]
    if others:
        yield finding("GGT206", ", ".join(f"'{printable(text)}'" for text in others))


def end_of_turn(file: File) -> int | None:
    """Returns the special token that the template writes after an answer, or None."""
    text = None if file.tok.chat_template is None else _render_or_none(file.tok, _CHATS[1])
    end = None if text is None else _end_of_turn(text)
    if end is None:
        return None
    return next((id for id in _encode_text(file.tok, end) if file.is_control(id)), None)


def normal_controls(file: File) -> tuple[int, ...]:
    """Returns NORMAL tokens that the template writes as control tokens, but that are split."""
    if file.tok.chat_template is None:
        return ()
    texts = [text for chat in _CHATS if (text := _render_or_none(file.tok, chat)) is not None]
    ids = {
        file.tok.text_to_token(text)
        for text in _control_texts(texts)
        if len(_encode_text(file.tok, text)) > 1
    }
    return tuple(sorted(id for id in ids if id is not None and file.types[id] == NORMAL))


def _render_or_none(tok: Tokenizer, chat: list[dict[str, str]]) -> str | None:
    """Renders the chat without llama-server's changes; returns None if the template refuses it."""
    try:
        return tok.apply_chat_template(chat, like="transformers")
    except GGTokError:
        return None


def _encode_text(tok: Tokenizer, text: str) -> list[int]:
    return tok.encode(text, add_special=False, parse_special=True)


def _control_texts(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(found for text in texts for found in _CONTROL.findall(text)))


def _bos(file: File, texts: list[str]) -> Iterator[Finding]:
    tok = file.tok
    if tok.bos_id is None or not texts:
        return
    bos = file.texts[tok.bos_id].decode("utf-8", "surrogateescape")
    writes = all(text.startswith(bos) for text in texts)
    if tok.add_bos and writes:
        yield finding("GGT201", file.examples([tok.bos_id]), (tok.bos_id,))
    elif tok.add_bos and not any(bos in text for text in texts):
        yield finding("GGT202", file.examples([tok.bos_id]), (tok.bos_id,))
    elif writes and not tok.add_bos:
        yield finding("GGT203", file.examples([tok.bos_id]), (tok.bos_id,))


def _end_of_turn(text: str) -> str | None:
    """Returns the text between the answer and the next question (or the end), or None if there is
    none."""
    after = text.partition(_ANSWER)[2]
    return after.partition(_NEXT)[0] or None


def _endless(file: File, ends: list[str]) -> Iterator[Finding]:
    """Reports the first control token after an answer if no token there ends generation."""
    specials = (
        [id for id in _encode_text(file.tok, end) if file.is_control(id) or file.tok.is_eog(id)]
        for end in ends
    )
    # Prefer the chat that ends with the answer. Some templates close an answer only if a question
    # follows.
    ids = next((ids for ids in specials if ids), [])
    first = None if any(map(file.tok.is_eog, ids)) else next(iter(ids), None)
    if first is not None:
        eog = file.examples(sorted(file.tok.eog_ids)) or "empty"
        yield finding(
            "GGT204",
            f"{file.examples([first])}; the EOG set is {eog}",
            (first,),
            changes={GGML + "eot_token_id": first},
        )
