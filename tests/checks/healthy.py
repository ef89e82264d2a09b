"""Builds two small files: one without findings, and one with three faults."""

from __future__ import annotations

from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture

GGML = "tokenizer.ggml."
CONTROL, NORMAL = 3, 1
# All programs render this template alike, even if a message's content is null or a list of parts.
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% set parts = [m.content] if m.content is string else m.content or [] %}"
    "{% for p in parts %}{{ '' if loop.first else '\n' }}"
    "{{ p if p is string else p.text }}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def base() -> GGUF:
    """Builds a vocabulary without findings, with a template and its control tokens."""
    gguf = GGUF.read(fixture("bpe-jina"))
    add_tokens(gguf, ["<|im_start|>", "<|im_end|>"], CONTROL)
    gguf.set(GGML + "eos_token_id", token(gguf, "<|im_end|>"), "u32")
    gguf.set(GGML + "add_bos_token", False)
    gguf.set("tokenizer.chat_template", CHAT)
    gguf.set("general.architecture", "jina-bert-v2")
    return gguf


def token(gguf: GGUF, text: str) -> int:
    return gguf.strings(GGML + "tokens").index(text.encode())


def faulty() -> GGUF:
    """Builds a vocabulary with an end of turn that isn't an EOG token, a wrong type, and a token
    that no text produces."""
    gguf = base()
    add_tokens(gguf, ["<|done|>", "qzqzqz"], [CONTROL, NORMAL])
    types = gguf.array(GGML + "token_type")
    types[token(gguf, "<|im_end|>")] = NORMAL
    gguf.set(GGML + "token_type", types, "i32")
    gguf.set("tokenizer.chat_template", CHAT.replace("<|im_end|>", "<|done|>"))
    return gguf
