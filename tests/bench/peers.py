"""How to load and call each tokenizer, one row each.

Calls are expressions that are compiled into the timed loop, as in timeit, to avoid a wrapper's
cost. They use the variables `tok`, `text` (a str), `texts` (a list of str) and `threads`. Each
tokenizer is called in the fastest way that it documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# The forms of a call: its input, and the type of its result. If no type is named, the result has
# the type that the tokenizer returns fastest: a NumPy array, bytes, its own type, or a list.
ONE, ONE_LIST = "one string", "one string, list"
OFFSETS = "one string, list with offsets"
DOCS, DOCS_LISTS = "documents", "documents, lists"


@dataclass(frozen=True)
class Peer:
    name: str
    # The name on PyPI, and the module to import.
    package: str
    module: str
    # The field of convert.Files with the path of the file that the tokenizer loads.
    file: str
    calls: dict[str, str]
    # The call that parses special tokens, if it differs from the call for one string.
    special: str = ""
    # The call that also returns offsets, after the ids; "" if there is none.
    offsets: str = ""


def _row(name: str, file: str, calls: tuple[str, str, str, str], **more: Any) -> Peer:
    more.setdefault("package", name)
    more.setdefault("module", name)
    forms = (ONE, ONE_LIST, DOCS, DOCS_LISTS)
    return Peer(name=name, file=file, calls=dict(zip(forms, calls, strict=True)), **more)


_GGTOK = "add_special=False"

PEERS = {
    peer.name: peer
    for peer in (
        _row(
            "ggtok",
            "gguf",
            (
                f"tok.encode_array(text, {_GGTOK})",
                f"tok.encode(text, {_GGTOK})",
                f"tok.encode_batch_arrays(texts, {_GGTOK}, threads=threads)",
                f"tok.encode_batch(texts, {_GGTOK}, threads=threads)",
            ),
            special=f"tok.encode_array(text, {_GGTOK}, parse_special=True)",
            offsets=f"tok.encode_with_offsets(text, {_GGTOK})",
        ),
        _row(
            "gigatoken",
            "json",
            (
                "tok.encode(text)",
                "tok.encode(text).tolist()",
                "tok.encode_batch(texts, parallel=threads > 1)",
                "tok.encode_batch_list(texts, parallel=threads > 1)",
            ),
        ),
        _row(
            "fastokens",
            "json",
            (
                "tok.encode(text)",
                "tok.encode(text).ids",
                "tok.encode_batch_flat(texts)",
                "[encoding.ids for encoding in tok.encode_batch(texts)]",
            ),
        ),
        _row(
            "tokenizers",
            "json",
            (
                "tok.encode(text)",
                "tok.encode(text).ids",
                "tok.encode_batch(texts)",
                "[encoding.ids for encoding in tok.encode_batch(texts)]",
            ),
            offsets="((made := tok.encode(text)).ids, made.offsets)",
        ),
        _row(
            "snaptokens",
            "json",
            (
                "tok.encode(text)",
                "tok.encode(text).ids",
                "tok.encode_batch_flat(texts)",
                "[encoding.ids for encoding in tok.encode_batch(texts)]",
            ),
        ),
        _row(
            "splintr",
            "json",
            (
                "tok.encode_flat(text)",
                "tok.encode_raw(text)",
                "tok.encode_batch_flat(texts)",
                "tok.encode_batch(texts)",
            ),
            package="splintr-rs",
            special="tok.encode_with_special(text)",
        ),
        _row(
            "tiktoken",
            "tiktoken",
            (
                "tok.encode_ordinary(text)",
                "tok.encode_ordinary(text)",
                "tok.encode_ordinary_batch(texts, num_threads=threads)",
                "tok.encode_ordinary_batch(texts, num_threads=threads)",
            ),
            special="tok.encode(text, allowed_special='all')",
            offsets="(ids := tok.encode_ordinary(text), tok.decode_with_offsets(ids)[1])",
        ),
        _row(
            "riptoken",
            "tiktoken",
            (
                "tok.encode_ordinary(text)",
                "tok.encode_ordinary(text)",
                "tok.encode_ordinary_batch(texts)",
                "tok.encode_ordinary_batch(texts)",
            ),
        ),
        _row(
            "sentencepiece",
            "sentencepiece",
            (
                "tok.encode(text)",
                "tok.encode(text)",
                "tok.encode(texts, num_threads=threads)",
                "tok.encode(texts, num_threads=threads)",
            ),
        ),
        _row(
            "llama.cpp",
            "gguf",
            (
                "tok.encode(text)",
                "tok.encode_list(text)",
                "[tok.encode_list(text) for text in texts]",
                "[tok.encode_list(text) for text in texts]",
            ),
            package="xllamacpp",
            module="tests.support.llamacpp",
            special="tok.encode(text, True)",
        ),
    )
}
OURS, REFERENCE = "ggtok", "llama.cpp"
