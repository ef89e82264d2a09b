"""python -m tests.making.newer_characters: prints the rows of
ggtok/vocabularies/pre_tokenizer_json.py.

Compares the tables in the newest unicodedata2 with those for Unicode 15.1, which llama.cpp uses;
pip downloads both packages. Prints the rows; the exit status is 1 if they differ from those in the
file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from ggtok.vocabularies.pre_tokenizer_json import NEWER

OLD, NEW = "unicodedata2==15.1.0", "unicodedata2"
CATEGORIES = """
import json, sys, unicodedata2
print(unicodedata2.unidata_version, file=sys.stderr)
print(json.dumps("".join(unicodedata2.category(chr(c))[0] for c in range(0x110000))))
"""


def categories(package: str) -> str:
    """Returns the first letter of each code point's category."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        env = {k: v for k, v in os.environ.items() if k != "PIP_CONSTRAINT"}
        subprocess.run([*pip, "--target", folder, package], check=True, env=env)
        env["PYTHONPATH"] = folder
        command = [sys.executable, "-c", CATEGORIES]
        done = subprocess.run(command, check=True, env=env, stdout=subprocess.PIPE)
    found: str = json.loads(done.stdout)
    return found


def ranges(old: str, new: str, category: str) -> Iterator[tuple[int, int]]:
    """Yields the fewest ranges that contain all newer characters of a category, but none of its
    older characters."""
    first = last = None
    for code in range(len(old)):
        if old[code] == category:
            if first is not None and last is not None:
                yield first, last
            first = last = None
        elif new[code] == category:
            first, last = code if first is None else first, code
    if first is not None and last is not None:
        yield first, last


def escaped(code: int) -> str:
    return f"\\u{code:04X}" if code < 0x10000 else f"\\x{{{code:X}}}"


def row(old: str, new: str, category: str) -> str:
    return "".join(
        escaped(first) if first == last else f"{escaped(first)}-{escaped(last)}"
        for first, last in ranges(old, new, category)
    )


def main() -> int:
    old, new = categories(OLD), categories(NEW)
    gone = [code for code, category in enumerate(old) if category not in ("C", new[code])]
    rows = {category: row(old, new, category) for category in "LMNPS"}
    for category, text in rows.items():
        print(f"{category}: {text}")
    if gone:  # a range can remove characters from a category, but not add them
        print("in another category now:", ", ".join(map(hex, gone)))
    return int(rows != NEWER or bool(gone))


if __name__ == "__main__":
    sys.exit(main())
