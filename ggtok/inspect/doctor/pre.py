"""Checks the pre-tokenizer: missing, 'default' or unknown; compares it with the known ones."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.base.escape import shown
from ggtok.errors import GGTokError
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, File
from ggtok.native import pre_names

# Words, numbers, punctuation, white space and scripts that pre-tokenizers split differently.
PROBE = (
    "Hello, World! I'm sure they'LL pay $1234567.89 in 2024; see e-mail_x@y.org/a?b=1.\n\n"
    "\tdef f(x):\r\n        return x**2  # ok...   \n"
    "été ÑANDÚ straße Привет МИР مرحبا ١٢٣ नमस्ते สวัสดี 你好\uff0c世界 こんにちは 한국어 "
    "camelCaseWord HTTPServer 3.14e-10 100,000 \u00a0x  \n \U0001f600\U0001f44d\U0001f3fd <|x|>"
)
_LISTED = 8  # names


def is_own(file: File) -> bool:
    """Whether the pre-tokenizer is a model's own, not llama.cpp's default."""
    name = str(file.tok.pre) if file.unknown_pre is None else "default"
    return name != "default" or file.tok.model != "gpt2"


def check(file: File) -> Iterator[Finding]:
    if file.tok.vocab_type != "BPE" or file.tok.model != "gpt2":
        return  # other models ignore the key, or use it for other purposes
    name = file.values.get(GGML + "pre")
    if file.unknown_pre is not None:
        yield finding("GGT103", f"it is '{shown(name or b'', 60)}'; {_others(file)}")
    elif not name:
        yield finding("GGT101", f"there is no key '{GGML}pre'; {_others(file)}")
    elif name.split(b"\0")[0] == b"default":
        yield finding("GGT102", _others(file))


def _others(file: File) -> str:
    """A text about the names that would give other ids."""
    ours = file.tok.encode(PROBE, add_special=False)
    same: list[str] = []
    different: list[str] = []
    for name in pre_names():
        if name == "default":
            continue
        try:
            theirs = file.load(pre=name).encode(PROBE, add_special=False)
        except GGTokError:  # the name isn't valid for this vocabulary
            continue
        (same if theirs == ours else different).append(name)
    return (
        f"on a text of many kinds of words, {len(different)} names give other ids than 'default' "
        f"({_some(different)}) and {len(same)} the same ({_some(same)})"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "") or "none"
