"""``ggtok merges``: the merges that make a token."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from ggtok.base.escape import shown
from ggtok.cli import inspect, writing
from ggtok.cli.arguments import MODEL_FIRST, Command, Parser, add_json, add_model, load, take_model
from ggtok.cli.explain import merge_line, quoted, token_line, weight
from ggtok.cli.status import UsageError

if TYPE_CHECKING:
    from ggtok.explain.steps import Merge, MergeTree

_DEEPEST = 12  # levels that are indented


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--text", action="store_true", help="TOKEN is a text, digits too")
    add_json(parser)
    add_model(parser, texts=True)


def run(args: argparse.Namespace) -> None:
    take_model(args, needed=1)
    if len(args.words) != 1:
        raise UsageError("give one token: its id or its text")
    from ggtok.explain.explain import check_merges

    tok = load(args)
    check_merges(tok._loaded)
    ids = inspect.find(tok, args.words[0], as_text=args.text)
    trees = [tok.merge_tree(id) for id in ids]
    if args.json:
        writing.write_json([asdict(tree) for tree in trees], indent=2)
        return
    for tree in trees:
        for line in _lines(tree):
            writing.write_line(line)


def _lines(tree: MergeTree) -> Iterator[str]:
    yield f"token {tree.id} {quoted(tree.text)}"
    for note in tree.notes:
        yield f"  {shown(note)}"
    if tree.whole_word:
        yield "  ignore_merges: a word that is this token is taken as it is, without merging"
    if tree.reached and not tree.merges:
        yield "  no merge makes it: merging begins with it"
    elif tree.reached:
        yield from _tree(tree)
    elif tree.symbols:
        yield "  merging its own text doesn't give it, but"
        yield from (f"    {token_line(token)}" for token in tree.tokens)
        if not tree.tokens:
            yield "    no token at all"
        yield from (f"  merge {merge_line(merge)}" for merge in tree.merges)
    others = [pair for pair in tree.pairs if not (tree.reached and _same(pair, tree.merges[-1:]))]
    if others:
        yield f"  {'other pairs' if tree.reached else 'pairs'} that would become it"
        yield from (f"    {merge_line(pair)}" for pair in others)


def _same(pair: Merge, last: list[Merge]) -> bool:
    return bool(last) and (pair.left, pair.right) == (last[0].left, last[0].right)


def _bytes(text: str) -> bytes:
    """Parts of characters come together only as bytes."""
    return text.encode("utf-8", "surrogateescape")


def _tree(tree: MergeTree) -> Iterator[str]:
    """The last merge first, what it joins below it; without recursion, as tokens may be long."""
    made: dict[int, list[Merge]] = {}  # by the number of the left part's first symbol
    for merge in tree.merges:
        made.setdefault(merge.at, []).append(merge)
    starts = [0]  # of the symbols
    for symbol in tree.symbols:
        starts.append(starts[-1] + len(_bytes(symbol)))
    number_at = {start: number for number, start in enumerate(starts)}
    waiting = [(0, 0, tree.text)]  # depth, number of the first symbol, text
    while waiting:
        depth, first, text = waiting.pop()
        indent = "  " * min(depth + 1, _DEEPEST) + (f"[{depth}] " if depth >= _DEEPEST else "")
        merges = made.get(first, [])
        if not merges or _bytes(merges[-1].left) + _bytes(merges[-1].right) != _bytes(text):
            yield f"{indent}{quoted(text)}"
            continue
        merge = merges.pop()
        yield f"{indent}{quoted(text)}  {weight(merge)}"
        right = number_at[starts[first] + len(_bytes(merge.left))]
        waiting += [(depth + 1, right, merge.right), (depth + 1, first, merge.left)]


COMMAND = Command(
    usage="[MODEL] TOKEN",
    details="The merges of the token's own text are shown as a tree, the last one at the top, with "
    "ranks (BPE) or scores (SPM). If they give other tokens, these are shown: no text is merged "
    "to such a token. Digits are an id, unless --text is given.",
    words={"MODEL": MODEL_FIRST, "TOKEN": "a token's id or text, as it is stored or as it prints"},
    examples=[
        'ggtok merges model.gguf " there"',
        "ggtok merges model.gguf 330",
        "ggtok merges model.gguf --text 123",
    ],
    add_arguments=add_arguments,
    run=run,
)
