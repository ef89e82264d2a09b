"""Compares a file's tokenizer with its source: the repository or folder of the original model.

The source is converted again (:func:`ggtok.convert`). The file is correct if it equals that
conversion in everything that affects ids, the ends of generations, and prompts. Ids are compared on
the lines with which conversions are checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from ggtok.base.concurrency import cached_property
from ggtok.base.escape import number, printable
from ggtok.errors import InvalidValueError
from ggtok.inspect.doctor import battery
from ggtok.inspect.doctor.battery import Chat
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.engines import (
    PROGRAMS,
    SLOW,
    EngineComparison,
    EngineResult,
    Like,
    around_difference,
)
from ggtok.inspect.doctor.file import GGML, File
from ggtok.tokenizer import TokenAttr, Tokenizer
from ggtok.vocabularies.convert.confirm import CHECK_LINES
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.lines import lines_for
from ggtok.vocabularies.convert.source_formats import convert_source
from ggtok.vocabularies.gguf_writer import SPECIAL_KEYS
from ggtok.vocabularies.read import pairs
from ggtok.vocabularies.spelling import UNUSED
from ggtok.vocabularies.vocabulary import Vocabulary

AUTO = "auto"
# Keys with the address of the model's page. The base model's is last, because a fine-tune may have
# other tokens and another template.
_ADDRESSES = (
    "general.source.huggingface.repository",
    "general.source.repo_url",
    "general.source.url",
    "general.repo_url",
    "general.base_model.0.repo_url",
)
_TEMPLATE = "tokenizer.chat_template"
# The types of tokens that llama.cpp looks for in texts.
_EXTRACTED = (TokenAttr.CONTROL, TokenAttr.USER_DEFINED, TokenAttr.UNKNOWN)
_MOST = 5  # the most items that a finding's text lists
_SMALLER = 200  # the most attempts to make a conversation smaller


def check_against(file: File, against: str) -> Iterator[Finding]:
    """Yields the differences from the source.

    Args:
        against: a repository on the Hugging Face Hub, a folder or file that
            :func:`ggtok.convert` accepts, or ``"auto"`` for the repository that the file names.

    Raises:
        FileError, InvalidValueError, MissingExtraError, VocabError: there is no such source, or
            it can't be converted.
    """
    yield from _Differences(file, OriginalModel(file, against)).all()


class OriginalModel:
    """The original model with which the file is compared.

    Attributes:
        name: the source's name for the user.
        vocabulary: the source, converted.
    """

    def __init__(self, file: File, against: str) -> None:
        self.name, folder = _locate_source(file, against)
        self.vocabulary: Vocabulary = convert_source(folder, pre=None, arch=None, lines=0)
        self._folder = SourceFolder(folder if os.path.isdir(folder) else None)

    @cached_property
    def tok(self) -> Tokenizer:
        return self.vocabulary.tokenizer()

    @cached_property
    def file(self) -> File:
        """The converted source as a GGUF file, whose chat template can be rendered."""
        return File(self.vocabulary.gguf())

    def ends(self) -> list[int]:
        """Returns the ids that end generation according to the folder's configuration."""
        return [end.id for end in self._folder.ends if end.id < self.tok.n_tokens]


def _locate_source(file: File, against: str) -> tuple[str, str]:
    """Returns the source's name, and its folder or file on this machine."""
    if against == AUTO:
        against = _repository_of(file)
    elif os.path.exists(against):
        return against, against
    from ggtok.sources import hub

    return against, hub.tokenizer_folder(against)


