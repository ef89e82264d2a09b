"""Checks the pre-tokenizer, and ranks the names that a file without a usable one could have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ggtok.base.escape import printable
from ggtok.errors import GGTokError
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, File
from ggtok.tokenizer import Tokenizer
from ggtok.vocabularies.pre_rows import PRE_ROWS
from ggtok.vocabularies.spelling import NORMAL

# Words, numbers, punctuation, white space and scripts that pre-tokenizers split differently.
PROBE = (
    "Hello, World! I'm sure they'LL pay $1234567.89 in 2024; see e-mail_x@y.org/a?b=1.\n\n"
    "\tdef f(x):\r\n        return x**2  # ok...   \n"
    "été ÑANDÚ straße Привет МИР مرحبا ١٢٣ नमस्ते สวัสดี 你好\uff0c世界 こんにちは 한국어 "
    "camelCaseWord HTTPServer 3.14e-10 100,000 \u00a0x  \n \U0001f600\U0001f44d\U0001f3fd <|x|>"
)
_LISTED = 8  # the most names to list
_RANKED = 3  # the most candidates to list


def check_pre_tokenizer(file: File) -> Iterator[Finding]:
    if not _has_name(file):
        return
    name = file.values.get(GGML + "pre")
    code, detail = "", ""
    if file.unknown_pre is not None:
        code, detail = "GGT103", f"it is '{printable(name or b'', 60)}'; {_others(file)}"
    elif not name:
        code, detail = "GGT101", f"there is no key '{GGML}pre'; {_others(file)}"
    elif name.split(b"\0")[0] == b"default":
        code, detail = "GGT102", _others(file)
    elif misfit(file):
        code, detail = "GGT104", misfit(file)
    if code:
        ranked = candidates(file)
        detail += "".join(f"\n{each.described()}" for each in ranked[:_RANKED])
        likely = likely_name(file)
        if likely is not None:
            detail += f"\nthe other findings assume '{likely}'"
        yield finding(code, detail, options="" if likely is None else f"--pre {likely}")


def assume_pre_tokenizer(file: File) -> File:
    """Returns the file as it is with the pre-tokenizer that it probably should have, so that a
    wrong name causes one finding; the file itself if its own name seems right, or if no other one
    is likely."""
    likely = None if is_own(file) else likely_name(file)
    return file if likely is None else file.with_pre(likely)


def is_own(file: File) -> bool:
    """Whether the pre-tokenizer seems to be this vocabulary's, not llama.cpp's default or another
    vocabulary's."""
    if misfit(file):
        return False
    name = str(file.tok.pre) if file.unknown_pre is None else "default"
    return name != "default" or file.tok.model != "gpt2"


def _has_name(file: File) -> bool:
    """Whether llama.cpp takes the pre-tokenizer from the key: other models ignore it, or use it for
    other purposes."""
    return file.tok.vocab_type == "BPE" and file.tok.model == "gpt2"


# ---- the tokens that a pre-tokenizer splits ----

# Pre-tokenizers that split in different ways, with the names that findings use for them. Unlike
# llama-bpe, none of them sets ignore_merges, so damaged merges affect all of them alike.
_KINDS = {
    "smaug-bpe": "'llama-bpe' or 'smaug-bpe'",
    **{
        name: f"'{name}'"
        for name in "gpt-2 qwen35 gpt-4o falcon deepseek-llm deepseek-coder bloom starcoder".split()
    },
}
_SAMPLE, _FEWEST = 20_000, 1000  # the most and the fewest tokens to compare
# The share of tokens that the right pre-tokenizer may split although another one doesn't. In
# published vocabularies, this share is at most 1.1 % (qwen2). For wrong pre-tokenizers, it is 1.3 %
# to 30 %.
_MISFIT = 0.012


def misfit(file: File) -> str:
    """Describes how many tokens the pre-tokenizer splits that another one keeps whole; "" if they
    are few."""
    if "misfit" not in file.memo:
        file.memo["misfit"] = _misfit(file)
    return str(file.memo["misfit"])


def _misfit(file: File) -> str:
    name = file.values.get(GGML + "pre")
    if not _has_name(file) or not name or file.unknown_pre:
        return ""
    ids = _sample(file)
    if len(ids) < _FEWEST:
        return ""
    ours = _n_split(file, file.tok, ids)
    if ours <= _MISFIT * len(ids):
        return ""
    theirs = {name: _n_split(file, file.load(pre=name), ids) for name in _KINDS}
    least = min(theirs.values())
    if ours - least <= _MISFIT * len(ids):
        return ""
    best = " and ".join(text for name, text in _KINDS.items() if theirs[name] == least)
    return f"of {len(ids)} tokens, '{printable(name, 60)}' splits {ours}, {best} {least}"


