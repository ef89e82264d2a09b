"""The corpus of faults: what goes wrong in conversions, fine-tunes and uploads, applied to real
vocabularies with their templates, and to fixtures.

Each row has the code under which `ggtok doctor` reports the fault, the codes of other findings that
it causes, and whether `ggtok edit --fix` corrects it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixtures.build import CHAT_TEMPLATE
from tests.chat.answers import templates
from tests.chat.llamaserver import write_model
from tests.checks.healthy import CHAT, CONTROL, GGML, NORMAL, base, token
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture, real

USER_DEFINED, UNUSED = 4, 5
TEMPLATE = "tokenizer.chat_template"
TYPES, MERGES, SCORES, TOKENS = (
    GGML + name for name in ("token_type", "merges", "scores", "tokens")
)
Fault = Callable[[GGUF], None]
PHI3 = (
    "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)
OWN_END_CHAT = CHAT.replace("<|im_end|>", "<|done|>")


# ---- originals ----


def _fixture(name: str, template: str | None = None) -> Callable[[], GGUF]:
    def make() -> GGUF:
        gguf = GGUF.read(fixture(name))
        if template is not None:
            gguf.set(TEMPLATE, template, "str")
        return gguf

    return make


def _real(name: str, template: str | None = None) -> Callable[[], GGUF]:
    def make() -> GGUF:
        gguf = GGUF.read(real(name))
        if template is not None:
            gguf.set(TEMPLATE, templates()[template], "str")
        return gguf

    return make


def _own_end() -> GGUF:
    """Builds a chat model with an end of turn that llama.cpp doesn't recognize by its text."""
    gguf = base()
    add_tokens(gguf, ["<|done|>", "<|begin|>"], CONTROL)
    gguf.set(GGML + "eos_token_id", token(gguf, "<|done|>"), "u32")
    gguf.set(GGML + "bos_token_id", token(gguf, "<|begin|>"), "u32")
    gguf.set(GGML + "add_eos_token", False)
    gguf.set(TEMPLATE, OWN_END_CHAT, "str")
    return gguf


def _own_end_only() -> GGUF:
    """Builds the same model without <|im_end|>, an end of turn that llama.cpp does recognize."""
    gguf = _own_end()
    words = gguf.strings(TOKENS)
    words[token(gguf, "<|im_end|>")] = b"<|other|>"
    gguf.set(TOKENS, words, "str")
    return gguf


ORIGINALS: dict[str, Callable[[], GGUF]] = {
    "ChatML": base,
    "own end of turn": _own_end,
    "own end of turn, no known one": _own_end_only,
    "Llama 3": _fixture("bpe-llama3", CHAT_TEMPLATE),
    "Phi-3": _fixture("spm-phi3", PHI3),
    "gpt-2": _real("gpt-2"),
    "llama-spm": _real("llama-spm"),
    "phi-3": _real("phi-3"),
    "llama-bpe": _real("llama-bpe", "meta-llama-Llama-3.1-8B-Instruct"),
    "qwen2": _real("qwen2"),
    "deepseek-llm": _real("deepseek-llm"),
    "command-r": _real("command-r"),
    "gemma-4": _real("gemma-4"),
}
REAL_ONES = ("phi-3",)  # real, but small enough for plain pytest


# ---- faults ----


def set_key(key: str, value: object, kind: str | None = None) -> Fault:
    return lambda gguf: gguf.set(key, value, kind)


def remove(*keys: str) -> Fault:
    return lambda gguf: gguf.remove(*keys)


def special(name: str, text: str | int) -> Fault:
    """Sets a special token's key to an id, or to the id of the token with a text."""

    def fault(gguf: GGUF) -> None:
        id = text if isinstance(text, int) else token(gguf, text)
        gguf.set(f"{GGML}{name}_token_id", id, "u32")

    return fault


def typed(type: int, *texts: str) -> Fault:
    def fault(gguf: GGUF) -> None:
        types = gguf.array(TYPES)
        for text in texts:
            types[token(gguf, text)] = type
        gguf.set(TYPES, types, gguf.type(TYPES))

    return fault


def byte_types(gguf: GGUF) -> None:
    types = gguf.array(TYPES)
    for id, text in enumerate(gguf.strings(TOKENS)):
        if text.startswith(b"<0x"):
            types[id] = NORMAL
    gguf.set(TYPES, types, gguf.type(TYPES))


def merges(change: Callable[[list[bytes]], list[Any]]) -> Fault:
    return lambda gguf: gguf.set(MERGES, change(gguf.strings(MERGES)), "str")


def scores(change: Callable[[list[Any]], list[Any]]) -> Fault:
    return lambda gguf: gguf.set(SCORES, change(gguf.array(SCORES)), "f32")


def shuffled(items: list[Any]) -> list[Any]:
    items = list(items)
    random.Random(1).shuffle(items)
    return items


