"""A Hugging Face folder, whose files are read lazily."""

from __future__ import annotations

import os
from typing import Any

from ggtok.base.concurrency import cached_property
from ggtok.vocabularies.convert.reading import checked, field, read_object, read_text

_MAX_TEMPLATES = 64


class Folder:
    """The files of a folder. If `path` is None (the source is a single file), there are none."""

    def __init__(self, path: str | None) -> None:
        self.path = path

    def file(self, *names: str) -> str | None:
        """The path of the first of these files that exists, or None."""
        if self.path is None:
            return None
        paths = [os.path.join(self.path, name) for name in names]
        return next((path for path in paths if os.path.isfile(path)), None)

    def _object(self, *names: str) -> dict[str, Any]:
        path = self.file(*names)
        return {} if path is None else read_object(path)

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json, with the text model's part merged over it."""
        config = self._object("config.json")
        part = self.text_config
        if part is None:
            return config
        return {**config, **part, "architectures": _first(part, config, "architectures")}

    @cached_property
    def text_config(self) -> dict[str, Any] | None:
        """The text model's part of config.json, if it has one."""
        config = self._object("config.json")
        parts = map(config.get, ("text_config", "llm_config", "lm_config", "language_config"))
        return next((part for part in parts if isinstance(part, dict)), None)

    @cached_property
    def tokenizer_config(self) -> dict[str, Any]:
        return self._object("tokenizer_config.json")

    @cached_property
    def added_tokens(self) -> dict[str, Any]:
        return self._object("added_tokens.json")

    @property
    def tokenizer_class(self) -> str:
        """The name of the tokenizer's class in transformers, or ""."""
        names = [config.get("tokenizer_class") for config in (self.tokenizer_config, self.config)]
        return next((name for name in names if isinstance(name, str)), "")

    @property
    def architecture(self) -> str | None:
        """The first architecture in config.json, or None."""
        names = self.config.get("architectures")
        if isinstance(names, list) and names and isinstance(names[0], str):
            return names[0]
        return None

    def templates(self) -> dict[str, str]:
        """Chat templates by name. Like transformers, prefers chat_template.jinja."""
        path = self.file("chat_template.jinja")
        if path is not None:
            return {"default": read_text(path), **self._additional()}
        for source in (self.tokenizer_config, self._object("chat_template.json")):
            found = templates_of(source)
            if found:
                return found
        return {}

    def _additional(self) -> dict[str, str]:
        folder = os.path.join(self.path or "", "additional_chat_templates")
        if not os.path.isdir(folder):
            return {}
        names = sorted(n for n in os.listdir(folder) if n.endswith(".jinja"))[:_MAX_TEMPLATES]
        return {name[: -len(".jinja")]: read_text(os.path.join(folder, name)) for name in names}


def _first(part: dict[str, Any], whole: dict[str, Any], key: str) -> Any:
    return whole.get(key) if part.get(key) is None else part[key]


def templates_of(config: dict[str, Any]) -> dict[str, str]:
    """The chat templates of a tokenizer_config.json: one, or a list of named ones."""
    value = config.get("chat_template")
    if isinstance(value, str):
        return {"default": value}
    if not isinstance(value, list):
        return {}
    templates = {}
    for i, entry in enumerate(value[:_MAX_TEMPLATES]):
        where = f"chat_template[{i}]"
        row = checked(entry, dict, where)
        templates[field(row, "name", str, where)] = field(row, "template", str, where)
    return templates
