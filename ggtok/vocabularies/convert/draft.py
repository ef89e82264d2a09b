"""The draft of a vocabulary, which readers of formats fill in, and common differences.

A difference that one of llama.cpp's rules forces may have a change: a function that makes the
source follow that rule. With all of these changes, a tokenizer.json must produce ggtok's ids for
every text. One change alone shows how many lines the rule affects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ggtok.errors import VocabError
from ggtok.vocabularies.contents import ConversionReport, Difference, Pair
from ggtok.vocabularies.convert.folder import SourceFolder, merge_tokens
from ggtok.vocabularies.convert.source_files import MAX_TOKENS, expect_type, utf8
from ggtok.vocabularies.convert.source_files import field as value_of
from ggtok.vocabularies.convert.structure import entries
from ggtok.vocabularies.gguf_writer import SPECIAL_KEYS
from ggtok.vocabularies.spelling import BYTE, CONTROL, UNKNOWN, UNUSED, USER_DEFINED
from ggtok.vocabularies.vocabulary import Vocabulary

MAX_HOLES = 1 << 18  # the maximum number of ids without a token, unless there are more tokens


@dataclass
class Draft:
    """An unfinished vocabulary, in which ids may lack tokens. Most attributes are those of
    Vocabulary."""

    model: str
    texts: dict[int, bytes] = field(default_factory=dict)
    types: dict[int, int] = field(default_factory=dict)
    scores: dict[int, float] | None = None
    merges: list[Pair] | None = None
    pre: str | None = None
    special_ids: dict[str, int] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    keys: dict[str, object] = field(default_factory=dict)
    chat_template: str | None = None
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "llama"
    size: int = 0  # the minimum number of tokens
    filler_score: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def set(self, id: int, text: bytes, type: int, score: float = 0.0) -> None:
        self.texts[id] = text
        self.types[id] = type
        if self.scores is not None:
            self.scores[id] = score

    def set_templates(self, folder: SourceFolder) -> None:
        templates = folder.templates()
        self.chat_template = templates.pop("default", None)
        self.chat_templates = templates

    def vocabulary(self, format: str) -> Vocabulary:
        """Returns the finished vocabulary, with unused tokens for ids that have no token."""
        if not self.texts:
            raise VocabError(f"{format}: there are no tokens")
        n = max(self.size, max(self.texts) + 1)
        if n > MAX_TOKENS:
            raise VocabError(f"{format}: {n} tokens are more than {MAX_TOKENS}")
        check_holes(n, len(self.texts), format)
        self._check_unique(format)
        taken = set(self.texts.values()) if len(self.texts) < n else set()
        texts, types, scores = [], [], []
        for id in range(n):
            text = self.texts.get(id)
            texts.append(_filler(id, taken) if text is None else text)
            types.append(self.types.get(id, UNUSED))
            if self.scores is not None:
                scores.append(self.scores.get(id, self.filler_score))
        holes = n - len(self.texts)
        if holes:
            self.notes.append(f"{holes} ids without a token become unused tokens [PADn]")
        return Vocabulary(
            model=self.model,
            texts=texts,
            types=types,
            pre=self.pre,
            scores=None if self.scores is None else scores,
            merge_texts=self.merges,
            special_ids={name: id for name, id in self.special_ids.items() if 0 <= id < n},
            flags=self.flags,
            keys=self.keys,
            chat_template=self.chat_template,
            chat_templates=self.chat_templates,
            architecture=self.architecture,
            report=ConversionReport(
                notes=tuple(self.notes),
                format=format,
                pre=self.pre,
                differences=tuple(self.differences),
            ),
        )

    def _check_unique(self, format: str) -> None:
        seen: dict[bytes, int] = {}
        for id, text in self.texts.items():
            other = seen.setdefault(text, id)
            if other != id:
                raise VocabError(f"{format}: tokens {other} and {id} have the same text {text!r}")


def check_holes(n: int, known: int, where: str) -> None:
    """Raises VocabError if most ids have no token, since models have only a few unused ids."""
    if n - known > max(MAX_HOLES, known):
        raise VocabError(f"{where}: {n} ids are too many for {known} tokens")


def _filler(id: int, taken: set[bytes]) -> bytes:
    text = b"[PAD%d]" % id
    while text in taken:
        text += b"_"
    taken.add(text)
    return text


# ---- differences ----

Json = dict[str, Any]
_MARK = "\u2581"


def without_normalizer(document: Json) -> None:
    document["normalizer"] = None


def fewer_categories(pre: str, change: Callable[[Json], None]) -> Difference:
    return Difference(
        "pre-tokenizer",
        f"llama.cpp's {pre} distinguishes fewer characters than the source's expressions (letters "
        "have one category, and case only in ASCII; U+017F is not an s), and none newer than "
        "Unicode 15.1",
        change=change,
    )


def newer_characters(change: Callable[[Json], None]) -> Difference:
    return Difference(
        "unicode",
        "llama.cpp's Unicode is 15.1: the source's own package may know newer letters and numbers",
        change=change,
    )


def unigram_fallback(change: Callable[[Any], None]) -> Difference:
    return Difference(
        "byte-fallback",
        "for unknown characters, the source produces byte tokens, and llama.cpp <unk>",
        change=change,
    )


def leading_space(special: Sequence[str]) -> Difference:
    return Difference(
        "leading-space",
        "the source puts no space before a text that begins with one: llama.cpp does",
        without=_leading_spaces(special),
    )


def _leading_spaces(special: Sequence[str]) -> Callable[[str], str]:
    """Returns a function that removes spaces at the start of a line and after each of these
    texts."""
    begins = "|".join(["^", *map(re.escape, sorted(special, key=len, reverse=True))])
    pattern = re.compile(f"({begins})[ {_MARK}]+")
    return lambda line: pattern.sub(r"\1", line)


# ---- special tokens' ids, and the tokens added before and after a text ----

# The names in Vocabulary.special_ids of transformers' special tokens. If there is no BOS, "cls"
# becomes BOS.
_NAMES = {
    **{name: name for name in ("bos", "eos", "unk", "sep", "pad", "mask", "eot", "eom")},
    **{name: name for name in SPECIAL_KEYS if name.startswith("fim_")},
    "cls": "bos",
    "prefix": "fim_pre",
    "suffix": "fim_suf",
    "middle": "fim_mid",
}
_ID_NAMES = ("bos", "eos", "unk", "sep", "pad", "mask")  # those in config.json, as ids
# Classes in transformers that rebuild the post-processor from the configuration.
_REBUILT = ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer")


@dataclass
class PostProcessorTemplate:
    """The special tokens that a post_processor adds before and after a text."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def template_of(post_processor: Any) -> PostProcessorTemplate:
    """Returns the tokens that the post_processor of a tokenizer.json adds to a single text."""
    template = PostProcessorTemplate()
    for entry, at in entries(post_processor, "processors", "post_processor"):
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
    return expect_type(pair[0] if pair else None, str, f"{at}.{key}[0]")


