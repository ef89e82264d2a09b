"""Finished outputs: reads their manifests, verifies them, and decides which files may be
replaced."""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ggtok.base import files
from ggtok.corpora import journal
from ggtok.corpora.id_formats import FORMATS
from ggtok.corpora.summary import RunCounts
from ggtok.errors import FileError, InvalidValueError, file_error, not_found

_MOST = 1 << 30  # the maximum size of a manifest, in bytes; a manifest lists every source


class Written(NamedTuple):
    """A manifest's entry for a file: the size of the file, the size of its header, and the CRC-32
    of the header and of the rest."""

    size: int
    header: int
    header_crc: int
    crc: int


class Manifest(NamedTuple):
    """The contents of a manifest.

    Attributes:
        plan: the run's plan, including the sources, in the same form as in a journal.
        counts: the counts for the whole output.
        files: the entries of the files, by file name.
    """

    plan: dict[str, Any]
    counts: RunCounts
    files: dict[str, Written]


def existing_files(out: str, paths: Iterable[str], inputs: Sequence[str]) -> list[str]:
    """Returns the files of an output that already exist.

    Raises:
        FileError: a file isn't regular or writable, or its folder doesn't exist.
        InvalidValueError: a file is also one of `inputs`.
    """
    found = []
    for path in paths:
        if path != out and os.path.islink(path):  # only `out`, the caller's own path, may be a link
            raise file_error(errno.ELOOP, "a symbolic link, which isn't followed", path)
        status = files.status_of(path)
        if status is None:
            continue
        files.check_regular(status, path)
        files.check_input(path, inputs)
        if not os.access(path, os.W_OK):
            raise file_error(errno.EACCES, os.strerror(errno.EACCES), path)
        found.append(path)
    return found


def check_own(manifest: str, found: Iterable[str], partial: Iterable[str]) -> None:
    """Refuses to replace files that weren't written by a run for the same output.

    Args:
        manifest: the path of the output's manifest.
        found: the output's files that exist.
        partial: existing unfinished files that have no journal.
    """
    known = read_manifest(manifest)
    files = {} if known is None else known.files
    for path in found:
        size = os.stat(path).st_size
        written = files.get(_name(path))
        is_known = known is not None if path == manifest else written and written.size == size
        if size and not is_known:
            raise not_ours(path)
    for path in partial:
        raise not_ours(path)


def _name(path: str) -> str:
    return os.path.basename(path)


def not_ours(path: str) -> InvalidValueError:
    return InvalidValueError(
        f"{path}: exists, and has no manifest of encode_files; force=True (--force) overwrites it"
    )


def read_manifest(path: str) -> Manifest | None:
    """Reads a manifest; returns None if the file doesn't exist or isn't a manifest."""
    try:
        with files.open_regular(path, follow=False) as file:
            manifest = json.loads(files.read_up_to(file, _MOST))
        plan = {
            "ggtok": manifest["versions"]["ggtok"],
            "model": manifest["model"],
            "options": manifest["options"],
            "sources": [
                [s["path"], s["bytes"], s["mtime_ns"], s["sample"]] for s in manifest["sources"]
            ],
        }
        journal.check_plan(plan)
        journal.check_sources(plan["sources"])
        counts = journal.counts(manifest["counts"])
        written = {_str(file["name"]): _parse_written(file) for file in manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return Manifest(plan, counts, written)


def _parse_written(file: dict[str, Any]) -> Written:
    sizes = journal.check_number(file["bytes"]), journal.check_number(file["header_bytes"])
    return Written(*sizes, int(file["header_crc32"], 16), int(file["crc32"], 16))


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value


_BLOCK = 4 << 20  # bytes to read at a time


def verify(out: str) -> tuple[Manifest, list[str]]:
    """Verifies an output; returns its manifest, and a description of each damaged file.

    Raises:
        FileError: there is no manifest, or ``encode_files`` didn't write it.
    """
    path = out + ".manifest.json"
    if not os.path.lexists(path):
        raise not_found(f"{path}: doesn't exist, so the output isn't complete")
    manifest = read_manifest(path)
    if manifest is None or manifest.plan["options"].get("format") not in list(FORMATS):
        raise FileError(f"{path}: is not a manifest of encode_files")
    return manifest, faults(out, manifest)


def faults(out: str, manifest: Manifest) -> list[str]:
    """Describes each damaged file of an output. The files' names are derived from the format, since
    the manifest isn't trusted."""
    found = []
    options = manifest.plan["options"]
    chat = options.get("chat")
    masked = isinstance(chat, dict) and chat.get("mask") is not False
    for path in FORMATS[options["format"]].paths(out, masked):
        written = manifest.files.get(os.path.basename(path))
        fault = "isn't in the manifest" if written is None else _fault(path, written, path == out)
        if fault is not None:
            found.append(f"{path}: {fault}")
    return found


def _fault(path: str, expected: Written, follow: bool) -> str | None:
    try:
        with files.open_regular(path, follow=follow) as file:
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
        return "has changed (its checksum differs)"
    return None
