"""Counts the tokens of changed files before and after a change. action.yml runs this script.

Reads its arguments from the environment variables that action.yml sets: MODEL, PATHS, BUDGET,
MAX_INCREASE, BASE. Writes a table to standard output and to GITHUB_STEP_SUMMARY, and the outputs
``tokens`` and ``increase`` to GITHUB_OUTPUT. Exits with 1 if a limit is exceeded, and with 2 after
an error.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping

import ggtok
from ggtok.base.escape import printable


def printed(text: str) -> str:
    """Returns a text that GitHub's runner prints without obeying it. The runner obeys
    ``##[command]`` anywhere in a line and ``::command::`` at its start, so a zero-width space
    separates these characters."""
    return text.replace("##[", "##\u200b[").replace("::", ":\u200b:")


class Failure(Exception):
    """An error whose message is printed."""


def git(*args: str) -> bytes:
    done = subprocess.run(["git", *args], capture_output=True, check=False)
    if done.returncode:
        raise Failure(f"git {args[0]} failed: {printable(done.stderr.strip())}")
    return done.stdout


def limit(env: Mapping[str, str], name: str) -> int | None:
    """Returns the number of tokens in a variable, such as 8000 or 8k, or None if it isn't set."""
    value = env.get(name, "").strip()
    if not value:
        return None
    match = re.fullmatch(r"(\d+)([kKmM]?)", value)
    if match is None:
        raise Failure(f"{name.lower()} must be a number of tokens, such as 8000 or 8k: {value!r}")
    return int(match[1]) * {"": 1, "k": 1000, "m": 1_000_000}[match[2].lower()]


def base_of(commit: str) -> str:
    """Returns the commit to compare with: the merge base of `commit` and HEAD."""
    if not commit.strip("0"):  # not set, or zeros for the first push of a branch: use an empty tree
        return git("hash-object", "-t", "tree", os.devnull).decode().strip()
    found = subprocess.run(
        ["git", "merge-base", "--end-of-options", commit, "HEAD"], capture_output=True, check=False
    )
    if found.returncode:
        raise Failure(
            f"commit {commit!r} isn't in this clone: set fetch-depth: 0 in actions/checkout"
        )
    return found.stdout.decode().strip()


def counts(tok: ggtok.Tokenizer, base: str, paths: list[str]) -> list[tuple[str, int, int]]:
    """Returns the path of each changed text file, and its number of tokens in the base and in
    HEAD."""
    diff = git("diff", "--raw", "-z", "--no-renames", "--no-abbrev", base, "HEAD", "--", *paths)
    fields = diff.split(b"\0")
    rows = []
    for status, path in zip(fields[0:-1:2], fields[1::2], strict=False):
        old_mode, mode, old, new, _ = status.decode().removeprefix(":").split()
        if not (old_mode.startswith("100") or mode.startswith("100")):
            continue  # a link or a submodule
        texts = [_text(old_mode, old), _text(mode, new)]
        if any(b"\0" in text for text in texts):
            continue  # a binary file
        before, after = tok.count_batch(texts, add_special=False)
        rows.append((printed(printable(path)), before, after))
    return sorted(rows, key=lambda row: row[1] - row[2])


def _text(mode: str, blob: str) -> bytes:
    return git("cat-file", "blob", blob) if mode.startswith("100") else b""


def table(rows: list[tuple[str, int, int]], totals: tuple[int, int]) -> str:
    lines = ["| file | base | head | change |", "| --- | ---: | ---: | ---: |"]
    for name, before, after in [*rows, ("**all changed files**", *totals)]:
        cell = name.replace("|", "\\|").replace("<", "&lt;")
        lines.append(f"| {cell} | {before:,} | {after:,} | {after - before:+,} |")
    return "\n".join(lines) + "\n"


def append(variable: str, text: str) -> None:
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def main(env: Mapping[str, str]) -> int:
    budget, most = limit(env, "BUDGET"), limit(env, "MAX_INCREASE")
    if not env.get("MODEL"):
        raise Failure("model is not set: it is the file or name of the model whose tokens count")
    tok = ggtok.load(env["MODEL"])
    paths = [line for line in env.get("PATHS", "").splitlines() if line.strip()]
    rows = counts(tok, base_of(env.get("BASE", "")), paths)
    before, after = sum(row[1] for row in rows), sum(row[2] for row in rows)
    text = table(rows, (before, after))
    sys.stdout.write(text)
    append("GITHUB_STEP_SUMMARY", text)
    append("GITHUB_OUTPUT", f"tokens={after}\nincrease={after - before}\n")
    status = 0
    if budget is not None and after > budget:
        print(f"::error::the changed files have {after:,} tokens; the budget is {budget:,}")
        status = 1
    if most is not None and after - before > most:
        print(f"::error::the change adds {after - before:,} tokens; at most {most:,} are allowed")
        status = 1
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(os.environ))
    except (Failure, ggtok.GGTokError) as e:
        print(f"::error::{printed(printable(str(e)))}")
        sys.exit(2)
