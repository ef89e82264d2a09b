"""Whether a finished output is what its manifest says."""

from __future__ import annotations

import os
import zlib

from ggtok.base.files import open_regular
from ggtok.corpora import finished
from ggtok.corpora.finished import Manifest, Written
from ggtok.corpora.formats import FORMATS
from ggtok.errors import FileError, not_found

_BLOCK = 4 << 20  # bytes


def verify(out: str) -> tuple[Manifest, list[str]]:
    """An output's manifest, and what is wrong with its files, each by its name.

    Raises:
        FileError: there is no manifest, or it isn't one of ``encode_files``.
    """
    path = out + ".manifest.json"
    if not os.path.lexists(path):
        raise not_found(f"{path}: doesn't exist, so the output isn't complete")
    manifest = finished.read(path)
    if manifest is None or manifest.plan["options"].get("format") not in list(FORMATS):
        raise FileError(f"{path}: is not a manifest of encode_files")
    return manifest, faults(out, manifest)


def faults(out: str, manifest: Manifest) -> list[str]:
    """What is wrong with an output's files, whose names its format decides, not the manifest."""
    found = []
    for path in FORMATS[manifest.plan["options"]["format"]].paths(out):
        written = manifest.files.get(os.path.basename(path))
        fault = "isn't in the manifest" if written is None else _fault(path, written, path == out)
        if fault is not None:
            found.append(f"{path}: {fault}")
    return found


def _fault(path: str, expected: Written, follow: bool) -> str | None:
    try:
        with open_regular(path, follow=follow) as file:
            size = os.fstat(file.fileno()).st_size
            if size != expected.size:
                return f"has {size} bytes, not the {expected.size} that were written"
            header = zlib.crc32(file.read(expected.header))
            crc = 0
            while block := file.read(_BLOCK):
                crc = zlib.crc32(block, crc)
    except FileNotFoundError:
        return "is missing"
    except OSError as e:
        return f"can't be read: {e.strerror}"
    if (header, crc) != (expected.header_crc, expected.crc):
        return "doesn't hold what was written (its checksum differs)"
    return None
