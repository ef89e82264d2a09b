"""Compares chat prompts and ids with llama-server's.

    python -m tests.chat.parity                              # recorded requests, two vocabularies
    python -m tests.chat.parity --vocab qwen2 --template Qwen3
    python -m tests.chat.parity --random 100 --seed 1        # generated bodies, live
    python -m tests.chat.parity --random 100 --made          # under the tests' own templates

Compares for each template the capabilities and, for each request, the prompt or the error, the ids
with `trusted=True`, and the ids by default. The last may differ only if the request contains a
control token's text. Answers that aren't recorded yet are recorded first (`tests.chat.answers`).
The exit status is 1 if there is a difference that no row in EXCEPTIONS explains.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import ggtok
from ggtok import Tokenizer, load
from ggtok.chat import api
from ggtok.chat.compiled import TemplateFacts, chat_of
from ggtok.native import chat_calls
from tests.chat import answers, mediafiles
from tests.chat.generate import Generator
from tests.chat.llamaserver import ServerError, Servers
from tests.chat.made import TEMPLATES
from tests.chat.requests import REQUESTS
from tests.support.vocabularies import real

VOCABS = ("qwen2", "llama-bpe")
SHOWN = 10  # the maximum number of differences to print

# Error messages for requests that only the server rejects, for reasons unrelated to the template.
# Each is a row in docs/chat.md.
EXCEPTIONS = (
    # a JSON schema, for a tool or the answer, that the server can't convert to a grammar
    re.compile(r"JSON schema error at "),
    # the beginning of an answer that the server's answer parser rejects
    re.compile(r"The model produced output that does not match the expected"),
    # images, audio and video, which ggtok doesn't read
    re.compile(r"Invalid base64 value|Invalid uri|Failed to download image|file:// URLs are not"),
)

# The server reads videos with ffmpeg, which may be missing.
_NO_VIDEO = re.compile(r"Failed to load image or audio file")


@dataclass
class Result:
    counts: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)

    def note(self, kind: str, where: str, more: str = "") -> None:
        self.counts[kind] += 1
        if kind not in _NOT_FAILURES and len(self.shown) < SHOWN:
            self.shown.append(f"{kind}: {where}\n{more}")

    @property
    def failures(self) -> int:
        return sum(n for kind, n in self.counts.items() if kind not in _NOT_FAILURES)


_NOT_FAILURES = (
    "same ids",
    "same text, not counted",
    "other ids by default",
    "both refuse",
    "explained",
    "the server doesn't start",
    "the server died",
)


def compare(tok: Tokenizer, template: str, answer: dict[str, Any], where: str, to: Result) -> None:
    """Compares one request with one template."""
    body = json.loads(answer["body"])
    now = datetime.fromisoformat(answer["at"])
    theirs = answer.get("prompt")
    media = "count" in answer

    def ours(want: int, trusted: bool = False) -> Any:
        clock = lambda: now  # noqa: E731
        return api.run_body(tok._loaded, body, want, trusted, template=template, clock=clock)

    try:
        text = ours(chat_calls.TEXT)
    except ggtok.GGTokError as e:
        if theirs is None:
            to.note("both refuse", where)
        else:
            to.note("only ggtok refuses", where, f"{type(e).__name__}: {e}")
        return
    if theirs is None:
        error = answer.get("error", "")
        explained = any(pattern.search(error) for pattern in EXCEPTIONS)
        to.note("explained" if explained else "only the server refuses", where, error[:300])
    elif text != theirs:
        to.note("other text", where, _difference(text, theirs))
    elif media and (difference := _media_difference(tok, template, answer)):
        to.note(difference, where, repr(answer["count"]))
    elif media and answer["count"][0] != 200:
        to.note("same text, not counted", where)
    elif ours(chat_calls.IDS, trusted=True) != answer["ids"]:
        to.note("other ids", where)
    else:
        to.note("same ids", where)
        if ours(chat_calls.IDS) != answer["ids"]:
            hostile = any(text in answer["body"] for text in _control_texts(tok))
            to.note("other ids by default" if hostile else "lost a control token", where)


def _media_difference(tok: Tokenizer, template: str, answer: dict[str, Any]) -> str:
    """Returns how the counts differ for a request with images, audio or video; "" if they don't."""
    body, now = json.loads(answer["body"]), datetime.fromisoformat(answer["at"])
    status, theirs = answer["count"]
    try:
        n, uncounted = api.count_body(
            tok._loaded,
            body,
            trusted=True,
            template=template,
            clock=lambda: now,
            image_tokens=mediafiles.n_tokens,
        )
    except ggtok.InvalidValueError:
        return "only ggtok doesn't count" if status == 200 else ""
    if status == 200:
        return "" if (n, uncounted) == (theirs["input_tokens"], 0) else "other count"
    explained = _NO_VIDEO.search(theirs["error"]["message"])
    return "" if explained else "only the server doesn't count"


