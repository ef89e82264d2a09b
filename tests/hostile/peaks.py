"""The peaks of memory in SECURITY.md's table."""

from __future__ import annotations

NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 3, 4, 6  # types of tokens
REFUSED = 10  # maximum peak for a rejected file, as a multiple of the file's size
# The maximum peak for files that load, by fixture and type of its tokens, as a multiple of the
# file's size.
LOADED = {
    ("spm", NORMAL): 10,
    ("bpe-gpt2", NORMAL): 10,
    ("wpm", NORMAL): 50,
    ("rwkv", NORMAL): 50,
    ("ugm", NORMAL): 50,
    ("plamo2", NORMAL): 65,
    ("spm", CONTROL): 35,
    ("spm", USER_DEFINED): 60,
    ("ugm", USER_DEFINED): 100,
    ("plamo2", USER_DEFINED): 115,
}