def _around(single: list[Any], at: str) -> tuple[list[str], list[str]]:
    before: list[str] = []
    after: list[str] = []
    target = before
    for i, item in enumerate(single):
        where = f"{at}[{i}]"
        row = expect_type(item, dict, where)
        if "Sequence" in row:
            target = after
        else:
            token = value_of(row, "SpecialToken", dict, where)
            target.append(value_of(token, "id", str, where + ".SpecialToken"))
    return before, after


def set_special(
    draft: Draft, folder: SourceFolder, ids: Mapping[str, int], post_processor: Any
) -> None:
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
    """Sets CLS and SEP, which llama.cpp adds around a text whatever the source does."""
    if not added:
        draft.differences.append(
            Difference("template", "the source puts nothing around a text: llama.cpp CLS and SEP")
        )
    for name, text, default in ("bos", "[CLS]", 101), ("sep", "[SEP]", 102):
        if text in ids:
            draft.special_ids.setdefault(name, ids[text])
        elif name not in draft.special_ids:
            draft.notes.append(f"the source has no {text}: llama.cpp takes token {default} for it")


_FIXED = (CONTROL, UNKNOWN, BYTE)


def add_configured(draft: Draft, folder: SourceFolder, where: str) -> None:
    """Adds the tokens that the folder's configuration lists to those of a file that has no added
    tokens of its own."""
    ids = {text.decode("utf-8", "replace"): id for id, text in draft.texts.items()}
    for row in merge_tokens(folder, where, ids, max(draft.texts, default=-1) + 1):
        id, text = row["id"], utf8(row["content"], where)
        if draft.types.get(id) in _FIXED and draft.texts[id] == text:
            continue
        kind = CONTROL if row["special"] else USER_DEFINED
        draft.set(id, text, kind, (draft.scores or {}).get(id, -1000.0))


def set_configured(draft: Draft, folder: SourceFolder, ids: Mapping[str, int]) -> None:
    """Sets the special ids that the configurations name, and the chat templates."""
    configured: dict[str, int] = {}
    for name, id in _special_ids(folder, ids):
        configured.setdefault(name, id)
    draft.special_ids |= configured
    draft.set_templates(folder)


def _set_last(draft: Draft, id: int) -> None:
    """Makes the token added at the end EOS, as llama.cpp requires. A different EOS becomes EOT."""
    other = draft.special_ids.get("eos")
    if draft.model == "bert":
        draft.special_ids["sep"] = id
    elif other is not None and other != id:
        draft.special_ids.setdefault("eot", other)
    if draft.model != "bert" or other is None:
        draft.special_ids["eos"] = id


def _special_ids(folder: SourceFolder, ids: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for name, ours in _NAMES.items():
        token = folder.named.get(name)
        if token is not None and token.text in ids:
            yield ours, ids[token.text]
    for name in _ID_NAMES:
        id = folder.config.get(f"{name}_token_id")
        if type(id) is int and id >= 0:
            token = folder.named.get(name)
            if token is not None and ids.get(token.text, id) != id:
                example = f"{id} and {ids[token.text]} ({token.text!r})"
                folder.disagreements.add(f"{name}_token", example, "config.json", token.where)
            yield name, id
    for end in folder.ends[:1]:
        yield "eos", end.id


def _rebuilt(draft: Draft, config: Mapping[str, Any]) -> None:
    """Sets add_bos and add_eos as some classes in transformers did before version 5.

    Models were trained with these classes, which followed tokenizer_config.json instead of the
    post_processor.
    """
    if str(config.get("tokenizer_class", "")).removesuffix("Fast") not in _REBUILT:
        return
    for name in ("bos", "eos"):
        on = config.get(f"add_{name}_token")
        if isinstance(on, bool) and on != draft.flags[f"add_{name}"] and name in draft.special_ids:
            draft.flags[f"add_{name}"] = on
            draft.differences.append(
                Difference(
                    "template",
                    f"add_{name} is {on}: before version 5, transformers' "
                    f"{config['tokenizer_class']} followed add_{name}_token of "
                    "tokenizer_config.json, not the post_processor",
                )
            )


def name_end(draft: Draft) -> None:
    """Sets a missing EOS or BOS for BPE, since llama.cpp would otherwise use token 11."""
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
