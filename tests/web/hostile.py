"""What a stranger may put into a vocabulary."""

from __future__ import annotations

from pathlib import Path

from gguf import GGUFWriter

MARKUP = (
    "<img src=x onerror=window.ran=1>",
    "<script>window.ran=1</script>",
    "</textarea><svg onload=window.ran=1>",
    "javascript:window.ran=1",
    "${window.ran=1}",
    "&lt;b&gt;",
    "\u202egnp.exe\u2066",
    "\u200b",
    "\x00",
)


def vocabulary(path: Path, tokens: list[bytes], name: str = "hostile") -> Path:
    """Writes an SPM vocabulary with these user-defined tokens after the byte tokens."""
    writer = GGUFWriter(path, "llama")
    every = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % i for i in range(256)), *tokens]
    writer.add_name(name)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(every)
    writer.add_token_scores([0.0] * 259 + [-float(i) for i in range(len(tokens))])
    writer.add_token_types([2, 3, 3, *[6] * 256, *[4] * len(tokens)])
    writer.add_chat_template("<img src=x onerror=window.ran=1>{{ messages[0].content }}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path
