"""Reads a Hugging Face folder: what all of its files together say about the tokenizer.

A tokenizer is what transformers' AutoTokenizer makes of several files. The file with the vocabulary
(tokenizer.json, a SentencePiece model, ...) comes first. Then the configuration adds tokens, or
changes the flags of tokens, in this order:

1. tokenizer_config.json: added_tokens_decoder, by id. If it is absent: added_tokens.json, and
   special_tokens_map.json, which then replaces the special tokens of tokenizer_config.json.
2. the named special tokens (``bos_token``... and any other ``*_token``), which are special even if
   an entry says otherwise. The class's defaults apply to names that aren't in the files.
3. extra_special_tokens, or else additional_special_tokens.

The last flags of a token count. A token of the vocabulary keeps its id; the others get the next
ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ggtok.base.concurrency import cached_property
from ggtok.errors import VocabError
from ggtok.vocabularies.convert import source_files
from ggtok.vocabularies.convert.source_files import expect_type, read_object, read_text, token_id
from ggtok.vocabularies.convert.tokenizer_classes import (
    CLASS_ANYWAY,
    CLASS_OF_MODEL,
    DEFAULTS,
)

Json = dict[str, Any]

_MAX_TEMPLATES = 64
_CONFIG, _TOKENIZER_CONFIG = "config.json", "tokenizer_config.json"
_GENERATION, _SPECIAL_MAP, _ADDED = (
    "generation_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
_DECODER = f"{_TOKENIZER_CONFIG}: added_tokens_decoder"
# The special tokens that every class in transformers has, in the order in which they are added.
SPECIAL_NAMES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_FLAGS = ("special", "lstrip", "rstrip", "single_word", "normalized")


class NamedToken(NamedTuple):
    """A special token with a name.

    Attributes:
        entry: its text, or an object with its text and flags.
        where: the file that names it.
    """

    entry: str | Json
    where: str

    @property
    def text(self) -> str:
        return self.entry if isinstance(self.entry, str) else str(self.entry["content"])


class ConfiguredToken(NamedTuple):
    """A token that the configuration lists.

    Attributes:
        row: the token's text and flags, as in the added_tokens of a tokenizer.json.
        id: the id that the file states, or None.
        where: the file and key that list it.
    """

    row: Json
    id: int | None
    where: str

    @property
    def text(self) -> str:
        return str(self.row["content"])


class End(NamedTuple):
    """A token that ends generation, and the file that says so."""

    id: int
    where: str


@dataclass
class Disagreements:
    """Facts on which two files disagree, as notes for a report: one for each pair of files and
    subject, with the first example."""

    _rows: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)

    def add(self, subject: str, example: str, loser: str, winner: str) -> None:
        self._rows.setdefault((subject, loser, winner), []).append(example)

    def notes(self) -> list[str]:
        return [
            f"{loser} and {winner} disagree on {subject} ({_examples(rows)}): {winner} wins"
            for (subject, loser, winner), rows in self._rows.items()
        ]


def _examples(rows: Sequence[str]) -> str:
    return rows[0] if len(rows) == 1 else f"{len(rows)} tokens, such as {rows[0]}"


class SourceFolder:
    """The files in a folder. If the source is a single file, `path` is None and there are no
    files.

    Attributes:
        path: the folder.
        disagreements: what the files disagree on, as far as they have been read.
    """

    def __init__(self, path: str | None, tokenizer_class: str | None = None) -> None:
        self.path = path
        self.disagreements = Disagreements()
        self._class = tokenizer_class

    def of_class(self, name: str) -> SourceFolder:
        """Returns the same folder as if its files named this tokenizer class."""
        return SourceFolder(self.path, name)

    def file(self, *names: str) -> str | None:
        """Returns the path of the first of these files that exists, or None."""
        if self.path is None:
            return None
        paths = [os.path.join(self.path, name) for name in names]
        return next((path for path in paths if os.path.isfile(path)), None)

    def _object(self, *names: str) -> Json:
        path = self.file(*names)
        return {} if path is None else read_object(path)

    # ---- config.json ----

    @cached_property
    def config(self) -> Json:
        """The contents of config.json, in which the values for the text model take precedence."""
        config, part = self._whole_config, self.text_config
        if part is None:
            return config
        return {**config, **part, "architectures": _first(part, config, "architectures")}

    @cached_property
    def _whole_config(self) -> Json:
        return self._object(_CONFIG)

    @cached_property
    def text_config(self) -> Json | None:
        """The part of config.json that is only for the text model, or None."""
        parts = map(
            self._whole_config.get, ("text_config", "llm_config", "lm_config", "language_config")
        )
        return next((part for part in parts if isinstance(part, dict)), None)

    @property
    def vocab_size(self) -> int:
        """The value of vocab_size in config.json, or 0 if it is absent."""
        size = self.config.get("vocab_size")
        return 0 if size is None else token_id(size, f"{_CONFIG}: vocab_size")

    @property
    def architecture(self) -> str | None:
        """The first architecture in config.json, or None."""
        names = self.config.get("architectures")
        if isinstance(names, list) and names and isinstance(names[0], str):
            return names[0]
        return None

    # ---- tokenizer_config.json ----

    @cached_property
    def tokenizer_config(self) -> Json:
        return self._object(_TOKENIZER_CONFIG)

    @cached_property
    def tokenizer_class(self) -> str:
        """The tokenizer class that the files name, without "Fast", or ""."""
        if self._class is not None:
            return self._class
        for config in self.tokenizer_config, self._whole_config:
            name = config.get("tokenizer_class")
            if isinstance(name, str):
                return name.removesuffix("Fast")
        return CLASS_OF_MODEL.get(self.model_type, "")

    @property
    def model_type(self) -> str:
        """The model's type in config.json, or ""."""
        name = self._whole_config.get("model_type")
        return name if isinstance(name, str) else ""

    @property
    def class_loaded(self) -> str:
        """The class that transformers loads, which for some models isn't the one that is named."""
        return self._class or CLASS_ANYWAY.get(self.model_type) or self.tokenizer_class

    @property
    def code_of_class(self) -> str | None:
        """The name of the module in the folder that has the tokenizer's class, or None."""
        names = self.tokenizer_config.get("auto_map")
        if isinstance(names, dict):
            names = names.get("AutoTokenizer")
        names = names if isinstance(names, list) else [names]
        name = next((name for name in names if isinstance(name, str)), None)
        return None if name is None else name.split("--")[-1].split(".")[0]

    # ---- special and added tokens ----

    @cached_property
    def lists_tokens(self) -> bool:
        """Whether tokenizer_config.json lists tokens. If so, transformers ignores two older
        files."""
        return "added_tokens_decoder" in self.tokenizer_config

    @cached_property
    def _special_map(self) -> Json:
        return {} if self.lists_tokens else self._object(_SPECIAL_MAP)

    @cached_property
    def named(self) -> dict[str, NamedToken]:
        """The named special tokens, by names without "_token", in the order in which they are
        added."""
        found: dict[str, NamedToken | None] = dict.fromkeys(SPECIAL_NAMES)
        name = self.class_loaded
        for key, default in DEFAULTS.get(name, {}).items():
            found[key] = NamedToken(default, f"transformers' {name}")
        config = self.tokenizer_config
        extra = config.get("extra_special_tokens")
        rows = {key: value for key, value in config.items() if key.endswith("_token")}
        rows |= extra if isinstance(extra, dict) else {}
        for key, value in rows.items():
            key = key.removesuffix("_token")
            if value is None:
                found[key] = None
            elif (entry := _entry(value)) is not None:
                found[key] = NamedToken(entry, _TOKENIZER_CONFIG)
        for key, value in self._special_map.items():
            entry = _entry(value) if key.endswith("_token") else None
            if entry is not None:
                self._replace(found, key.removesuffix("_token"), NamedToken(entry, _SPECIAL_MAP))
        return {key: token for key, token in found.items() if token is not None}

    def _replace(self, found: dict[str, NamedToken | None], name: str, token: NamedToken) -> None:
        old = found.get(name)
        if old is not None and old.where == _TOKENIZER_CONFIG and old.text != token.text:
            example = f"{old.text!r} and {token.text!r}"
            self.disagreements.add(f"{name}_token", example, old.where, token.where)
        found[name] = token

    @cached_property
    def _extra(self) -> list[ConfiguredToken]:
        """The special tokens without a name."""
        config = self.tokenizer_config
        for source, where in (config, _TOKENIZER_CONFIG), (self._special_map, _SPECIAL_MAP):
            for key in "extra_special_tokens", "additional_special_tokens":
                value = source.get(key)
                if value and isinstance(value, list):
                    entries = [entry for each in value if (entry := _entry(each)) is not None]
                    at = f"{where}: {key}"
                    # In tokenizer_config.json, an object is special only if it says so.
                    forced = where == _SPECIAL_MAP
                    return [
                        ConfiguredToken(_row(e, special=forced or isinstance(e, str)), None, at)
                        for e in entries
                    ]
        return []

    @cached_property
    def tokens(self) -> list[ConfiguredToken]:
        """The tokens that the configuration lists, each once, with the flags that count."""
        tokens: dict[str, ConfiguredToken] = {}
        for token in (*self._listed(), *self._named_rows(), *self._extra):
            tokens.setdefault(token.text, token)
        special = {token.text for token in self.named.values()}
        return [
            token._replace(row={**token.row, "special": token.row["special"] or text in special})
            for text, token in tokens.items()
        ]

    def _listed(self) -> list[ConfiguredToken]:
        """Returns the tokens with ids: those of added_tokens_decoder, or of added_tokens.json."""
        tokens = []
        if self.lists_tokens:
            rows = source_files.field(self.tokenizer_config, "added_tokens_decoder", dict, "", {})
            for key, value in rows.items():
                if not key.isdecimal():
                    raise VocabError(f"{_DECODER}: {key!r} is not a token id")
                at = f"{_DECODER}.{key}"
                entry = expect_type(value, dict, at)
                source_files.field(entry, "content", str, at)
                id = token_id(int(key[:10]), _DECODER)
                tokens.append(ConfiguredToken(_row(entry), id, _DECODER))
            for text in sorted(self._object(_ADDED).keys() - {token.text for token in tokens}):
                self.disagreements.add("added tokens", repr(text), _ADDED, _DECODER)
        else:
            special = {token.text for token in self.named.values()}
            # transformers reads this key of special_tokens_map.json too late for these tokens.
            late = f"{_SPECIAL_MAP}: additional_special_tokens"
            special |= {token.text for token in self._extra if token.where != late}
            for text, value in self._object(_ADDED).items():
                id = token_id(value, f"{_ADDED}: {text!r}")
                row = {**_row(text), "special": text in special, "normalized": text not in special}
                tokens.append(ConfiguredToken(row, id, _ADDED))
        return sorted(tokens, key=lambda token: token.id or 0)

    def _named_rows(self) -> Iterator[ConfiguredToken]:
        for token in self.named.values():
            yield ConfiguredToken(_row(token.entry, special=True), None, token.where)

    # ---- ends of generation ----

    @cached_property
    def ends(self) -> list[End]:
        """The ids that end generation, each once: those of generation_config.json or else those of
        config.json."""
        found = {}
        for where, source in (_GENERATION, self._object(_GENERATION)), (_CONFIG, self.config):
            value = source.get("eos_token_id")
            listed = value if isinstance(value, list) else [value]
            ids = [id for id in listed if type(id) is int and id >= 0]
            if ids:
                found[where] = list(dict.fromkeys(ids))
        if len(found) == 2 and set(found[_CONFIG]) != set(found[_GENERATION]):
            example = f"{found[_CONFIG]} and {found[_GENERATION]}"
            self.disagreements.add("eos_token_id", example, _CONFIG, _GENERATION)
        return [End(id, where) for where, ids in list(found.items())[:1] for id in ids]

    # ---- chat templates ----

    def templates(self) -> dict[str, str]:
        """Returns the chat templates by name. Files with only a template take precedence, as in
        transformers."""
        path = self.file("chat_template.jinja")
        own = {} if path is None else {"default": read_text(path)}
        own |= self._additional()
        configured = templates_of(self.tokenizer_config)
        if own:
            if configured and configured.get("default") != own.get("default"):
                winner = "chat_template.jinja" if path else "additional_chat_templates"
                self.disagreements.add("the chat template", "both", _TOKENIZER_CONFIG, winner)
            return own
        return configured or templates_of(self._object("chat_template.json"))

    def _additional(self) -> dict[str, str]:
        folder = os.path.join(self.path or "", "additional_chat_templates")
        if self.path is None or not os.path.isdir(folder):
            return {}
        names = sorted(n for n in os.listdir(folder) if n.endswith(".jinja"))[:_MAX_TEMPLATES]
        return {name[: -len(".jinja")]: read_text(os.path.join(folder, name)) for name in names}