def without_last(n: int) -> Fault:
    """Removes the last n tokens, as if a conversion had ignored the added tokens."""

    def fault(gguf: GGUF) -> None:
        for key in (TOKENS, TYPES, SCORES):
            if key in gguf:
                gguf.set(key, gguf.array(key)[:-n], gguf.type(key))

    return fault


def all_of(*faults: Fault) -> Fault:
    def fault(gguf: GGUF) -> None:
        for each in faults:
            each(gguf)

    return fault


def renamed(old: str, new: bytes) -> Fault:
    def fault(gguf: GGUF) -> None:
        words = gguf.strings(TOKENS)
        words[token(gguf, old)] = new
        gguf.set(TOKENS, words, "str")

    return fault


@dataclass(frozen=True)
class Row:
    """A fault, put into one of the originals.

    Attributes:
        original: one of ORIGINALS.
        fault: the function that puts the fault into the original.
        code: the finding's code.
        also: codes of other findings that the fault causes.
        fixed: whether ``--fix all`` corrects it.
        lost: codes of the original's findings that the fault hides.
    """

    original: str
    fault: Fault
    code: str
    also: tuple[str, ...] = ()
    fixed: bool = False
    lost: tuple[str, ...] = ()


OF_LLAMA3 = CHAT_TEMPLATE.replace("{{ bos_token }}", "")
ONLY_LLAMA = CHAT.replace("in parts", "in parts if true else []")
ONLY_JINJA2 = "{{ '%s' % messages[0].role }}" + CHAT

