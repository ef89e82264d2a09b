"""``ggtok detokenize``: decodes token ids to text."""

from __future__ import annotations

import argparse
import re

from ggtok.cli import input_texts, standard_output
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import MODEL_FIRST, add_model, check_id, load_model, take_model


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("-f", "--file", metavar="FILE", help="read the ids from a file (-: standard input)")
    add("--no-unparse-special", action="store_true", help="print nothing for control tokens")
    add(
        "--remove-special",
        action="store_true",
        help="drop a BOS at the start and an EOS at the end, if the vocabulary adds them",
    )
    add(
        "--clean-spaces",
        action=argparse.BooleanOptionalAction,
        help="remove spaces before punctuation, or keep them, as llama-server's /detokenize does "
        "(default: as the vocabulary says, like llama_detokenize)",
    )
    add_model(parser, texts=True)


def run(args: argparse.Namespace) -> None:
    take_model(args)
    if args.file is not None and args.words:
        raise UsageError("ids are given both as arguments and with -f: give them once")
    if args.words:
        listed = " ".join(args.words)
    else:
        listed = input_texts.file(args.file or "-").decode("utf-8-sig", "replace")
    ids = _parse_ids(listed)
    tok = load_model(args)
    for id in ids:
        check_id(tok, id)
    data = tok.decode_bytes(
        ids,
        remove_special=args.remove_special,
        unparse_special=not args.no_unparse_special,
        clean_spaces=args.clean_spaces,
    )
    if args.json:
        standard_output.write_json({"text": data.decode("utf-8", "replace"), "bytes": len(data)})
    else:
        standard_output.write_text(data)


def _parse_ids(listed: str) -> list[int]:
    """Parses ids: a JSON or Python list, ids separated by white space or commas, or the output of
    ``tokenize --json``."""
    if listed.lstrip().startswith("{"):
        return _in_object(listed)
    if re.match(r"\s*\[\s*\[", listed):
        raise UsageError("each id has offsets: tokenize without --offsets, or with --json")
    ids = []
    for word in re.sub(r"[\[\],]", " ", listed).split():
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", word):
            raise UsageError(f"not a token id: {word[:40]!r}")
        ids.append(int(word))
    return ids


def _in_object(text: str) -> list[int]:
    import json

    try:
        ids = json.loads(text).get("ids")
    except (ValueError, RecursionError) as e:
        raise UsageError(f"not valid JSON: {e}") from None
    if not isinstance(ids, list) or any(type(id) is not int for id in ids):
        raise UsageError("the JSON object has no list of ids under 'ids'")
    return ids


HELP = Help(
    usage="[MODEL] [ID]...",
    details="The text is written byte for byte. On a terminal, control characters are shown as "
    "escapes, and a newline is added.",
    words={
        "MODEL": MODEL_FIRST,
        "ID": "token ids; without any, they are read from standard input",
    },
    examples=[
        "ggtok detokenize model.gguf 9906 11 1917",
        'ggtok detokenize model.gguf "[9906, 11, 1917]"',
        "ggtok tokenize model.gguf -f a.txt --ids | ggtok detokenize model.gguf",
        "ggtok tokenize model.gguf -f a.txt --json | ggtok detokenize model.gguf",
    ],
)