def _first(part: Json, whole: Json, key: str) -> Any:
    return whole.get(key) if part.get(key) is None else part[key]


def _entry(value: Any) -> str | Json | None:
    """Returns a special token, stored as a text or an object, or None."""
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return value
    return value if isinstance(value, str) and value else None


def _row(entry: str | Json, special: bool = False) -> Json:
    """Returns the row of added_tokens for a text, or for an object with flags. By default, only
    tokens that aren't special are searched for in normalized text, as in tokenizers."""
    row: Json = {"content": entry} if isinstance(entry, str) else dict(entry)
    row.setdefault("special", special)
    row.setdefault("normalized", not row["special"])
    return {"content": row["content"], **{name: row.get(name) is True for name in _FLAGS}}


def merge_tokens(
    folder: SourceFolder,
    where: str,
    ids: Mapping[str, int],
    n: int,
    rows: Sequence[Mapping[str, Any]] | None = None,
) -> list[Json]:
    """Returns the added tokens of a file and of the folder's configuration, with ids.

    Args:
        where: the file's name.
        ids: the ids of the file's tokens by text.
        n: the first id after the file's tokens.
        rows: the file's added tokens, with ids; None if its format has none. Then new tokens have
            the ids that the configuration states, as in models of such files. Otherwise they have
            the next ids, whatever the configuration says, as in tokenizers.
    """
    merged = {str(row["content"]): dict(row) for row in rows or ()}
    for token in folder.tokens:
        text, old = token.text, merged.get(token.text)
        if old is not None:
            wrong = _changed_flags(old, token, folder)
            if wrong:
                folder.disagreements.add(", ".join(wrong), repr(text), where, token.where)
                merged[text] = {**old, **{flag: token.row[flag] for flag in wrong}}
            id = int(old["id"])
        elif text in ids:
            id = ids[text]
            merged[text] = {"id": id, **token.row}
        else:
            id = n if rows is not None or token.id is None else token.id
            n = max(n, id + 1)
            merged[text] = {"id": id, **token.row}
        if token.id is not None and token.id != id:
            example = f"{text!r}: {token.id} and {id}"
            folder.disagreements.add("ids", example, token.where, where)
    return list(merged.values())


def _changed_flags(old: Json, token: ConfiguredToken, folder: SourceFolder) -> list[str]:
    """Returns the flags of a file's added token that the configuration changes."""
    if token.id is not None:
        return [flag for flag in _FLAGS if bool(old.get(flag)) != token.row[flag]]
    # A name makes a token special, unless added_tokens_decoder should list the token and doesn't.
    names = {named.text for named in folder.named.values()}
    becomes_special = token.text in names and not folder.lists_tokens and not old.get("special")
    return ["special"] if becomes_special else []


def templates_of(config: Json) -> dict[str, str]:
    """Returns the chat templates in a tokenizer_config.json, by name. The file has one template, or
    a list of named templates."""
    value = config.get("chat_template")
    if isinstance(value, str):
        return {"default": value}
    if not isinstance(value, list):
        return {}
    templates = {}
    for i, entry in enumerate(value[:_MAX_TEMPLATES]):
        where = f"chat_template[{i}]"
        row = expect_type(entry, dict, where)
        templates[source_files.field(row, "name", str, where)] = source_files.field(
            row, "template", str, where
        )
    return templates
