"""Creates models with weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.vocabularies import fixture


def with_tensors(path: Path, name: str = "bpe-llama3", *, alignment: int | None = None) -> Path:
    """Writes a fixture's metadata together with two tensors."""
    import gguf

    reader = gguf.GGUFReader(fixture(name))
    writer = gguf.GGUFWriter(str(path), "llama")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub)
    rng = np.random.default_rng(1)
    writer.add_tensor("a.weight", rng.random((7, 32), np.float32))
    writer.add_tensor("b.weight", rng.random((100,), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
