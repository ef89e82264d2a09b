"""``ggtok explain``: how a text's ids come about, step by step."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from ggtok.base.escape import shown
from ggtok.cli import reading, writing
from ggtok.cli.arguments import MODEL_FIRST, Command, Parser, add_json, add_model, load, take_model
from ggtok.cli.status import UsageError

if TYPE_CHECKING:
    from ggtok.explain.steps import Explanation, Fragment, Merge, Token, Word

_LONG = 40  # characters of a text that a line shows
_SYMBOLS = 16
_WIDE = 60  # of an expression, or of the ids of a line


def add_arguments(parser: Parser) -> None:
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="the text")
    parser.add_argument(
        "-f", "--file", metavar="FILE", help="read the text from a file (-: standard input)"
    )
    parser.add_argument("--no-special", action="store_true", help="add neither BOS nor EOS")
    parser.add_argument(
        "--parse-special",
        action="store_true",
        help="let the text of a control token, such as <s>, be that token",
    )
    add_json(parser)
    add_model(parser, texts=True)


def run(args: argparse.Namespace) -> None:
    take_model(args, needed=int(args.prompt is None and args.file is None))
    text = _text(args)
    explanation = load(args).explain(
        text, add_special=not args.no_special, parse_special=args.parse_special
    )
    if args.json:
        writing.write_json(asdict(explanation), indent=2)
    else:
        for line in _lines(explanation):
            writing.write_line(line)


def _text(args: argparse.Namespace) -> bytes:
    given = [*args.words, *([args.prompt] if args.prompt is not None else [])]
    if len(args.words) > 1:
        raise UsageError(f"one text is expected, not {len(args.words)}: put it in quotes")
    if len(given) + (args.file is not None) > 1:
        raise UsageError("the text is given twice")
    if args.file is not None:
        return reading.file(args.file)
    if not given:
        raise UsageError("no text: give it as an argument or with -p or -f")
    return os.fsencode(given[0])


# ---- for people ----


def quoted(text: str) -> str:
    """A text in quotes, its beginning if it is long."""
    if len(text) > _LONG:
        return f"'{shown(text[:_LONG])}...' ({len(text)} characters)"
    return f"'{shown(text)}'"


def token_line(token: Token) -> str:
    line = f"{token.id:>7}  {quoted(token.text)}  {token.how}"
    if token.score is not None:
        line += f" {number(token.score)}"
    return line if token.total is None else f"{line}, sum {number(token.total)}"


def number(score: float) -> str:
    return f"{score + 0.0:g}"  # not -0


def weight(merge: Merge) -> str:
    return f"score {number(merge.score or 0)}" if merge.rank is None else f"rank {merge.rank}"


def merge_line(merge: Merge) -> str:
    return f"{quoted(merge.left)} + {quoted(merge.right)}  {weight(merge)}"


def _lines(e: Explanation) -> Iterator[str]:
    model = e.model if e.pre is None else f"{e.model}, pre-tokenizer {e.pre}"
    yield f"{e.vocab_type} vocabulary (model {shown(model)})"
    yield from _added(e.before)
    for fragment in e.fragments:
        yield from _fragment(fragment)
    yield from _added(e.after)
    ids = f"ids: {' '.join(map(str, e.ids)) or 'none'}"
    while len(ids) > _WIDE and " " in ids[:_WIDE]:
        cut = ids.rindex(" ", 0, _WIDE)
        yield ids[:cut]
        ids = "    " + ids[cut:]
    yield ids


def _added(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        yield "added"
        yield from _why(token, "  ")


def _why(token: Token, indent: str) -> Iterator[str]:
    yield indent + token_line(token)
    if token.why:
        yield f"{indent}         {shown(token.why)}"


def _fragment(fragment: Fragment) -> Iterator[str]:
    place = f"bytes {fragment.begin} to {fragment.end}"
    if fragment.special is not None:
        yield f"special token, {place}"
        yield from _why(fragment.special, "  ")
    else:
        yield f"text, {place}: {quoted(fragment.text)}"
    for note in fragment.notes:
        yield f"  {shown(note)}"
    if fragment.normalized is not None:
        yield f"  becomes {quoted(fragment.normalized)}"
    for word in fragment.words:
        yield from _word(word)


def _word(word: Word) -> Iterator[str]:
    yield f"  word {quoted(word.text)}"
    if word.rules:
        # The last scanner that found it; those after it left it as it was.
        found = next((rule for rule in reversed(word.rules) if rule.expression), None)
        if found is None:
            yield f"    rule of {word.rules[-1].scanner}: between matches"
        else:
            expression = shown(found.expression or "", _WIDE)
            yield f"    rule of {found.scanner}: '{expression}'"
    if len(word.symbols) > 1:
        begin = " ".join(map(quoted, word.symbols[:_SYMBOLS]))
        more = len(word.symbols) - _SYMBOLS
        yield f"    symbols {begin}{f' ... and {more} more' if more > 0 else ''}"
    for merge in word.merges:
        yield f"    merge {merge_line(merge)}"
    last = ""
    for token in word.tokens:
        yield "    " + token_line(token)
        if token.why and token.why != last:
            yield f"             {shown(token.why)}"
        last = token.why


COMMAND = Command(
    usage="[MODEL] [TEXT]",
    details="Shown are the tokens that are added, the special tokens found, what text becomes, the "
    "words that the pre-tokenizer cuts and the rule that it follows, merges in their order, with "
    "ranks or scores, and what falls back to bytes. --json has also the lattice of a vocabulary "
    "with scores (UGM, PLaMo). As in the library's encode, BOS and EOS are added as the "
    "vocabulary says, and control tokens are plain text unless --parse-special is given. A text "
    "may have 16 KiB.",
    words={"MODEL": MODEL_FIRST, "TEXT": "the text; or use -p TEXT or -f FILE"},
    examples=[
        'ggtok explain model.gguf "Hello, world"',
        'ggtok explain model.gguf "<|eot_id|> there" --parse-special',
        "ggtok explain model.gguf -f prompt.txt --json",
    ],
    add_arguments=add_arguments,
    run=run,
)