def _repository_of(file: File) -> str:
    """Returns the repository that the file names."""
    from ggtok.sources import hub

    values = (file.values.get(key) for key in _ADDRESSES)
    names = [value.decode("utf-8", "replace") for value in values if isinstance(value, bytes)]
    for name in names:
        with suppress(InvalidValueError):
            if hub.repository(name) is not None:
                return name
    if names:
        raise InvalidValueError(
            f"against: the file comes from {printable(names[0], 200)}, which isn't a repository of "
            "the Hugging Face Hub: name the repository or a folder"
        )
    raise InvalidValueError(
        f"against: the file doesn't say where it comes from (no key {_ADDRESSES[1]} or "
        f"{_ADDRESSES[-1]}): name the repository or a folder"
    )


class _Differences:
    def __init__(self, file: File, source: OriginalModel) -> None:
        self.file, self.source = file, source
        self.ours, self.theirs = file.tok, source.tok

    def all(self) -> Iterator[Finding]:
        if self.ours.vocab_type != self.theirs.vocab_type:
            yield self._finding("GGT701", f"{self.ours.vocab_type} | {self.theirs.vocab_type}")
            return
        yield from self._texts()
        yield from self._types()
        yield from self._merges()
        yield from self._ids()
        yield from self._special_ids()
        yield from self._ends()
        yield from self._flags()
        yield from self._templates()

    def _finding(
        self,
        code: str,
        detail: str,
        ids: Iterable[int] = (),
        changes: dict[str, object] | None = None,
    ) -> Finding:
        return finding(code, detail, tuple(ids), changes=changes, source=self.source.name)

    # ---- tokens and merges ----

    def _texts(self) -> Iterator[Finding]:
        ours, theirs = self.file.texts, self.source.vocabulary.texts
        types = self.source.vocabulary.types
        wrong = [
            id
            for id, (text, other) in enumerate(zip(ours, theirs, strict=False))
            if text != other and not (types[id] == UNUSED and self._is_unused(id))
        ]
        missing = [id for id in range(len(ours), len(theirs)) if types[id] != UNUSED]
        extra = [id for id in range(len(theirs), len(ours)) if not self._is_unused(id)]
        parts = []
        if wrong:
            rows = [
                f"{id} {_quote_text(ours[id])} | {_quote_text(theirs[id])}" for id in wrong[:_MOST]
            ]
            text = f"{number(len(wrong), 'token')} with another text"
            parts.append(f"{text}: {', '.join(rows)}{_more(wrong)}")
        if missing:
            first = ", ".join(f"{id} {_quote_text(theirs[id])}" for id in missing[:_MOST])
            parts.append(f"{number(len(missing), 'token')} missing: {first}{_more(missing)}")
        if extra:
            parts.append(f"{number(len(extra), 'token')} more: {self.file.examples(extra)}")
        if parts:
            # Tokens can't be added or removed, because the embedding has a row for each.
            changes: dict[str, object] = {}
            if not missing and not extra:
                changes = {f"{GGML}tokens[{id}]": _str(theirs[id]) for id in wrong}
            yield self._finding("GGT702", "; ".join(parts), [*wrong, *extra], changes)

    def _is_unused(self, id: int) -> bool:
        return self.file.types[id] == UNUSED

    def _types(self) -> Iterator[Finding]:
        texts, stored = self.source.vocabulary.texts, self.source.vocabulary.types
        lost: list[int] = []
        others: list[int] = []
        for id in range(min(len(self.file.texts), len(texts))):
            if self.file.texts[id] != texts[id] or UNUSED in (stored[id], self.file.types[id]):
                continue
            ours, theirs = _type(self.ours, id), _type(self.theirs, id)
            if ours != theirs:
                (lost if theirs in _EXTRACTED and ours not in _EXTRACTED else others).append(id)
        for code, ids in ("GGT703", lost), ("GGT704", others):
            if ids:
                text = f"{number(len(ids), 'token')}: {self.file.examples(ids)}"
                yield self._finding(code, text, ids, self._with_types(ids))

    def _with_types(self, ids: Sequence[int]) -> dict[str, object]:
        key, types = f"{GGML}token_type", self.source.vocabulary.types
        if key in self.file.values:
            return {f"{key}[{id}]": types[id] for id in ids}
        n = self.ours.n_tokens
        return {key: [*types[:n], *[UNUSED] * (n - len(types))]}

    def _merges(self) -> Iterator[Finding]:
        theirs = self.source.vocabulary.merge_texts
        stored = self.file.values.get(f"{GGML}merges")
        if theirs is None or self.ours.vocab_type != "BPE":
            return
        ours = [parts for parts in pairs(stored or ()) if parts is not None]
        if ours == list(theirs):
            return
        lacking, more = set(theirs) - set(ours), set(ours) - set(theirs)
        first = next(
            (rank for rank, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b),
            min(len(ours), len(theirs)),
        )
        text = (
            f"{number(len(ours), 'merge')} instead of {len(theirs)}: {len(lacking)} missing, "
            f"{len(more)} more; the first difference is at rank {first}"
        )
        merges = [left + b" " + right for left, right in theirs]
        yield self._finding("GGT705", text, changes={f"{GGML}merges": merges})

    # ---- ids ----

    def _ids(self) -> Iterator[Finding]:
        vocabulary = self.source.vocabulary
        lines = lines_for(vocabulary, CHECK_LINES)
        expected = _encode_lines(self.theirs, lines)
        different = _different(_encode_lines(self.ours, lines), expected)
        if self.file.unknown_pre is None and not different:
            return
        named = self.file.values.get(f"{GGML}pre")
        if vocabulary.pre is not None and named != vocabulary.pre.encode():
            with_theirs = self.file.load(pre=vocabulary.pre)
            if not _different(_encode_lines(with_theirs, lines), expected):
                text = self._compared(lines, different, expected)
                name = "none" if named is None else printable(named)
                changes: dict[str, object] = {f"{GGML}pre": vocabulary.pre}
                yield self._finding("GGT706", f"{name} | {vocabulary.pre}; {text}", (), changes)
                return
        if different:
            yield self._finding("GGT707", self._compared(lines, different, expected))

    def _compared(
        self, lines: Sequence[str], different: Sequence[int], expected: Sequence[list[int]]
    ) -> str:
        if not different:
            return "the file's name is unknown"
        at = min(different, key=lambda i: len(lines[i]))
        ours = _encode_lines(self.ours, [lines[at]])[0]
        return (
            f"{len(different)} of {number(len(lines), 'line')} have other ids, such as "
            f"'{printable(lines[at], 60)}': {_some(ours)} | {_some(expected[at])}"
        )

    # ---- special tokens ----

    def _special_ids(self) -> Iterator[Finding]:
        rows: dict[str, list[str]] = {"GGT708": [], "GGT709": []}
        changes: dict[str, dict[str, object]] = {"GGT708": {}, "GGT709": {}}
        for name, id in self.source.vocabulary.special_ids.items():
            ours = getattr(self.ours, f"{name}_id", None)
            if name not in SPECIAL_KEYS or ours == id or id >= self.ours.n_tokens:
                continue
            if name in ("eot", "eom") and id in self.source.ends():
                continue  # see _ends: the name of an end doesn't matter
            if name == "eos" and self.ours.vocab_type == "WPM":
                continue  # WPM ends texts with SEP instead
            code = "GGT708" if name in ("bos", "eos") else "GGT709"
            shown_ours = "none" if ours is None else self.file.examples([ours])
            rows[code].append(f"{name.upper()} {shown_ours} | {self.file.examples([id])}")
            changes[code][f"{GGML}{SPECIAL_KEYS[name]}_token_id"] = id
        for code, texts in rows.items():
            if texts:
                yield self._finding(code, "; ".join(texts), changes=changes[code])

    def _ends(self) -> Iterator[Finding]:
        n = self.ours.n_tokens
        missing = [id for id in self.source.ends() if id < n and not self.ours.is_eog(id)]
        if not missing:
            return
        # Each of these keys adds its token to the tokens that end generation.
        keys = (f"{GGML}eot_token_id", f"{GGML}eom_token_id")
        free = [key for key in keys if key not in self.file.values]
        changes: dict[str, object] = {}
        if len(free) >= len(missing):
            changes = dict(zip(free, missing, strict=False))
        text = f"the model will not stop at {self.file.examples(missing)}"
        yield self._finding("GGT710", text, missing, changes)

    def _flags(self) -> Iterator[Finding]:
        if self.ours.vocab_type == "WPM":
            return  # llama.cpp adds CLS and SEP whatever the flags are
        rows, changes = [], dict[str, object]()
        for name in "add_bos", "add_eos":
            ours, theirs = getattr(self.ours, name), getattr(self.theirs, name)
            if ours != theirs:
                rows.append(f"{name} is {_ON[ours]} | {_ON[theirs]}")
                changes[f"{GGML}{name}_token"] = theirs
        if rows:
            yield self._finding("GGT711", "; ".join(rows), changes=changes)

    # ---- chat templates ----

    def _templates(self) -> Iterator[Finding]:
        ours, theirs = self.ours.chat_template, self.source.vocabulary.chat_template
        if theirs is None or ours == theirs:
            return
        changes: dict[str, object] = {_TEMPLATE: theirs}
        if ours is None:
            yield self._finding("GGT712", "the source has one", changes=changes)
            return
        one, other = EngineComparison(self.file), EngineComparison(self.source.file)
        for program in PROGRAMS:
            chat = _smallest_difference(one, other, program)
            if chat is not None:
                pair = one.render(chat, program), other.render(chat, program)
                yield self._finding(
                    "GGT713", _describe_difference(chat, program, *pair), changes=changes
                )
                return
        slow = "" if one.complete else f"; {SLOW}"
        yield self._finding("GGT714", f"no conversation that was tried shows it{slow}")


