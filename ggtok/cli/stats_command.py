"""``ggtok stats``: measures bytes per token by file and script, for one or several models."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ggtok.base.escape import printable
from ggtok.base.files import SNIFFED
from ggtok.cli import input_texts, messages, standard_output
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser, expand_home
from ggtok.cli.shared_options import (
    add_model,
    add_patterns,
    can_only_be_model,
    check_output,
    load_model,
    take_model,
)
from ggtok.text.stats import Row, Stats

_PART = 4 << 20  # bytes of a file to measure at a time
_SHOWN = 200  # the most files that get a row each


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add_patterns(parser)
    add("--parse-special", action="store_true", help="parse the texts of special tokens")
    add("--vocabulary", action="store_true", help="also show the scripts of the vocabulary")
    add("--plot", metavar="OUT", help="also draw it: .svg, .png or .pdf")
    add_model(parser)


def run(args: argparse.Namespace) -> None:
    if args.plot is not None:
        check_output(args.plot)
    names = _models(args)
    files = args.words or ([] if args.vocabulary else ["-"])
    if "-" in files and len(names) > 1:
        raise UsageError("standard input can be measured for one model only: give files")
    found: dict[str, Stats] = {}
    binary: dict[str, None] = {}
    for name in names:
        args.model = name
        tok = load_model(args)
        parts: Any = _Parts(files, args, binary)
        found[name] = tok.stats(parts, parse_special=args.parse_special)
    messages.warn_of_files("binary", list(binary), "not measured")
    if args.plot is not None:
        from ggtok.text.plots import plot

        plot(found, args.plot)
    standard_output.write_result(
        args,
        {name: stats.to_dict() for name, stats in found.items()},
        _stats_lines(found, vocabulary=args.vocabulary),
    )
    if args.plot is not None and not args.json:
        for line in standard_output.lines_of_files(args.plot):
            standard_output.write_line(line)


def _models(args: argparse.Namespace) -> list[str]:
    """Returns the models that -m and the first words name, or GGTOK_MODEL if there are none. A word
    counts only if it can't be a file to measure."""
    names = []
    while args.words and can_only_be_model(args.words[0]):
        names.append(expand_home(args.words.pop(0)))
    if args.model is not None:
        names.insert(0, args.model)
    if not names:
        take_model(args)
        names = [args.model]
    if len(set(names)) < len(names):
        raise UsageError(f"a model is named twice: {', '.join(names)}")
    return names


class _Parts:
    """The files' texts with their names, in parts that end after a line. Binary files, which are
    skipped, are added to `binary`."""

    def __init__(self, paths: list[str], args: argparse.Namespace, binary: dict[str, None]) -> None:
        from ggtok.cli.counting import FolderFilter

        self._binary = binary
        self._files = FolderFilter(args.include, args.exclude, ignore=True).files(paths)

    def items(self) -> Iterator[tuple[str, bytes]]:
        for path in self._files:
            with input_texts.blocks(path, decompress=True) as blocks:
                first = True
                for part in _by_lines(blocks):
                    if first and b"\0" in part[:SNIFFED]:
                        self._binary[path] = None
                        break
                    first = False
                    yield input_texts.name_of(path), part


