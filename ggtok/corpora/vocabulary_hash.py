"""Identifies a vocabulary by a hash of its metadata."""

from __future__ import annotations

import hashlib
import os

from ggtok.base.files import read_regular
from ggtok.loading.loaded import Loaded
from ggtok.text.batch_encoding import encode_arrays


def metadata_of(loaded: Loaded) -> bytes | None:
    """Returns the bytes of the GGUF file's metadata, which :func:`ggtok.load` accepts instead of
    the file. Returns None if the vocabulary was loaded from mutable memory or a remote file."""
    kept, size = loaded.pickled, loaded.metadata_bytes()
    if isinstance(kept, bytes):
        return kept[:size]
    found = path(loaded)
    return None if found is None else read_regular(found, size)


def path(loaded: Loaded) -> str | None:
    """Returns the path of the file from which the vocabulary was loaded, or None if it was loaded
    from memory or a remote file."""
    kept: str | bytes | None = loaded.pickled
    found = loaded.found.path if loaded.found is not None else kept
    if found is None or isinstance(found, bytes):
        return None
    if "-of-" in found:
        from ggtok.sources.model_files import first_shard

        found = first_shard(found)
    return str(found)


def identity(loaded: Loaded) -> dict[str, object]:
    """Returns everything about the vocabulary that ids depend on, as JSON for journals and
    manifests."""
    data = metadata_of(loaded)
    return {
        "sha256": hashlib.sha256(data).hexdigest()
        if data is not None
        else _hash_by_probing(loaded),
        "pre": loaded.pre_option,
        "pre_patterns": list(loaded.patterns) if loaded.patterns else None,
        "overrides": loaded.overrides,
    }


def description(loaded: Loaded) -> dict[str, object]:
    """Returns the identity, with additional information for people."""
    name = loaded.path and os.path.basename(loaded.path)
    return {
        "name": loaded.metadata.get("general.name", name),
        "type": loaded.vocab_type,
        "pre_tokenizer": loaded.pre,
        "n_tokens": loaded.n_tokens,
        **identity(loaded),
    }


def _hash_by_probing(loaded: Loaded) -> str:
    """Returns a hash for a vocabulary whose file isn't available: a hash of its tokens, and of the
    ids to which their texts encode."""
    h = hashlib.sha256(repr((loaded.vocab_type, loaded.model, loaded.pre, loaded.flags)).encode())
    texts = []
    for id in range(loaded.n_tokens):
        text = loaded.text(id)
        texts.append(text)
        h.update(repr((text, loaded.score(id), int(loaded.attr(id)))).encode())
    ids, _ = encode_arrays(loaded, texts, (True, False, False), 1)
    h.update(ids.tobytes())
    return h.hexdigest()
