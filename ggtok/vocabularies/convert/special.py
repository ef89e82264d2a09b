"""Finds the ids of special tokens, and the tokens added before and after a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ggtok.vocabularies.contents import Difference
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.reading import Folder, checked
from ggtok.vocabularies.convert.reading import field as value_of
from ggtok.vocabularies.convert.structure import _entries

# Names in tokenizer_config.json and config.json. "cls" becomes BOS if there is no other.
_NAMES = ("bos", "eos", "unk", "sep", "pad", "mask")
# Classes of transformers that rebuild the post-processor from the configuration.
_REBUILT = ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer")


@dataclass
class Template:
    """The special tokens that a post_processor puts around a text."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def template_of(post_processor: Any) -> Template:
    """The tokens that the post_processor of a tokenizer.json adds to a single text."""
    template = Template()
    for entry, at in _entries(post_processor, "processors", "post_processor"):
        kind = value_of(entry, "type", str, at)
        if kind in ("BertProcessing", "RobertaProcessing"):
            template.before = [_token(entry, "cls", at)]
            template.after = [_token(entry, "sep", at)]
        elif kind == "TemplateProcessing":
            single = value_of(entry, "single", list, at)
            before, after = _around(single, f"{at}.single")
            template.before, template.after = before, after
    return template


def _token(entry: Mapping[str, Any], key: str, at: str) -> str:
    pair = value_of(entry, key, list, at)
    return checked(pair[0] if pair else None, str, f"{at}.{key}[0]")


def _around(single: list[Any], at: str) -> tuple[list[str], list[str]]:
    before: list[str] = []
    after: list[str] = []
    target = before
    for i, item in enumerate(single):
        where = f"{at}[{i}]"
        row = checked(item, dict, where)
        if "Sequence" in row:
            target = after
        else:
            token = value_of(row, "SpecialToken", dict, where)
            target.append(value_of(token, "id", str, where + ".SpecialToken"))
    return before, after


def set_special(draft: Draft, folder: Folder, ids: Mapping[str, int], post_processor: Any) -> None:
    """Sets special ids, add_bos and add_eos, and the chat templates.

    The post_processor decides which tokens are added. The ids of other special tokens come from
    tokenizer_config.json, and then from config.json.
    """
    set_configured(draft, folder, ids)
    template = template_of(post_processor)
    before = [ids[token] for token in template.before if token in ids]
    after = [ids[token] for token in template.after if token in ids]
    draft.flags["add_bos"], draft.flags["add_eos"] = bool(before), bool(after)
    if before:
        draft.special_ids["bos"] = before[0]
    if after:
        _set_last(draft, after[-1])
    if len(before) > 1 or len(after) > 1:
        draft.differences.append(
            Difference(
                "template",
                f"the source puts {' '.join(template.before)} before a text and "
                f"{' '.join(template.after)} after it: llama.cpp adds at most one token on each "
                "side",
            )
        )
    if draft.model == "bert":
        _set_bert(draft, ids, bool(before and after))
    _rebuilt(draft, folder.tokenizer_config)


def _set_bert(draft: Draft, ids: Mapping[str, int], added: bool) -> None:
    """CLS and SEP, which llama.cpp puts around a text whatever the source does."""
    if not added:
        draft.differences.append(
            Difference("template", "the source puts nothing around a text: llama.cpp CLS and SEP")
        )
    for name, text, default in ("bos", "[CLS]", 101), ("sep", "[SEP]", 102):
        if text in ids:
            draft.special_ids.setdefault(name, ids[text])
        elif name not in draft.special_ids:
            draft.notes.append(f"the source has no {text}: llama.cpp takes token {default} for it")


def set_configured(draft: Draft, folder: Folder, ids: Mapping[str, int]) -> None:
    """Sets the special ids that the configurations name, and the chat templates."""
    configured: dict[str, int] = {}
    for name, id in _configured(folder, ids):
        configured.setdefault(name, id)
    draft.special_ids |= configured
    draft.set_templates(folder)


def _set_last(draft: Draft, id: int) -> None:
    """Makes the token added at the end EOS, as llama.cpp requires. Another EOS becomes EOT."""
    other = draft.special_ids.get("eos")
    if draft.model == "bert":
        draft.special_ids["sep"] = id
    elif other is not None and other != id:
        draft.special_ids.setdefault("eot", other)
    if draft.model != "bert" or other is None:
        draft.special_ids["eos"] = id


def _configured(folder: Folder, ids: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for name in (*_NAMES, "cls"):
        text = content_of(folder.tokenizer_config.get(f"{name}_token"))
        if text is not None and text in ids:
            yield ("bos" if name == "cls" else name), ids[text]
    for name in _NAMES:
        id = folder.config.get(f"{name}_token_id")
        if isinstance(id, list):
            id = id[0] if id else None
        if type(id) is int and id >= 0:
            yield name, id


def content_of(entry: Any) -> str | None:
    """The text of a special token, stored as a string or an object."""
    if isinstance(entry, dict):
        entry = entry.get("content")
    return entry if isinstance(entry, str) else None


def _rebuilt(draft: Draft, config: Mapping[str, Any]) -> None:
    """Sets add_bos and add_eos as some classes of transformers did before version 5.

    These classes, with which models were trained, followed tokenizer_config.json instead of the
    post_processor.
    """
    if str(config.get("tokenizer_class", "")).removesuffix("Fast") not in _REBUILT:
        return
    for name in ("bos", "eos"):
        on = config.get(f"add_{name}_token")
        if isinstance(on, bool) and on != draft.flags[f"add_{name}"] and name in draft.special_ids:
            draft.flags[f"add_{name}"] = on
            draft.notes.append(
                f"add_{name} is {on}: before version 5, transformers' {config['tokenizer_class']} "
                f"followed add_{name}_token of tokenizer_config.json, not the post_processor"
            )


def name_end(draft: Draft) -> None:
    """Sets a missing EOS or BOS of BPE, for which llama.cpp would use token 11."""
    ids = draft.special_ids
    if draft.model != "gpt2" or ("bos" in ids and "eos" in ids):
        return
    known = ids.get("eos", ids.get("bos", ids.get("pad", ids.get("unk"))))
    if known is None:
        draft.notes.append("the source has no BOS and no EOS: llama.cpp uses token 11 for both")
        return
    for name in ("bos", "eos"):
        if name not in ids:
            draft.notes.append(f"the source has no {name.upper()}: token {known} is used instead")
            ids[name] = known
