"""Memory use doesn't depend on the size of files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.files.corpus import documents, jsonl
from tests.support.vocabularies import fixture

# Encodes a file, then a file four times as large, and prints by how many MB the peak memory grew.
SCRIPT = """
import sys
import ggtok
from tests.support.memory import peak
tok = ggtok.load(sys.argv[1])
peaks = []
for path in sys.argv[2:]:
    separator = "|" if "cut" in path else None
    tok.encode_files(path, path + ".ids", separator=separator, threads=2)
    peaks.append(peak() / 1000)
print(peaks[1] - peaks[0], peaks[1])
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a peak of its own")
@pytest.mark.parametrize("kind", ["whole.txt", "cut.txt", "a.jsonl"])
def test_peak_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    texts = documents(1, 100, 2000)
    data = jsonl(texts) if kind.endswith("l") else "|".join(texts).encode() + b"|"
    names = []
    for size in (32, 128):
        path = tmp_path / f"{size}-{kind}"
        path.write_bytes(data * ((size << 20) // len(data)))
        names.append(str(path))
    command = [sys.executable, "-c", SCRIPT, str(fixture("bpe-llama3")), *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    grown, peak = map(float, done.stdout.split())
    assert grown < 60 and peak < 300, done.stdout
