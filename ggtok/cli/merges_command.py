"""``ggtok merges``: shows the merges that produce a token."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from ggtok.base.escape import printable
from ggtok.cli import standard_output
from ggtok.cli.explain_command import merge_line, priority, quote_short, token_line
from ggtok.cli.inspect_command import find_tokens
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import MODEL_FIRST, add_model, load_model, take_model

if TYPE_CHECKING:
    from ggtok.explain.steps import Merge, MergeTree

_MAX_INDENT = 12  # from this depth on, lines have the depth's number instead of more indentation


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--text", action="store_true", help="TOKEN is a text, even if all digits")
    add_model(parser, texts=True)


def run(args: argparse.Namespace) -> None:
    take_model(args, needed=1)
    if len(args.words) != 1:
        raise UsageError("give one token: its id or its text")
    from ggtok.explain.explanation import check_merges

    tok = load_model(args)
    check_merges(tok._loaded)
    trees = [tok.merge_tree(id) for id in find_tokens(tok, args.words[0], as_text=args.text)]
    lines = (line for tree in trees for line in _tree_lines(tree))
    standard_output.write_result(args, list(map(asdict, trees)), lines)


def _tree_lines(tree: MergeTree) -> Iterator[str]:
    yield f"token {tree.id} {quote_short(tree.text)}"
    for note in tree.notes:
        yield f"  {printable(note)}"
    if tree.whole_word:
        yield "  ignore_merges: a word equal to this token becomes it without merging"
    if tree.reached and not tree.merges:
        yield "  no merge: it is a symbol that merging starts from"
    elif tree.reached:
        yield from _tree(tree)
    elif tree.symbols:
        yield "  merging its own text doesn't produce it, but"
        yield from (f"    {token_line(token)}" for token in tree.tokens)
        if not tree.tokens:
            yield "    no token at all"
        yield from (f"  merge {merge_line(merge)}" for merge in tree.merges)
    others = [pair for pair in tree.pairs if not (tree.reached and _same(pair, tree.merges[-1:]))]
    if others:
        yield f"  {'other pairs' if tree.reached else 'pairs'} that would merge to it"
        yield from (f"    {merge_line(pair)}" for pair in others)


def _same(pair: Merge, last: list[Merge]) -> bool:
    return bool(last) and (pair.left, pair.right) == (last[0].left, last[0].right)


def _bytes(text: str) -> bytes:
    """Returns a symbol's bytes. Symbols that are parts of a character must be joined as bytes: as
    str, they would give another text."""
    return text.encode("utf-8", "surrogateescape")


def _tree(tree: MergeTree) -> Iterator[str]:
    """Yields the lines of the tree of merges, whose root is the last merge. This function isn't
    recursive, because long tokens have deep trees."""
    merges_at: dict[int, list[Merge]] = {}  # merges by the index of the left part's first symbol
    for merge in tree.merges:
        merges_at.setdefault(merge.at, []).append(merge)
    starts = [0]  # the offset of each symbol, in bytes
    for symbol in tree.symbols:
        starts.append(starts[-1] + len(_bytes(symbol)))
    index_at = {start: index for index, start in enumerate(starts)}
    waiting = [(0, 0, tree.text)]  # a stack of (depth, index of the first symbol, text)
    while waiting:
        depth, first, text = waiting.pop()
        level = f"[{depth}] " if depth >= _MAX_INDENT else ""
        indent = "  " * min(depth + 1, _MAX_INDENT) + level
        merges = merges_at.get(first, [])
        if not merges or _bytes(merges[-1].left) + _bytes(merges[-1].right) != _bytes(text):
            yield f"{indent}{quote_short(text)}"
            continue
        merge = merges.pop()
        yield f"{indent}{quote_short(text)}  {priority(merge)}"
        right = index_at[starts[first] + len(_bytes(merge.left))]
        waiting += [(depth + 1, right, merge.right), (depth + 1, first, merge.left)]


HELP = Help(
    usage="[MODEL] TOKEN",
    details="Shows the merges of the token's own text as a tree, the last one at the top, with "
    "ranks (BPE) or scores (SPM). If they produce other tokens, those are shown: no text is "
    "merged to such a token. Digits are an id, unless --text is given.",
    words={
        "MODEL": MODEL_FIRST,
        "TOKEN": "a token's id, or its text, as stored or as printed",
    },
    examples=[
        'ggtok merges model.gguf " there"',
        "ggtok merges model.gguf 330",
        "ggtok merges model.gguf --text 123",
    ],
)