CORPUS: dict[str, Row] = {
    # the pre-tokenizer
    "no pre": Row("ChatML", remove(GGML + "pre"), "GGT101"),
    "no pre, gpt-2": Row("gpt-2", remove(GGML + "pre"), "GGT101"),
    "pre of a newer converter": Row("ChatML", set_key(GGML + "pre", "tomorrow"), "GGT103"),
    "pre is default": Row("ChatML", set_key(GGML + "pre", "default"), "GGT102"),
    "gpt-2 with Qwen's pre": Row("gpt-2", set_key(GGML + "pre", "qwen2"), "GGT104"),
    "gpt-2 with DeepSeek Coder's pre": Row(
        "gpt-2", set_key(GGML + "pre", "deepseek-coder"), "GGT104"
    ),
    # Llama 3's pre also turns on BOS, and encodes a word that is a token as that token, even if no
    # merges produce it. The other findings assume the right pre, so they don't report that.
    "Llama 3 with GPT-2's pre": Row("llama-bpe", set_key(GGML + "pre", "gpt-2"), "GGT104"),
    "Llama 3 with DeepSeek's pre": Row(
        "llama-bpe", set_key(GGML + "pre", "deepseek-llm"), "GGT104"
    ),
    "Qwen with GPT-2's pre": Row("qwen2", set_key(GGML + "pre", "gpt-2"), "GGT104"),
    "DeepSeek with BLOOM's pre": Row("deepseek-llm", set_key(GGML + "pre", "bloom"), "GGT104"),
    # end of generation
    "EOS is BOS": Row("own end of turn", special("eos", "<|begin|>"), "GGT204", fixed=True),
    "EOS is the start of a turn": Row(
        "own end of turn", special("eos", "<|im_start|>"), "GGT204", fixed=True
    ),
    "EOS lost": Row("own end of turn", remove(GGML + "eos_token_id"), "GGT204", ("GGT303",), True),
    "EOS lost, and the default is a word": Row(
        "own end of turn, no known one", remove(GGML + "eos_token_id"), "GGT303", ("GGT204",), True
    ),
    "EOS is a word": Row("own end of turn", special("eos", "nd"), "GGT305", ("GGT204",), True),
    "EOT is a word": Row("ChatML", special("eot", "nd"), "GGT305", fixed=True),
    "EOM is a word": Row("Phi-3", special("eom", "a"), "GGT305", fixed=True),
    "EOS beyond the vocabulary": Row(
        "own end of turn", special("eos", 99999), "GGT302", ("GGT204",), True
    ),
    "EOT beyond the vocabulary": Row("ChatML", special("eot", 99999), "GGT302", fixed=True),
    "padding beyond the vocabulary": Row("Phi-3", special("padding", 99999), "GGT302", fixed=True),
    "EOS of another vocabulary": Row("llama-spm", special("eos", 151645), "GGT302", fixed=True),
    # BOS
    "BOS twice": Row(
        "own end of turn",
        all_of(
            set_key(GGML + "add_bos_token", True),
            set_key(TEMPLATE, "{{ bos_token }}" + OWN_END_CHAT),
        ),
        "GGT201",
    ),
    "BOS that the template lacks": Row(
        "own end of turn", set_key(GGML + "add_bos_token", True), "GGT202"
    ),
    "BOS off": Row(
        "Llama 3", set_key(GGML + "add_bos_token", False, "bool"), "GGT203", lost=("GGT201",)
    ),
    # the template
    "a ChatML model with Llama 3's template": Row(
        "ChatML", set_key(TEMPLATE, OF_LLAMA3), "GGT205", ("GGT206", "GGT212")
    ),
    "Llama 3 with a ChatML template": Row(
        "Llama 3",
        set_key(TEMPLATE, CHAT),
        "GGT205",
        ("GGT202", "GGT206"),
        lost=("GGT201", "GGT212"),
    ),
    "Phi-3 with Gemma's template": Row(
        "phi-3",
        lambda gguf: gguf.set(TEMPLATE, templates()["google-gemma-2-2b-it"], "str"),
        "GGT205",
        ("GGT206",),
        lost=("GGT211",),
    ),
    "a template that only llama.cpp renders": Row(
        "ChatML", set_key(TEMPLATE, ONLY_LLAMA), "GGT208"
    ),
    "a template that only transformers renders": Row(
        "ChatML", set_key(TEMPLATE, ONLY_JINJA2), "GGT207"
    ),
    "a template that they render differently": Row(
        "ChatML", set_key(TEMPLATE, CHAT.replace("{{ m.role }}", "{{ [m.role, true] }}")), "GGT209"
    ),
    "a template cut off": Row("ChatML", set_key(TEMPLATE, CHAT[:-20]), "GGT207"),
    # types
    "turns of type NORMAL": Row(
        "Llama 3", typed(NORMAL, "<|start_header_id|>"), "GGT304", fixed=True
    ),
    "all turns of type NORMAL, Phi-3": Row(
        "Phi-3", typed(NORMAL, "<|user|>", "<|assistant|>", "<|system|>"), "GGT304", fixed=True
    ),
    "the end of turn of type NORMAL": Row(
        "own end of turn", typed(NORMAL, "<|done|>"), "GGT304", fixed=True
    ),
    "a known end of type NORMAL": Row("ChatML", typed(NORMAL, "<|im_end|>"), "GGT301", fixed=True),
    "turns of type NORMAL, real": Row(
        "phi-3", typed(NORMAL, "<|user|>", "<|assistant|>"), "GGT304", fixed=True
    ),
    "byte tokens of type NORMAL": Row("llama-spm", byte_types, "GGT306", fixed=True),
    "byte tokens of type NORMAL, Phi-3": Row("Phi-3", byte_types, "GGT306", fixed=True),
    "reserved tokens of type NORMAL": Row(
        "ChatML", lambda gguf: add_tokens(gguf, ["<reserved_0>", "[unused1]"], NORMAL), "GGT403"
    ),
    # merges and scores
    "merges cut off": Row("gpt-2", merges(lambda m: m[: len(m) // 2]), "GGT401", ("GGT403",)),
    "no merges": Row("ChatML", merges(lambda m: m[:1]), "GGT401"),
    "merges shuffled": Row("gpt-2", merges(shuffled), "GGT401", ("GGT403", "GGT503")),
    "merges without a space": Row(
        "ChatML", merges(lambda m: [*m[:50], b"broken", *m[50:], b"x"]), "GGT501", fixed=True
    ),
    "merges written twice": Row("gpt-2", merges(lambda m: [*m, *m[:700]]), "GGT502", fixed=True),
    "merges of another vocabulary": Row("ChatML", merges(lambda m: [*m, b"qqq zzz"]), "GGT503"),
    "scores shuffled": Row("llama-spm", scores(shuffled), "GGT401"),
    "scores all zero": Row("llama-spm", scores(lambda s: [0.0] * len(s)), "GGT401"),
    # tokens
    "added tokens lost": Row(
        "ChatML",
        all_of(without_last(2), remove(GGML + "eos_token_id")),
        "GGT205",
        ("GGT206", "GGT303"),
    ),
    "a token lost whose merge is left": Row(
        "ChatML", renamed("nd", b"\xc4\xa0qj"), "GGT504", ("GGT401",)
    ),
    "texts in another encoding": Row(
        "ChatML", renamed("nd", "ñ".encode("latin-1")), "GGT406", ("GGT504",)
    ),
    "an empty text": Row("ChatML", renamed("nd", b""), "GGT405", ("GGT504",)),
    "a text twice": Row("ChatML", renamed("nd", b"la"), "GGT001"),
    "the key vocab_size of the base model": Row(
        "ChatML", set_key("jina-bert-v2.vocab_size", 7, "u32"), "GGT602", fixed=True
    ),
}


def with_tensors(gguf: GGUF, folder: Path) -> Path:
    """Writes a model with one layer of random weights for a vocabulary, including its template."""
    import numpy as np
    from gguf import GGUFReader

    template = {TEMPLATE: gguf.get(TEMPLATE)} if TEMPLATE in gguf else {}
    vocabulary = gguf.write(folder / "vocabulary.gguf")
    path = write_model(vocabulary, folder / "model.gguf", template)
    rng = np.random.default_rng(3)
    for tensor in GGUFReader(path, "r+").tensors:
        tensor.data[:] = rng.normal(0, 1, tensor.data.shape).astype(tensor.data.dtype)
    return path
