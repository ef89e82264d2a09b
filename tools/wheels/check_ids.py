"""check_ids.py SITE FIXTURES: checks that the ggtok installed in SITE returns llama.cpp's ids.

This script runs with any Python on any platform, without the repository. SITE is the folder to
which pip installed the wheel and its dependencies, FIXTURES the repository's folder `fixtures`. For
each vocabulary, the script compares ids and decoded bytes with llama.cpp's recorded results
(fixtures/golden). It encodes the texts one at a time, and as a batch on two threads.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path
from typing import Any


def from_json(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


def check(ggtok: Any, vocabulary: Path, golden: dict[str, Any]) -> int:
    """Compares one vocabulary and returns the number of texts."""
    tok = ggtok.load(vocabulary)
    if tok.n_tokens != golden["n_tokens"]:
        raise SystemExit(f"{vocabulary.stem}: {tok.n_tokens} tokens")
    prefix, suffix = golden["prefix"], golden["suffix"]
    texts = [from_json(case["text"]) for case in golden["cases"]]
    for parse_special in (False, True):
        key = "parsed" if parse_special else "ids"
        expected = [prefix + case.get(key, case["ids"]) + suffix for case in golden["cases"]]
        found = [tok.encode(text, parse_special=parse_special) for text in texts]
        batch = tok.encode_batch(texts, parse_special=parse_special, threads=2)
        for text, want, ids, in_batch in zip(texts, expected, found, batch, strict=True):
            if not want == ids == in_batch:
                raise SystemExit(f"{vocabulary.stem}: {text!r} is {want}, not {ids} or {in_batch}")
    for case, ids in zip(golden["cases"], expected, strict=True):
        for decoded, pairs in case["decoded"].items():
            if 1 in pairs and tok.decode_bytes(ids) != from_json(decoded):
                raise SystemExit(f"{vocabulary.stem}: {ids} is not decoded to {decoded!r}")
    return len(texts)


def main() -> None:
    site, fixtures = map(Path, sys.argv[1:])
    sys.path.insert(0, str(site))
    import ggtok

    if not Path(ggtok.__file__).is_relative_to(site):
        raise SystemExit(f"ggtok came from {ggtok.__file__}, not from {site}")
    n_texts = 0
    vocabularies = sorted((fixtures / "gguf").glob("*.gguf"))
    for vocabulary in vocabularies:
        golden = json.loads((fixtures / "golden" / f"{vocabulary.stem}.json").read_text("utf-8"))
        n_texts += check(ggtok, vocabulary, golden)
    # Python's module `platform` doesn't work under wine.
    python = f"{sys.implementation.name} {sys.version.split()[0]}, {sysconfig.get_platform()}"
    print(f"{len(vocabularies)} vocabularies, {n_texts} texts equal; {python}")


if __name__ == "__main__":
    main()