def _by_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Regroups the blocks into parts of about _PART bytes, which end after a line if possible."""
    rest = bytearray()
    for block in blocks:
        rest += block
        if len(rest) >= _PART:
            end = rest.rfind(b"\n") + 1
            if end:
                yield bytes(rest[:end])
                del rest[:end]
            elif len(rest) >= 4 * _PART:
                yield bytes(rest)
                rest.clear()
    yield bytes(rest)


# ---- output ----


def _stats_lines(found: Mapping[str, Stats], *, vocabulary: bool) -> list[str]:
    if len(found) == 1:
        [stats] = found.values()
        lines = _one(stats)
    else:
        lines = _several(found)
    if vocabulary:
        lines += ["", *_vocabularies(found)]
    return lines


def _one(stats: Stats) -> list[str]:
    head = ("", "TOKENS", "BYTES", "BYTES/TOKEN", "ONE-TOKEN WORDS")
    sections = [
        _shorten_rows(stats.texts) if len(stats.texts) > 1 else {},
        {"total": stats.total},
        stats.scripts,
    ]
    rows = [
        (
            printable(name),
            f"{row.tokens:,}",
            f"{row.bytes:,}",
            f"{row.bytes_per_token:.2f}",
            f"{row.single_share:.1%}" if row.words else "",
        )
        for section in sections
        for name, row in section.items()
    ]
    known = stats.used + stats.unused
    used = f"{stats.used:,} different tokens in the text, {stats.unused:,} unused"
    return [*standard_output.table([head, *rows], right=(1, 2, 3, 4)), used if known else ""]


def _several(found: Mapping[str, Stats]) -> list[str]:
    """Returns a table of bytes per token, with a column for each model."""
    letters = [chr(ord("A") + i) if i < 26 else str(i) for i in range(len(found))]
    legend = [f"{letter}: {printable(name)}" for letter, name in zip(letters, found, strict=True)]
    first, *_ = found.values()
    parts: list[tuple[str, Any]] = [
        *((name, lambda s, name=name: s.texts.get(name)) for name in _shorten_rows(first.texts)),
        ("total", lambda s: s.total),
        *((name, lambda s, name=name: s.scripts.get(name)) for name in _scripts(found)),
    ]
    head = ("BYTES/TOKEN", *letters, "BEST")
    rows = []
    for name, row_of in parts:
        values = [(row_of(stats) or Row()).bytes_per_token for stats in found.values()]
        best = max(values)
        winners = [x for x, v in zip(letters, values, strict=True) if best and v == best]
        cells = (f"{value:.2f}" for value in values)
        rows.append(
            (printable(name), *cells, "" if len(winners) == len(values) else ",".join(winners))
        )
    return [*legend, "", *standard_output.table([head, *rows], right=range(1, len(letters) + 1))]


def _vocabularies(found: Mapping[str, Stats]) -> list[str]:
    names = {name: None for stats in found.values() for name in stats.vocabulary_scripts}
    letters = [chr(ord("A") + i) if i < 26 else str(i) for i in range(len(found))]
    head = ("VOCABULARY", *(letters if len(found) > 1 else ["TOKENS"]))
    rows = [
        (name, *(f"{stats.vocabulary_scripts.get(name, 0):,}" for stats in found.values()))
        for name in names
    ]
    return standard_output.table([head, *rows], right=range(1, len(found) + 1))


def _scripts(found: Mapping[str, Stats]) -> list[str]:
    return list({name: None for stats in found.values() for name in stats.scripts})


def _shorten_rows(texts: Mapping[str, Row]) -> dict[str, Row]:
    """Returns the files' rows. If there are too many, the last row sums up the omitted ones."""
    if len(texts) <= _SHOWN:
        return dict(texts)
    rows = list(texts.items())
    rest = Row()
    for _, row in rows[_SHOWN:]:
        rest.add(row)
    return {**dict(rows[:_SHOWN]), f"{len(rows) - _SHOWN} more files": rest}


HELP = Help(
    usage="[MODEL]... [PATH]...",
    details="Shows how many bytes of the text a token has, by file and by script, and the share "
    "of words that are one token. With several models, shows bytes per token side by side: which "
    "of them needs the fewest tokens for a language?",
    words={
        "MODEL": "a .gguf file, or a name with a scheme; or use -m MODEL, or set GGTOK_MODEL",
        "PATH": "a text file, a folder, or - for standard input, which is read if there is none",
    },
    examples=[
        "ggtok stats model.gguf book.txt",
        "ggtok stats a.gguf b.gguf docs/ --include '*.md'",
        "ggtok stats a.gguf b.gguf book.txt --plot languages.svg",
        "ggtok stats model.gguf --vocabulary --json",
    ],
)
