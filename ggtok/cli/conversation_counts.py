"""Counts the conversations of ``ggtok count --chat FILE``: a request, or JSON lines."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import ggtok
from ggtok.base.concurrency import map_ordered
from ggtok.chat import api, media
from ggtok.cli import input_texts
from ggtok.cli.chat_command import marker_of, naming, template_of, with_tools
from ggtok.cli.messages import UsageError, reason
from ggtok.corpora import jsonl, sources
from ggtok.corpora.conversations import Conversations, as_request
from ggtok.corpora.documents import BOM, LIMIT, DocumentPiece, Faults
from ggtok.corpora.encode_conversations import ChatEncoder
from ggtok.corpora.summary import RunCounts
from ggtok.errors import ArgumentError
from ggtok.text.batch_encoding import n_threads

_SPACES = b" \t\r\n"
_ROOM = 64 << 20  # bytes of lines that wait for a thread


@dataclass
class ChatCounts:
    """The tokens and bytes of a file, and how many images, audio and video aren't counted, and
    how many lines were skipped."""

    tokens: int = 0
    bytes: int = 0
    uncounted: int = 0
    skipped: int = 0


def count_conversation_file(
    tok: ggtok.Tokenizer, path: str, args: argparse.Namespace
) -> ChatCounts:
    """Counts the tokens of a file with messages, a request, or JSON lines of conversations, using
    --tools and --template."""
    media.check_tokens(args.image_tokens)
    fields = Conversations()
    with input_texts.blocks(path, decompress=True) as blocks:
        start, blocks = _peek(path, blocks, fields)
        if jsonl.is_array(start[: jsonl.LOOK], fields):
            raise UsageError(
                f"{input_texts.name_of(path)}: an array of conversations, not JSON lines; 'jq -c "
                ".[]' converts it"
            )
        if _is_lines(path, start, fields):
            found = _of_lines(tok, path, args, blocks, fields)
        else:
            # What isn't an object or a list can't be a request, so that it isn't read to its end.
            is_open = start[:1] in fields.opens
            data = b"".join(_limit_size(path, blocks)) if is_open else start
            found = _of_request(tok, input_texts.parsed_json(data, path), args)
    return found


def _peek(
    path: str, blocks: Iterator[bytes], fields: Conversations
) -> tuple[bytes, Iterator[bytes]]:
    """Returns the beginning of a file, without white space, and all of its blocks. The beginning
    extends to some of the second line if the file may have lines that its name doesn't show."""
    read: list[bytes] = []
    size = 0
    first = b""
    for block in _limit_size(path, blocks):
        read.append(block)
        size += len(block)
        first = first or block.lstrip(BOM + _SPACES)[:1]
        if b"\n" in block.strip():
            break
        if size >= jsonl.LOOK and (_has_name_of_lines(path) or first not in fields.opens):
            break
    return b"".join(read).removeprefix(BOM).lstrip(), chain(read, blocks)


def _limit_size(path: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields blocks. Raises an error if they are larger than what is held in memory."""
    size = 0
    for block in blocks:
        size += len(block)
        if size > LIMIT:
            raise UsageError(
                f"{input_texts.name_of(path)}: its first line, or its only JSON value, is longer "
                f"than {LIMIT >> 20} MiB, the most that is held in memory"
            )
        yield block


def _is_lines(path: str, start: bytes, fields: Conversations) -> bool:
    """Whether a file has a conversation in each line, by its name or because two lines begin like
    one. A single line is a request if it has ``messages``."""
    if _has_name_of_lines(path):
        return True
    line, _, rest = start.partition(b"\n")
    first = start[:1]
    if not first or first not in fields.opens:
        return False
    return rest.lstrip()[:1] == first or (first == b"{" and fields.needs_conversion(line))


def _has_name_of_lines(path: str) -> bool:
    name = path.lower().removesuffix(sources.compression_of(path))
    return name.endswith((".jsonl", ".ndjson"))


def _of_request(tok: ggtok.Tokenizer, given: Any, args: argparse.Namespace) -> ChatCounts:
    template, name = template_of(tok, args)
    with naming(name), _naming_file(args.chat):
        n, uncounted = api.count_body(
            tok._loaded,
            with_tools(as_request(given), args.tools),
            template=template,
            media_marker=marker_of(args),
        )
    return _with_media(ChatCounts(n, 0, uncounted), args)


@contextmanager
def _naming_file(path: str) -> Iterator[None]:
    """A context that adds the file's name to errors about a field in it."""
    try:
        yield
    except ArgumentError as e:
        if e.key is None or not e.key.startswith("messages"):
            raise
        raise UsageError(f"{input_texts.name_of(path)}: {reason(e)}") from None


def _with_media(found: ChatCounts, args: argparse.Namespace) -> ChatCounts:
    """Counts images, audio and video if --image-tokens says how; else warns of them."""
    if args.image_tokens is not None:
        return replace(
            found, tokens=found.tokens + args.image_tokens * found.uncounted, uncounted=0
        )
    if found.uncounted:
        api.warn_of_media(found.uncounted)
    return found


def _of_lines(
    tok: ggtok.Tokenizer,
    path: str,
    args: argparse.Namespace,
    blocks: Iterable[bytes],
    fields: Conversations,
) -> ChatCounts:
    template, name = template_of(tok, args)
    options = {"template": template, "media_marker": marker_of(args)}
    if args.tools is not None:
        options["tools"] = input_texts.json_file(args.tools)
    with naming(name):
        encoder = ChatEncoder(tok._loaded, options)
    file = input_texts.name_of(path)
    faults = Faults("skip", file) if args.errors == "skip" else jsonl.Lenient("replace", file)

    def count(piece: DocumentPiece) -> ChatCounts:
        counts = RunCounts()
        counts.add(piece.faults)
        found = ChatCounts(bytes=piece.size)
        documents = [document for document in piece.many or (piece.text,) if document]
        results, found.uncounted = encoder.counts(documents)
        for i, result in enumerate(results):
            if isinstance(result, Exception):
                assert piece.located is not None  # the reader of conversations sets it
                counts.add(piece.located.found(i, str(result)))
            else:
                found.tokens += result
        found.skipped = counts.skipped
        return found

    total = ChatCounts()
    threads = n_threads(tok._loaded, 0)
    pieces = jsonl.pieces(blocks, faults, fields)
    for each in map_ordered(count, pieces, threads, size=lambda piece: piece.size, room=_ROOM):
        total.tokens += each.tokens
        total.bytes += each.bytes
        total.uncounted += each.uncounted
        total.skipped += each.skipped
    encoder.warn(0)
    return _with_media(total, args)
