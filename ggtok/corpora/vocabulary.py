"""What tells one vocabulary from another: its metadata, and a hash of it."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from ggtok.base.inputs import read_regular


def metadata(tok: Any) -> bytes | None:
    """The bytes of the GGUF file's metadata: :func:`ggtok.load` takes them in place of the file.
    None if they aren't here: it was loaded from memory that may change, or by a name."""
    kept, size = tok._pickled, tok._native.metadata_bytes()
    if isinstance(kept, bytes):
        return kept[:size]
    found = path(tok)
    return None if found is None else read_regular(found, size)


def path(tok: Any) -> str | None:
    """The file that a tokenizer was loaded from; None: it was loaded from memory."""
    kept: str | bytes | None = tok._pickled
    found = tok._source.path if tok._source is not None else kept
    if found is None or isinstance(found, bytes):
        return None
    if "-of-" in found:
        from ggtok.sources.split import first_shard

        found = first_shard(found)
    return str(found)


def identity(tok: Any) -> dict[str, object]:
    """What ids depend on, for journals and manifests, in terms of JSON."""
    data = metadata(tok)
    return {
        "sha256": hashlib.sha256(data).hexdigest() if data is not None else _probed(tok),
        "pre": tok._pre,
        "pre_patterns": list(tok._patterns) if tok._patterns else None,
        "overrides": tok._overrides,
    }


def description(tok: Any) -> dict[str, object]:
    """The same with what people want to know."""
    name = tok._path and os.path.basename(tok._path)
    return {
        "name": tok.metadata.get("general.name", name),
        "type": tok.vocab_type,
        "pre_tokenizer": tok.pre,
        "n_tokens": tok.n_tokens,
        **identity(tok),
    }


def _probed(tok: Any) -> str:
    """A hash of a vocabulary whose file isn't at hand: of its tokens, and of the ids that it gives
    their texts."""
    h = hashlib.sha256(repr((tok.vocab_type, tok.model, tok.pre, tok._flags)).encode())
    texts = []
    for id in range(tok.n_tokens):
        text = tok.token_text(id)
        texts.append(text)
        h.update(repr((text, tok.token_score(id), int(tok.token_attr(id)))).encode())
    h.update(tok.encode_batch_arrays(texts, threads=1)[0])
    return h.hexdigest()
