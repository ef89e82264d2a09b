"""How llama.cpp's converter (b11549) finds special tokens, flags and templates in a folder."""

from __future__ import annotations

from typing import Any

from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.folder import Folder, templates_of
from ggtok.vocabularies.convert.reading import read_object, read_text

_TYPES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_NORMALIZER = "tokenizer.ggml.normalizer."


class Special:
    """Ids by name in the order found (the first wins), and what is added to a text."""

    def __init__(self, folder: Folder, n_vocab: int | None = None) -> None:
        self.ids: dict[str, int] = {}
        self.add: dict[str, bool] = {}
        self.normalizer: dict[str, bool] = {}
        self.templates: dict[str, str] = {}
        self._types = list(_TYPES)
        self._n_vocab = n_vocab
        path = folder.file("tokenizer.json")
        document = None if path is None else read_object(path)
        has_config = folder.file("tokenizer_config.json") is not None
        config = dict(folder.tokenizer_config)
        added: list[Any] = []
        if document is not None:
            added = _list(document.get("added_tokens"))
            self._read_normalizer(document.get("normalizer"))
            self._read_post_processor(document, config, has_config)
        if has_config:
            self._read_config(config, added, folder)
        path = folder.file("config.json")
        model_config = {} if path is None else read_object(path)
        text_config = _object(model_config.get("text_config"))
        for name in self._types:
            key = f"{name}_token_id"
            id = model_config.get(key)
            self.set(name, text_config.get(key) if id is None else id)

    def set(self, name: str, id: Any) -> None:
        if type(id) is int and id >= 0 and (self._n_vocab is None or id < self._n_vocab):
            self.ids.setdefault(name, id)

    def write(self, draft: Draft) -> None:
        for name, id in self.ids.items():
            if name == "cls":
                continue  # the converter finds it, and has no key for it
            draft.special_ids.setdefault(name, id)
        for name, on in self.add.items():
            if name in ("bos", "eos", "sep"):
                draft.flags.setdefault(f"add_{name}", on)
        for key in ("lowercase", "strip_accents"):
            if key in self.normalizer:
                draft.keys[_NORMALIZER + key] = self.normalizer[key]
        named = dict(self.templates)
        draft.chat_template = named.pop("default", None)
        draft.chat_templates = named

    def _read_normalizer(self, normalizer: Any) -> None:
        if not isinstance(normalizer, dict):
            return
        kind = normalizer.get("type")
        if kind == "Lowercase":
            self.normalizer["lowercase"] = True
        elif kind == "StripAccents":
            self.normalizer["strip_accents"] = True
        elif kind == "BertNormalizer":
            for key in ("lowercase", "strip_accents"):
                if normalizer.get(key) is not None:
                    self.normalizer[key] = normalizer[key] is True
        elif kind == "Sequence":
            for one in _list(normalizer.get("normalizers")):
                self._read_normalizer(one)

    def _read_post_processor(
        self, document: dict[str, Any], config: dict[str, Any], has_config: bool
    ) -> None:
        """A template's first and last special tokens; they win over the configuration."""
        if has_config:
            for name, other in (("bos", "cls"), ("eos", "sep")):
                if not config.get(f"{name}_token") and config.get(f"{other}_token"):
                    config[f"{name}_token"] = config[f"{other}_token"]
        processor = _object(document.get("post_processor"))
        for one in map(_object, _list(processor.get("processors")) or [processor]):
            kind = one.get("type")
            if kind == "ByteLevel":
                self.add.setdefault("bos", False)
                self.add.setdefault("eos", False)
            elif kind == "RobertaProcessing":
                self.add |= {"bos": True, "eos": True, "sep": True}
                for name in ("cls", "sep"):
                    if has_config and not config.get(f"{name}_token"):
                        config[f"{name}_token"] = (_list(one.get(name)) or [None])[0]
            elif kind == "TemplateProcessing":
                self._read_template(one, config, has_config)

    def _read_template(
        self, processor: dict[str, Any], config: dict[str, Any], has_config: bool
    ) -> None:
        single, pair = _list(processor.get("single")), _list(processor.get("pair"))
        first = last = None
        texts = {name: config.get(f"{name}_token") for name in ("bos", "cls", "eos", "sep")}
        if len(single) > 1:
            first, last = _special(single[0]), _special(single[-1])
        if first:
            self._first(first, texts, config, has_config)
        if last:
            self._last(last, texts, config, has_config)
        if not pair:
            return
        start = 1 if first and _special(pair[0]) == first else 0
        stop = -1 if last and _special(pair[-1]) == last else None
        rest = pair[start:stop]
        if not rest or (_sequence(rest[0]), _sequence(rest[-1])) != ("A", "B"):
            return
        between = rest[1:-1]
        if not between:
            return
        ends = (texts["sep"], texts["eos"])
        add = _special(between[0]) in ends and _special(between[0]) is not None and not last
        if len(between) == 2 and _special(between[1]) in ends and _special(between[1]):
            add = True
        self.add["sep"] = bool(add)
        if add and not texts["sep"] and has_config:
            config["sep_token"] = texts["eos"]

    def _first(
        self, first: str, texts: dict[str, Any], config: dict[str, Any], has_config: bool
    ) -> None:
        if not has_config:
            texts["bos"] = first
        elif first not in (texts["bos"], texts["cls"]):
            for name in ("bos", "cls"):
                if not texts[name]:
                    config[f"{name}_token"] = texts[name] = first
        self.add["bos"] = first in (texts["bos"], texts["cls"])

    def _last(
        self, last: str, texts: dict[str, Any], config: dict[str, Any], has_config: bool
    ) -> None:
        if not has_config:
            texts["eos"] = last
        elif last != texts["eos"]:
            name = next((name for name in ("eot", "eom") if name not in self._types), None)
            if name is not None:
                self._types.append(name)
                config[f"{name}_token"] = texts["eos"]
            config["eos_token"] = texts["eos"] = last
        self.add["eos"] = last == texts["eos"]

    def _read_config(self, config: dict[str, Any], added: list[Any], folder: Folder) -> None:
        self.templates = templates_of(config) or _other_templates(folder)
        for name in self._types:
            on = config.get(f"add_{name}_token")
            if isinstance(on, bool):
                self.add.setdefault(name, on)
            entry = config.get(f"{name}_token")
            text = entry.get("content") if isinstance(entry, dict) else entry
            if isinstance(text, str):
                rows = map(_object, added)
                ids = (row.get("id") for row in rows if row.get("content") == text)
                self.set(name, next(ids, None))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _special(item: Any) -> str | None:
    entry = item.get("SpecialToken") if isinstance(item, dict) else None
    return entry.get("id") if isinstance(entry, dict) else None


def _sequence(item: Any) -> str | None:
    entry = item.get("Sequence") if isinstance(item, dict) else None
    return entry.get("id") if isinstance(entry, dict) else None


def _other_templates(folder: Folder) -> dict[str, str]:
    """Files are only looked at where the configuration has no template."""
    path = folder.file("chat_template.jinja")
    if path is not None:
        return {"default": read_text(path), **folder._additional()}
    path = folder.file("chat_template.json")
    return {} if path is None else templates_of(read_object(path))
