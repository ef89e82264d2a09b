"""``ggtok prompts``: shows where the tokens of two prompts, or of a log of requests, differ."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from itertools import chain
from typing import Any

import ggtok
from ggtok.base.escape import number, printable
from ggtok.cli import input_texts, standard_output
from ggtok.cli.chat_command import naming, template_of
from ggtok.cli.messages import FINDING, OK, UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import MODEL_FIRST, add_model, load_model, take_model
from ggtok.corpora import jsonl
from ggtok.corpora.documents import Faults
from ggtok.errors import ArgumentError, TemplateError
from ggtok.prompts import (
    EncodedPrompt,
    PromptComparison,
    PromptSide,
    compare_encoded,
    encode_prompt,
    n_common,
)

_TEXT = 40  # the maximum number of characters of a text in the table


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--last",
        type=int,
        default=8,
        metavar="N",
        help="for a log: compare each request with the N before it (default: 8)",
    )
    add(
        "--template",
        metavar="NAME",
        help="the name of one of the model's templates, or chatml, or a template file",
    )
    add_model(parser)


def run(args: argparse.Namespace) -> int:
    take_model(args)
    if len(args.words) not in (1, 2):
        raise UsageError("give two files with a request each, or a log with a request in each line")
    if args.last < 1:
        raise UsageError(f"--last must be at least 1, but is {args.last}")
    if args.words.count("-") > 1:
        raise UsageError("standard input can be read only once")
    tok = load_model(args)
    template, name = template_of(tok, args)
    with naming(name):
        if len(args.words) == 2:
            return _compare_two(tok, args, template)
        return _compare_log(tok, args, template)


def _compare_two(tok: ggtok.Tokenizer, args: argparse.Namespace, template: str | None) -> int:
    a, b = (input_texts.json_file(path) for path in args.words)
    for path, request in zip(args.words, (a, b), strict=True):
        if not isinstance(request, dict) or "messages" not in request:
            raise UsageError(f"{path}: not a request: an object with 'messages' is expected")
    found = ggtok.compare_prompts(tok, a, b, template=template)
    standard_output.write_result(args, asdict(found), _comparison_lines(found))
    return FINDING if found.lost else OK


def _comparison_lines(found: PromptComparison) -> list[str]:
    kept = f"{found.common} of {number(found.a.n_tokens, 'token')} kept, {found.lost} lost"
    lines = [f"{kept}; the second prompt has {number(found.b.n_tokens, 'token')}"]
    if found.same_text:
        lines.append("the texts are the same, but their tokens differ")
    return [*lines, f"A: {_describe_side(found.a)}", f"B: {_describe_side(found.b)}"]


def _describe_side(side: PromptSide) -> str:
    return side.where if side.where == "end" else f'{side.where}: "{printable(side.text)}"'


# ---- a log of requests ----


def _compare_log(tok: ggtok.Tokenizer, args: argparse.Namespace, template: str | None) -> int:
    last: deque[EncodedPrompt] = deque(maxlen=args.last)
    rows = [("line", "tokens", "kept", "lost", "where", "before", "now")]
    found: list[dict[str, Any]] = []
    for line, request, time in _requests(args.words[0]):
        try:
            prompt = encode_prompt(tok._loaded, request, time, "a request", template, "llama.cpp")
        except (ArgumentError, TemplateError) as e:
            raise UsageError(f"{input_texts.name_of(args.words[0])}, line {line}: {e}") from None
        if last:
            before = max(last, key=lambda earlier: n_common(earlier.ids, prompt.ids))
            c = compare_encoded(tok._loaded, before, prompt)
            found.append({"line": line, **asdict(c)})
            texts = (_cell(c.a.text), _cell(c.b.text)) if c.lost else ("", "")
            where = c.a.where if c.lost else ""
            counts = map(str, (line, c.b.n_tokens, c.common, c.lost))
            rows.append((*counts, where, *texts))  # type: ignore[arg-type]
        else:
            found.append({"line": line, "n_tokens": len(prompt.ids)})
            rows.append((str(line), str(len(prompt.ids)), "0", "0", "", "", ""))
        last.append(prompt)
    standard_output.write_result(args, found, standard_output.table(rows, (0, 1, 2, 3)))
    return FINDING if any(row.get("lost") for row in found) else OK


def _cell(text: str) -> str:
    return printable(text[:_TEXT])


def _requests(path: str) -> Iterator[tuple[int, Mapping[str, Any], datetime]]:
    """Yields the number, request and time of each line that isn't blank."""
    file = input_texts.name_of(path)
    with input_texts.blocks(path, decompress=True) as blocks:
        lines = chain.from_iterable(jsonl.split_lines(blocks, Faults("raise", file)))
        for line, text in enumerate(lines, 1):
            if text.strip():
                yield (line, *_entry(text.rstrip(b"\n"), f"{file}, line {line}"))


def _entry(text: bytes, where: str) -> tuple[Mapping[str, Any], datetime]:
    value = input_texts.parsed_json(text, where)
    entry = value if isinstance(value, dict) else {}
    request = next((entry[name] for name in ("request", "body") if name in entry), entry)
    if not isinstance(request, dict) or "messages" not in request:
        raise UsageError(f"{where}: not a request: an object with 'messages' is expected")
    given = next((entry[name] for name in ("time", "timestamp") if name in entry), None)
    try:
        if isinstance(given, str):
            return request, datetime.fromisoformat(given.replace("Z", "+00:00"))
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            return request, datetime.fromtimestamp(given, timezone.utc)
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{where}: its time is neither ISO 8601 nor seconds: {given!r}") from None
    return request, datetime.now()


HELP = Help(
    usage="[MODEL] A.json B.json | LOG.jsonl",
    details="A server that has processed prompt A continues from the first token in which B "
    "differs: this shows how many tokens that keeps, and which message, or which text of the "
    "template, differs. For a log, each request is compared with the most similar of the "
    "requests before it. A line is a request, or an object with the fields 'request' and 'time', "
    "which templates that write the date need. A log may be compressed (.gz, .bz2, .xz, .zst).",
    words={"MODEL": MODEL_FIRST, "A.json": "a chat request", "LOG.jsonl": "requests, one a line"},
    examples=[
        "ggtok prompts model.gguf turn1.json turn2.json",
        "ggtok prompts model.gguf requests.jsonl --last 4",
    ],
    finding="tokens of an earlier prompt are lost",
)
