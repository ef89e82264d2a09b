"""``ggtok tokenize``: text to token ids."""

from __future__ import annotations

import argparse
import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import chain

import ggtok
from ggtok.cli import colors, escapes, offsets, progress, reading, writing
from ggtok.cli.arguments import MODEL_FIRST, Command, Parser, add_json, add_model, load, take_model
from ggtok.cli.messages import hint
from ggtok.cli.offsets import add_unit, json_token
from ggtok.cli.status import UsageError

_AT_ONCE = 1 << 16  # ids in a list; an int takes eight times the memory of an id


def add_arguments(parser: Parser) -> None:
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="the text")
    parser.add_argument(
        "-f", "--file", metavar="FILE", help="read the text from a file (-: standard input)"
    )
    parser.add_argument(
        "--stdin",
        action="store_true",
        help="read the text from standard input (takes precedence over -f, and -f over -p)",
    )
    parser.add_argument("--ids", action="store_true", help="print only the ids: [1, 2, 3]")
    parser.add_argument("--show-count", action="store_true", help="print the number of tokens")
    parser.add_argument("--no-bos", action="store_true", help="add neither BOS nor EOS")
    parser.add_argument(
        "-e",
        "--escape",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=r"replace \n, \r, \t, \', \", \\ and \xHH in the text, in files too (the default)",
    )
    parser.add_argument(
        "--no-parse-special",
        action="store_true",
        help="treat the text of special tokens, such as <s>, as plain text",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="take the text as it is: --no-escape --no-parse-special",
    )
    parser.add_argument(
        "--offsets", action="store_true", help="print which part of the text each token is"
    )
    add_unit(parser, utf16=True)
    parser.add_argument(
        "--color",
        nargs="?",
        const="auto",
        default="never",
        choices=["auto", "always", "never"],
        help="show the text with its tokens in colours, and white space; by itself, or auto: on a "
        "terminal, if NO_COLOR isn't set. Without effect on --ids, --offsets and --json",
    )
    _add_llama_tokenize(parser)
    parser.add_argument(
        "--log-disable", dest="quiet", action="store_true", help="the same as --quiet"
    )
    add_json(parser)
    add_model(parser, texts=True)


def _add_llama_tokenize(parser: Parser) -> None:
    """The names that llama.cpp's tools have for models elsewhere."""
    parser.add_argument(
        "-hf",
        "-hfr",
        "--hf-repo",
        metavar="USER/REPO[:QUANT]",
        help="the model is in this repository of the Hugging Face Hub",
    )
    parser.add_argument(
        "-hff", "--hf-file", metavar="FILE", help="this file of the repository, whatever QUANT says"
    )
    parser.add_argument("-mu", "--model-url", metavar="URL", help="the model is at this address")
    parser.add_argument(
        "--offline", action="store_true", help="ask no server: only what is on this machine"
    )


def _take_named_model(args: argparse.Namespace) -> None:
    """What these names say becomes the model."""
    if args.hf_file is not None and args.hf_repo is None:
        raise UsageError("--hf-file needs --hf-repo")
    given = {"-m": args.model, "--hf-repo": args.hf_repo, "--model-url": args.model_url}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise UsageError(f"one model is expected, not those of {' and '.join(names)}")
    if args.model_url is not None:
        if not args.model_url.startswith(("https://", "http://")):
            raise UsageError(f"not the address of a file: {args.model_url!r}")
        args.model = args.model_url
    if args.hf_repo is not None:
        # With the scheme, no file of this name is meant.
        args.model = f"hf://{args.hf_repo}"
        if args.hf_file is not None:
            args.model = f"hf://{args.hf_repo.partition(':')[0]}/{args.hf_file}"


def _load(args: argparse.Namespace) -> ggtok.Tokenizer:
    if not args.offline:
        return load(args)
    from ggtok.sources.timeouts import offline

    with offline():
        return load(args)


def run(args: argparse.Namespace) -> None:
    _take_named_model(args)
    take_model(args, needed=int(args.prompt is None and args.file is None and not args.stdin))
    file, text = _source(args)
    with nullcontext(iter([text])) if file is None else reading.blocks(file) as blocks:
        tok = _load(args)
        if file is not None:
            blocks = progress.of_blocks(blocks, file, args.quiet)
        if args.escape and not args.plain:
            blocks = escapes.replace_in_blocks(blocks)
        if args.offsets:
            offsets.write(
                args,
                tok,
                b"".join(blocks),
                add_special=tok.add_bos and not args.no_bos,
                parse_special=not (args.no_parse_special or args.plain),
            )
            return
        ids = _encode(
            tok,
            blocks,
            add_special=tok.add_bos and not args.no_bos,
            parse_special=not (args.no_parse_special or args.plain),
        )
        _write(args, tok, _begun(ids))