def _type(tok: Tokenizer, id: int) -> TokenAttr | None:
    """Returns a special token's type in llama.cpp, or None for other tokens."""
    attr = tok.token_attr(id)
    return next((each for each in _EXTRACTED if each in attr), None)


def _encode_lines(tok: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
    return tok.encode_batch(list(lines), add_special=False, parse_special=True)


def _different(ours: Sequence[list[int]], theirs: Sequence[list[int]]) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]


_ON = {False: "off", True: "on"}


def _str(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def _quote_text(text: bytes) -> str:
    return f"'{printable(text, 60)}'"


def _more(items: Sequence[object]) -> str:
    return ", ..." if len(items) > _MOST else ""


def _some(ids: Sequence[int]) -> str:
    return f"[{', '.join(map(str, ids[:8]))}{', ...' if len(ids) > 8 else ''}]"


def _smallest_difference(one: EngineComparison, other: EngineComparison, like: Like) -> Chat | None:
    """Returns the smallest conversation found for which the two templates render different
    prompts."""

    def differs(chat: Chat) -> bool:
        return one.render(chat, like).text != other.render(chat, like).text

    tried = sorted((battery.PLAIN | battery.OTHERS).values(), key=Chat.size)
    found = next((chat for chat in tried if not one.is_late() and differs(chat)), None)
    left = _SMALLER
    while found is not None:
        for smaller in found.smaller():
            left -= 1
            if left < 0 or one.is_late():
                return found
            if differs(smaller):
                found = smaller
                break
        else:
            break
    return found


def _describe_difference(chat: Chat, like: Like, one: EngineResult, other: EngineResult) -> str:
    if one.text is None or other.text is None:
        which, error = ("file", one.error) if one.text is None else ("source", other.error)
        what = f"the {which}'s template refuses it: {printable(error, 160)}"
    else:
        ours, theirs = around_difference(one.text, other.text)
        what = f"{PROGRAMS[like]} writes {ours}, and with the source's template {theirs}"
    return f"for {printable(chat.as_json(), 400)}, {what}"
