"""Every number in SECURITY.md is the code's, or is measured by a test."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

import ggtok
from ggtok.corpora import documents, streams, tables
from ggtok.server import connections
from ggtok.sources import connect, http, prefix
from ggtok.vocabularies.convert import originals
from tests.hostile.peaks import CONTROL, LOADED, NORMAL, REFUSED, USER_DEFINED

ROOT = Path(__file__).resolve().parents[2]
TEXT = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
KB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def c_number(path: str, name: str) -> int:
    """Returns a constant of the C library: a macro or an enumerator."""
    source = (ROOT / "cext" / path).read_text("utf-8")
    found = re.search(rf"\b{name}\b(?: =)? (?:\(\(uint64_t\)|\()?(\d+)\)?(?: << (\d+))?", source)
    assert found is not None, name
    return int(found[1]) << int(found[2] or 0)


# The page's words, the number in the code's unit, the code's number, and the test that reaches it.
NUMBERS = {
    "at most ten times the memory of its metadata": (10, REFUSED, "test_other_faults_are_found"),
    "| SPM, BPE | 10 |": (10, LOADED["bpe-gpt2", NORMAL], "test_loading_stays_within"),
    "| WPM, RWKV, UGM | 50 |": (50, LOADED["wpm", NORMAL], "test_loading_stays_within"),
    "longer than 256 bytes; 10 if there are none": (10, LOADED["spm", NORMAL], "test_loading"),
    "| PLaMo2, PLaMo3 | 65 |": (65, LOADED["plamo2", NORMAL], "test_loading_stays_within"),
    "35 more, 50 if they are user-defined": (
        (35, 60), (LOADED["spm", CONTROL], LOADED["spm", USER_DEFINED]), "test_loading_stays_within"
    ),
    "| 64 more, and 1 MB |": (64, 64, "test_tokens_of_other_characters"),
    "60 seconds per answer": (60, originals.SECONDS, "test_normalizers_take_bounded_time"),
    "of at most 32 MiB and, on Linux": (32 * MIB, originals.MAX_ANSWER, "test_limits_of_the"),
    "3 GiB of memory": (3 * GIB, originals.MEMORY, "test_normalizers_take_bounded_time"),
    "of 4 kB of input": (4 * KB, streams._IN, "test_peak_memory_does_not_grow"),
    "an `.xz` file can take 1 GiB": (GIB, documents.LIMIT, "test_zstd_windows"),
    "rows are processed 64 MiB at a time": (64 * MIB, tables._MOST, "test_a_long_value_in_many"),
    "`GGTOK_HTTP_TIMEOUT` seconds (30)": (30, http._TIMEOUT, "test_slow_servers_are_given_up"),
    "must average 64 kB a second": (64 * KB, connect.SLOWEST, "test_a_stalled_server_is_given_up"),
    "at most twice that limit plus n / 64 kB": (64 * KB, connect.SLOWEST, "test_bytes_one_by_one"),
    "a process stays below 2.3 GiB": (2.3, 2.3, "test_every_number_is_listed"),
    "and 256 MiB of unread answers": (256 * MIB, connections.MOST_UNREAD, "test_many_bytes_that"),
    "| a string or key in a file | 1 GiB |": (
        GIB, c_number("gguf/gguf.c", "MAX_STRING"), "test_lengths_beyond_the_limits"
    ),
    "| elements of an array in a file | 2^30 |": (
        2**30, c_number("gguf/gguf.c", "MAX_ELEMENTS"), "test_lengths_beyond_the_limits"
    ),
    "`precompiled_charsmap` | 32 times its bytes, and as many ids plus 2": (
        32, c_number("models/ugm/charsmap.h", "CHARSMAP_MOST"), "test_other_faults_are_found"
    ),
    "`bytes` | 256 MiB (`GGTOK_METADATA_LIMIT`)": (
        256 * MIB, prefix.LIMIT, "test_metadata_beyond_the_limit"
    ),
    "redirects of one request | 10": (10, http._REDIRECTS, "test_endless_redirects"),
}  # fmt: skip
# Numbers that aren't a limit that a test can reach: sizes of 32-bit numbers and of other programs,
# times to publish.
OTHERS = (
    "| all token texts together | 4 GiB |",
    "one word of a text (BPE) | 4 GiB |",
    "whole pages, which can be 2 GiB each",
    "(SHA-256)",
    "UTF-8",
    "BPE with tokens that are not GPT-2's characters",
)


@pytest.mark.parametrize("words", NUMBERS)
def test_numbers_are_the_codes(words: str) -> None:
    number, code, test = NUMBERS[words]
    assert words in TEXT
    assert number == code
    folders = ("hostile", "sources", "making", "files", "server", "properties", "reference", "c")
    files = [path for folder in folders for path in (ROOT / "tests" / folder).rglob("*.py")]
    assert any(f"def {test}" in path.read_text("utf-8") for path in files), test


@pytest.mark.parametrize(
    ("limit", "start", "beyond"),
    [
        ("MAX_STRING", struct.pack("<I", 8), "a string is longer than 1 GiB"),
        ("MAX_ELEMENTS", struct.pack("<II", 9, 0), r"an array of more than 2\^30 elements"),
    ],
)
def test_lengths_beyond_the_limits(limit: str, start: bytes, beyond: str) -> None:
    most = c_number("gguf/gguf.c", limit)
    head = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + start
    for length, message in (most, "the file is cut off"), (most + 1, beyond):
        with pytest.raises(ggtok.GGUFError, match=message):
            ggtok.load(head + struct.pack("<Q", length) + bytes(64))


def test_every_number_is_listed() -> None:
    left = TEXT
    for words in (*NUMBERS, *OTHERS):
        assert words in TEXT, words
        left = left.replace(words, "")
    assert not re.findall(r"(?<![.\w-])\d[\d,.^]*", left), left