def _source(args: argparse.Namespace) -> tuple[str | None, bytes]:
    """The file that the text is in, or None and the text."""
    file = "-" if args.stdin else args.file
    if len(args.words) > 1:
        raise UsageError(f"one text is expected, not {len(args.words)}: put it in quotes")
    if args.words and file is not None:
        option = "--stdin" if args.stdin else "-f"
        raise UsageError(f"the text is given twice: as {args.words[0]!r} and with {option}")
    if args.words and args.prompt is not None:
        raise UsageError("the text is given twice: as an argument and with -p")
    if file is not None:
        return file, b""
    text = args.words[0] if args.words else args.prompt
    if text is None:
        raise UsageError("no text: give it as an argument or with -p, -f or --stdin")
    if text == "-":
        hint("'-' is tokenized as text; to read standard input, use -f -")
    elif os.path.isfile(text):
        hint(f"{text!r} is tokenized as text, but a file has this name; to read it, use -f")
    return None, os.fsencode(text)


def _begun(batches: Iterator[list[int]]) -> Iterator[list[int]]:
    """The same, the first of them made already, so that most errors come before any output."""
    return chain([next(batches, [])], batches)


def _encode(
    tok: ggtok.Tokenizer, blocks: Iterator[bytes], *, add_special: bool, parse_special: bool
) -> Iterator[list[int]]:
    """The ids of a text, in parts if it is long: memory doesn't grow with it."""
    begin = bytearray()
    for block in blocks:
        begin += block
        if len(begin) >= reading.BLOCK:
            break
    else:  # that is all
        yield tok.encode(begin, add_special=add_special, parse_special=parse_special)
        return
    from ggtok.text.batches import encode_blocks

    whole: Iterator[bytes | bytearray] = chain([begin], blocks)
    parts = encode_blocks(
        tok._native,
        whole,
        add_special=add_special,
        parse_special=parse_special,
        block_bytes=reading.BLOCK,
    )
    for ids in parts:
        for at in range(0, len(ids), _AT_ONCE):
            yield ids[at : at + _AT_ONCE].tolist()


def _write(args: argparse.Namespace, tok: ggtok.Tokenizer, batches: Iterator[list[int]]) -> None:
    if args.json:
        _write_json(tok, batches)
        return
    if args.ids:
        count = _write_ids(batches)
    elif colors.wanted(args.color):
        count = colors.write(tok, batches)
    else:
        count = _write_pieces(tok, batches)
    if args.show_count:
        writing.write(b"Total number of tokens: %d\n" % count)


def _write_ids(batches: Iterable[list[int]]) -> int:
    """Writes ``[1, 2, 3]``; gives the number of ids."""
    writing.write(b"[")
    count = _write_joined(batches, lambda ids: repr(ids)[1:-1].encode())
    writing.write(b"]\n")
    return count


def _write_joined(batches: Iterable[list[int]], text: Callable[[list[int]], bytes]) -> int:
    count = 0
    for ids in batches:
        if ids:
            writing.write((b", " if count else b"") + text(ids))
            count += len(ids)
    return count


def _write_pieces(tok: ggtok.Tokenizer, batches: Iterable[list[int]]) -> int:
    """Writes a line for each id; gives the number of ids."""
    visible = writing.visible if writing.to_terminal() else bytes
    lines: dict[int, bytes] = {}
    count = 0
    for ids in batches:
        for id in set(ids).difference(lines):
            lines[id] = b"%6d -> '%b'\n" % (id, visible(writing.printed(tok.token_to_piece(id))))
        writing.write(b"".join(map(lines.__getitem__, ids)))
        count += len(ids)
    return count


def _write_json(tok: ggtok.Tokenizer, batches: Iterable[list[int]]) -> None:
    """Writes the count, which is known last, before the ids and the pieces, without holding any
    but the ids, and many of those on the disk."""
    from tempfile import SpooledTemporaryFile

    with SpooledTemporaryFile(1 << 24) as spool:
        count = 0
        for ids in batches:
            spool.write(array("i", ids).tobytes())
            count += len(ids)

        def again() -> Iterator[list[int]]:
            spool.seek(0)
            while data := spool.read(4 * _AT_ONCE):
                yield array("i", data).tolist()

        pieces: dict[int, bytes] = {}

        def tokens(ids: list[int]) -> bytes:
            for id in set(ids).difference(pieces):
                pieces[id] = writing.json_text(json_token(id, tok.token_to_piece(id)))
            return b", ".join(map(pieces.__getitem__, ids))

        writing.write(b'{"count": %d, "ids": [' % count)
        _write_joined(again(), lambda ids: repr(ids)[1:-1].encode())
        writing.write(b'], "tokens": [')
        _write_joined(again(), tokens)
        writing.write(b"]}\n")


COMMAND = Command(
    usage="[MODEL] [TEXT]",
    details="Options and output are those of llama-tokenize. Like it, the command replaces "
    "escapes and recognizes special tokens wherever the text comes from, a file included, unless "
    "--plain is given. BOS, and with it EOS, is added if the vocabulary asks for BOS.",
    words={"MODEL": MODEL_FIRST, "TEXT": "the text; or use -p TEXT, -f FILE or --stdin"},
    examples=[
        'ggtok tokenize model.gguf "Hello, world"',
        'ggtok tokenize -m model.gguf -p "Hello, world" --ids',
        "ggtok tokenize model.gguf -f prompt.txt --plain --show-count",
        "cat prompt.txt | ggtok tokenize model.gguf --stdin --json",
        "ggtok tokenize model.gguf -f prompt.txt --color",
        'ggtok tokenize -hf user/repo:Q8_0 "Hello, world" --offsets',
    ],
    add_arguments=add_arguments,
    run=run,
)
