"""``ggtok tokenize``: encodes text to token ids."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain

import ggtok
from ggtok.cli import input_texts, progress, token_output
from ggtok.cli.messages import UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import (
    MODEL_FIRST,
    add_model,
    add_sampling,
    add_text,
    add_unit,
    check_sampling,
    load_model,
    take_model,
    text_source,
)

TYPE_CHECKING = False  # importing typing takes time
if TYPE_CHECKING:
    from typing import Any


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add_text(parser)
    add(
        "--stdin",
        action="store_true",
        help="read the text from standard input (takes precedence over -f, and -f over -p)",
    )
    add("--ids", action="store_true", help="print only the ids: [1, 2, 3]")
    add("--show-count", action="store_true", help="print the number of tokens")
    add("--no-bos", action="store_true", help="add neither BOS nor EOS")
    add(
        "-e",
        "--escape",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=r"replace \n, \r, \t, \', \", \\ and \xHH in the text, also in files (the default)",
    )
    add(
        "--no-parse-special",
        action="store_true",
        help="treat the texts of special tokens, such as <s>, as plain text",
    )
    add("--plain", action="store_true", help="the same as --no-escape --no-parse-special")
    add("--offsets", action="store_true", help="print each token's position in the text")
    add_unit(parser, utf16=True)
    add_sampling(parser)
    add("--nbest", type=int, default=-1, metavar="N", help="with --alpha: among the N best (UGM)")
    add(
        "--color",
        nargs="?",
        const="auto",
        default="never",
        choices=["auto", "always", "never"],
        help="show the text with coloured tokens and marks for white space; auto (the default "
        "with --color alone): on a terminal, unless NO_COLOR is set. No effect with --ids, "
        "--offsets and --json",
    )
    # llama.cpp's options for remote models.
    add(
        *("-hf", "-hfr", "--hf-repo"),
        metavar="USER/REPO[:QUANT]",
        help="the model is in this repository of the Hugging Face Hub",
    )
    add("-hff", "--hf-file", metavar="FILE", help="this file of the repository; QUANT is ignored")
    add("-mu", "--model-url", metavar="URL", help="the model is at this address")
    add("--offline", action="store_true", help="contact no server; use files of this machine")
    add("--log-disable", dest="quiet", action="store_true", help="the same as --quiet")
    add_model(parser, texts=True)


def _take_llama_model(args: argparse.Namespace) -> None:
    """Converts llama.cpp's model options to the model's name."""
    if args.hf_file is not None and args.hf_repo is None:
        raise UsageError("--hf-file needs --hf-repo")
    given = {"-m": args.model, "--hf-repo": args.hf_repo, "--model-url": args.model_url}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise UsageError(f"two models: {' and '.join(names)} exclude each other")
    if args.model_url is not None:
        if not args.model_url.startswith(("https://", "http://")):
            raise UsageError(f"--model-url needs an http(s) address, not {args.model_url!r}")
        args.model = args.model_url
    if args.hf_repo is not None:
        # The scheme keeps a local file with this name from being used.
        args.model = f"hf://{args.hf_repo}"
        if args.hf_file is not None:
            args.model = f"hf://{args.hf_repo.partition(':')[0]}/{args.hf_file}"


def _load(args: argparse.Namespace) -> ggtok.Tokenizer:
    if not args.offline:
        return load_model(args)
    from ggtok.sources.timeouts import offline

    with offline():
        return load_model(args)


def run(args: argparse.Namespace) -> None:
    _take_llama_model(args)
    take_model(args, needed=int(args.prompt is None and args.file is None and not args.stdin))
    file, text = text_source(args)
    with nullcontext(iter([text])) if file is None else input_texts.blocks(file) as blocks:
        tok = _load(args)
        if file is not None:
            blocks = progress.of_blocks(blocks, file, args.quiet)
        if args.escape and not args.plain:
            blocks = input_texts.unescape_blocks(blocks)
        special = {
            "add_special": tok.add_bos and not args.no_bos,
            "parse_special": not (args.no_parse_special or args.plain),
        }
        check_sampling(args)
        if args.dropout is not None or args.alpha is not None:
            token_output.write(args, tok, iter([_sample(args, tok, b"".join(blocks), **special)]))
            return
        if args.offsets:
            token_output.write_offsets(args, tok, b"".join(blocks), **special)
            return
        batches = _encode(tok, blocks, **special)
        # Encode the first batch before any output, because that raises most errors.
        token_output.write(args, tok, chain([next(batches, [])], batches))


def _sample(args: argparse.Namespace, tok: ggtok.Tokenizer, text: bytes, **special: bool) -> Any:
    """Returns the ids of a random segmentation."""
    if args.offsets:
        raise UsageError("a random segmentation has no offsets; remove --offsets")
    options = {name: getattr(args, name) for name in ("dropout", "alpha", "nbest", "seed")}
    return tok.sample(text, **options, **special)


def _encode(
    tok: ggtok.Tokenizer, blocks: Iterator[bytes], *, add_special: bool, parse_special: bool
) -> Iterator[list[int]]:
    """Yields a text's ids in batches, so that memory is bounded."""
    begin = bytearray()
    for block in blocks:
        begin += block
        if len(begin) >= input_texts.BLOCK:
            break
    else:  # the text is short
        yield tok.encode(begin, add_special=add_special, parse_special=parse_special)
        return
    from ggtok.text.batch_encoding import encode_blocks

    whole: Iterator[bytes | bytearray] = chain([begin], blocks)
    parts = encode_blocks(
        tok._loaded,
        whole,
        add_special=add_special,
        parse_special=parse_special,
        block_bytes=input_texts.BLOCK,
    )
    for ids in parts:
        for at in range(0, len(ids), token_output.AT_ONCE):
            yield ids[at : at + token_output.AT_ONCE].tolist()


HELP = Help(
    usage="[MODEL] [TEXT]",
    details="Options and output are llama-tokenize's. As there, escapes are replaced and special "
    "tokens recognized in every text, also in files, unless --plain is given. BOS, and with it "
    "EOS, is added if the vocabulary asks for BOS.",
    words={"MODEL": MODEL_FIRST, "TEXT": "the text; or use -p TEXT, -f FILE or --stdin"},
    examples=[
        'ggtok tokenize model.gguf "Hello, world"',
        'ggtok tokenize -m model.gguf -p "Hello, world" --ids',
        "ggtok tokenize model.gguf -f prompt.txt --plain --show-count",
        "cat prompt.txt | ggtok tokenize model.gguf --stdin --json",
        "ggtok tokenize model.gguf -f prompt.txt --color",
        'ggtok tokenize -hf user/repo:Q8_0 "Hello, world" --offsets',
        'ggtok tokenize model.gguf "Hello, world" --dropout 0.1 --seed 1',
    ],
)