def _sample(file: File) -> list[int]:
    ids = [id for id, type in enumerate(file.types) if type == NORMAL and file.texts[id]]
    return ids[:: max(1, -(-len(ids) // _SAMPLE))]


def _n_split(file: File, tok: Tokenizer, ids: Sequence[int]) -> int:
    """Returns how many of the tokens' pieces don't encode to exactly one token."""
    texts = [file.pieces[id] for id in ids]
    _, offsets = tok.encode_batch_arrays(texts, add_special=False)
    lengths = offsets[1:] - offsets[:-1]
    return int((lengths != 1).sum())


# ---- the names that a file could have ----

# Control tokens of chat templates, and the pre-tokenizer of the models that introduced them.
_MARKS = {
    b"<|start_header_id|>": "llama-bpe",
    b"<|header_start|>": "llama4",
    b"<|START_OF_TURN_TOKEN|>": "command-r",
    b"[AVAILABLE_TOOLS]": "tekken",
    "<\uff5cUser\uff5c>".encode(): "deepseek-v3",
    b"<|start_of_role|>": "refact",
    b"[gMASK]": "glm4",
}
_NAMES = ("general.architecture", "general.basename", "general.name", "general.base_model.0.name")
_SPELLING = re.compile(r"[^a-z0-9]|bpe$")  # parts in which names of the same model differ
_WORDS = {name: _SPELLING.sub("", name) for name in PRE_ROWS}


@dataclass(frozen=True)
class Candidate:
    """Names of pre-tokenizers that split alike.

    Attributes:
        name: the name that the file probably needs, if it needs one of these.
        names: all of them.
        n_split, n: the number of tokens that they split, of so many.
        hint: what in the file speaks for `name`; "" if nothing does.
        same: whether they give the ids of "default" on a text of many kinds of words.
    """

    name: str
    names: tuple[str, ...]
    n_split: int
    n: int
    hint: str
    same: bool

    def described(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"'{self.name}' splits {self.n_split} of {self.n} tokens{hint}"


def candidates(file: File) -> list[Candidate]:
    """Returns the pre-tokenizers that keep the vocabulary's tokens whole, the likeliest first."""
    every = _every(file)
    # One that ignores merges keeps every token whole. If others split too many, merges are damaged.
    merging = [each for each in every if not _ignores_merges(each.name)]
    fewest = min((each.n_split for each in merging), default=0)
    best = min((each.n_split for each in every), default=0)
    pool, least = every, best
    if merging and fewest - best > _MISFIT * merging[0].n:
        pool, least = merging, fewest
    fitting = [each for each in pool if each.n_split - least <= _MISFIT * each.n]
    return sorted(fitting, key=_likeliness)


def _likeliness(each: Candidate) -> tuple[bool, bool, int]:
    return not each.hint, not any(name in _KINDS for name in each.names), each.n_split


def likely_name(file: File) -> str | None:
    """Returns the name that the file probably needs, or None if several are as likely."""
    ranked = candidates(file)
    if not ranked:
        return None
    first = ranked[0]
    if first.hint:
        return first.name
    rivals = [each for each in ranked[1:] if _likeliness(each) <= _likeliness(first)]
    return None if rivals or first.n < _FEWEST else first.name


def _ignores_merges(name: str) -> bool:
    return "IGNORE" in PRE_ROWS[name][1]


def _every(file: File) -> list[Candidate]:
    if "candidates" not in file.memo:
        file.memo["candidates"] = list(_compare_names(file))
    measured: list[Candidate] = file.memo["candidates"]
    return measured


def _compare_names(file: File) -> Iterator[Candidate]:
    """Loads the vocabulary once for all names that split alike."""
    ids = _sample(file)
    default = file.load(pre="default").encode(PROBE, add_special=False)
    groups: dict[tuple[str, bool], list[str]] = {}
    for name, (chain, _) in PRE_ROWS.items():
        if name != "default":
            groups.setdefault((chain, _ignores_merges(name)), []).append(name)
    hinted = dict(_hints(file))
    for names in groups.values():
        try:
            tok = file.load(pre=names[0])
        except GGTokError:  # the name isn't valid for this vocabulary
            continue
        named = next((name for name in hinted if name in names), None)
        common = next((name for name in names if name in _KINDS), names[0])
        yield Candidate(
            named or common,
            tuple(names),
            _n_split(file, tok, ids),
            len(ids),
            "" if named is None else hinted[named],
            tok.encode(PROBE, add_special=False) == default,
        )


def _hints(file: File) -> Iterator[tuple[str, str]]:
    """Yields the name that a control token, else the model's name speaks for, and the reason."""
    architecture = file.values.get("general.architecture")
    for mark, name in _MARKS.items():
        if name == "deepseek-v3" and not str(architecture).startswith("b'deepseek"):
            continue  # models distilled from DeepSeek's have the token, too
        if file.tok.text_to_token(mark.decode()) is not None:
            yield name, f"the vocabulary has '{mark.decode()}'"
            return
    for key in _NAMES:
        value = file.values.get(key)
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
        plain = _SPELLING.sub("", text.lower())
        found = [name for name, word in _WORDS.items() if word in plain]
        if found and plain != "llama":  # the architecture of many models
            name = max(found, key=lambda name: len(_WORDS[name]))
            yield name, f"'{key}' is '{printable(text, 60)}'"
            return


def _others(file: File) -> str:
    """Describes which names would give other ids than "default"."""
    every = _every(file)
    same = [name for each in every if each.same for name in each.names]
    different = [name for each in every if not each.same for name in each.names]
    return (
        f"on a text of many kinds of words, {len(different)} names give other ids than 'default' "
        f"({_some(different)}) and {len(same)} the same ({_some(same)})"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "") or "none"