@cache
def _control_texts(tok: Tokenizer) -> list[str]:
    """Returns the texts of tokens that never come from messages, escaped as in JSON."""
    reserved = ggtok.TokenAttr.CONTROL | ggtok.TokenAttr.UNKNOWN
    ids = {*tok.eog_ids, *(i for i in range(tok.n_tokens) if tok.token_attr(i) & reserved)}
    pieces = (tok.token_to_piece(id).decode("utf-8", "replace") for id in ids)
    return [json.dumps(piece)[1:-1] for piece in pieces if piece]


def _difference(ours: str, theirs: str) -> str:
    pairs = enumerate(zip(ours, theirs, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(ours), len(theirs)))
    begin = max(0, at - 60)
    return f"  ours   {ours[begin : at + 120]!r}\n  theirs {theirs[begin : at + 120]!r}"


def chosen(parts: Sequence[str] | None, made: bool = False) -> Iterator[tuple[str, str]]:
    for name, template in (TEMPLATES if made else answers.templates()).items():
        if not parts or any(part in name for part in parts):
            yield name, template


def recorded(vocab: str, parts: Sequence[str] | None, to: Result) -> None:
    tok = load(real(vocab))
    with Servers(real(vocab), media=True) as servers:
        for name, template in chosen(parts):
            record = answers.recorded(vocab, name, template)
            if answers.missing(record, REQUESTS):
                record = answers.record(servers, vocab, name, template, REQUESTS)
            for key in REQUESTS:
                where = f"{vocab}, {name}, {key}"
                compare(tok, template, record["answers"][key], where, to)


def generated(
    vocab: str, parts: Sequence[str] | None, n: int, seed: int, made: bool, to: Result
) -> None:
    tok = load(real(vocab))
    with Servers(real(vocab), media=True) as servers:
        for i, (name, template) in enumerate(chosen(parts, made)):
            generator = Generator(seed * 1000 + i)
            bodies = [generator.body() for _ in range(n)]
            try:
                server = servers.start(template)
            except ServerError:
                to.note("the server doesn't start", name)
                if _starts(tok, template):
                    to.note("only ggtok starts", name)
                continue
            with server:
                _caps(tok, template, server.get("/props")[1]["chat_template_caps"], name, to)
                for body in bodies:
                    try:
                        answer = answers.ask(server, body)
                    except ServerError:
                        to.note("the server died", name)
                        break
                    compare(tok, template, answer, f"{vocab}, {name}, {answer['body']}", to)


def _facts(tok: Tokenizer, template: str) -> TemplateFacts:
    return chat_of(tok._loaded, "llama.cpp", template, None).facts_for(has_tools=False)


def _starts(tok: Tokenizer, template: str) -> bool:
    try:
        _facts(tok, template)
    except ggtok.TemplateError:
        return False
    return True


def _caps(tok: Tokenizer, template: str, theirs: dict[str, bool], name: str, to: Result) -> None:
    caps = _facts(tok, template).caps
    ours = {f"supports_{name}": value for name, value in caps.items()}
    if ours != theirs:
        to.note("other capabilities", name, f"  ours   {ours}\n  theirs {theirs}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chat.parity")
    parser.add_argument("--vocab", action="append", help=f"{' and '.join(VOCABS)} by default")
    parser.add_argument("--template", action="append", help="a part of a template's name")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="bodies per template")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--made", action="store_true", help="the tests' own templates")
    args = parser.parse_args(arguments)
    total = Result()
    for vocab in args.vocab or VOCABS:
        begin = time.monotonic()
        if args.random:
            generated(vocab, args.template, args.random, args.seed, args.made, total)
        else:
            recorded(vocab, args.template, total)
        print(f"{vocab}: {time.monotonic() - begin:.1f} s")
    for text in total.shown:
        print(text)
    for kind, n in total.counts.most_common():
        print(f"{n:8} {kind}")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
