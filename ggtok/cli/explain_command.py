"""``ggtok explain``: shows step by step how a text becomes ids."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from ggtok.base.escape import printable
from ggtok.cli import input_texts, standard_output
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import (
    MODEL_FIRST,
    add_model,
    add_text,
    load_model,
    take_model,
    text_source,
)

if TYPE_CHECKING:
    from ggtok.explain.steps import Explanation, Fragment, Merge, Token, Word

_MAX_TEXT = 40  # the most characters of a text to show in a line
_MAX_SYMBOLS = 16
_WIDTH = 60  # the most characters to show of a regular expression, or in a line of ids


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add_text(parser)
    add("--no-special", "--no-add-special", action="store_true", help="add neither BOS nor EOS")
    add(
        "--parse-special",
        action="store_true",
        help="parse the texts of control tokens, such as <s>, to those tokens",
    )
    add_model(parser, texts=True)


def run(args: argparse.Namespace) -> None:
    take_model(args, needed=int(args.prompt is None and args.file is None))
    file, text = text_source(args)
    text = text if file is None else input_texts.file(file)
    explanation = load_model(args).explain(
        text, add_special=not args.no_special, parse_special=args.parse_special
    )
    standard_output.write_result(args, asdict(explanation), _explanation_lines(explanation))


def quote_short(text: str) -> str:
    """Returns a text in quotes, shortened if it is long."""
    if len(text) > _MAX_TEXT:
        return f"'{printable(text[:_MAX_TEXT])}...' ({len(text)} characters)"
    return f"'{printable(text)}'"


def token_line(token: Token) -> str:
    line = f"{token.id:>7}  {quote_short(token.text)}  {token.how}"
    if token.score is not None:
        line += f" {_score(token.score)}"
    return line if token.total is None else f"{line}, sum {_score(token.total)}"


def _score(score: float) -> str:
    return f"{score + 0.0:g}"  # adding 0.0 turns -0 into 0


def priority(merge: Merge) -> str:
    return f"score {_score(merge.score or 0)}" if merge.rank is None else f"rank {merge.rank}"


def merge_line(merge: Merge) -> str:
    return f"{quote_short(merge.left)} + {quote_short(merge.right)}  {priority(merge)}"


def _explanation_lines(e: Explanation) -> Iterator[str]:
    model = e.model if e.pre is None else f"{e.model}, pre-tokenizer {e.pre}"
    yield f"{e.vocab_type} vocabulary (model {printable(model)})"
    yield from _added_lines(e.before)
    for fragment in e.fragments:
        yield from _fragment(fragment)
    yield from _added_lines(e.after)
    ids = f"ids: {' '.join(map(str, e.ids)) or 'none'}"
    while len(ids) > _WIDTH and " " in ids[:_WIDTH]:
        cut = ids.rindex(" ", 0, _WIDTH)
        yield ids[:cut]
        ids = "    " + ids[cut:]
    yield ids


def _added_lines(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        yield "added"
        yield from _with_reason(token, "  ")


def _with_reason(token: Token, indent: str) -> Iterator[str]:
    yield indent + token_line(token)
    if token.why:
        yield f"{indent}         {printable(token.why)}"


def _fragment(fragment: Fragment) -> Iterator[str]:
    span = f"bytes {fragment.begin} to {fragment.end}"
    if fragment.special is not None:
        yield f"special token, {span}"
        yield from _with_reason(fragment.special, "  ")
    else:
        yield f"text, {span}: {quote_short(fragment.text)}"
    for note in fragment.notes:
        yield f"  {printable(note)}"
    if fragment.normalized is not None:
        yield f"  becomes {quote_short(fragment.normalized)}"
    for word in fragment.words:
        yield from _word(word)


def _word(word: Word) -> Iterator[str]:
    yield f"  word {quote_short(word.text)}"
    if word.rules:
        # The last scanner that matched the word; later scanners left the word whole.
        found = next((rule for rule in reversed(word.rules) if rule.expression), None)
        if found is None:
            yield f"    rule of {word.rules[-1].scanner}: between matches"
        else:
            expression = printable(found.expression or "", _WIDTH)
            yield f"    rule of {found.scanner}: '{expression}'"
    if len(word.symbols) > 1:
        begin = " ".join(map(quote_short, word.symbols[:_MAX_SYMBOLS]))
        more = len(word.symbols) - _MAX_SYMBOLS
        yield f"    symbols {begin}{f' ... and {more} more' if more > 0 else ''}"
    for merge in word.merges:
        yield f"    merge {merge_line(merge)}"
    last = ""
    for token in word.tokens:
        yield "    " + token_line(token)
        if token.why and token.why != last:
            yield f"             {printable(token.why)}"
        last = token.why


HELP = Help(
    usage="[MODEL] [TEXT]",
    details="Shows the added tokens, the special tokens found, normalized text, the "
    "pre-tokenizer's words and the rule that cut each, the merges in order, with ranks or scores, "
    "and byte fallback. --json adds the lattice of vocabularies with scores (UGM, PLaMo). As in "
    "the library's encode, BOS and EOS are added as the vocabulary says, and control tokens are "
    "plain text unless --parse-special is given. The text may have at most 16 KiB.",
    words={"MODEL": MODEL_FIRST, "TEXT": "the text; or use -p TEXT or -f FILE"},
    examples=[
        'ggtok explain model.gguf "Hello, world"',
        'ggtok explain model.gguf "<|eot_id|> there" --parse-special',
        "ggtok explain model.gguf -f prompt.txt --json",
    ],
)
