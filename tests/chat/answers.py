"""Records llama-server's answers to `requests.REQUESTS` for each of llama.cpp's chat templates.

    python -m tests.chat.answers --vocab qwen2 --vocab llama-bpe     # about 3 minutes

There is one file for each vocabulary and template in a cache folder (GGTOK_CHAT_ANSWERS, by default
next to the downloaded templates), so that comparisons can be repeated quickly; recorded requests
aren't sent again. A file has the capabilities that the server reports for the template and, for
each request (by name), the JSON body, the time, and either the prompt and its ids or the error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fixtures.fetch import cache_folder, fetch
from ggtok.chat import media
from tests.chat.llamaserver import Server, ServerError, Servers
from tests.chat.requests import REQUESTS, Body
from tests.support.vocabularies import real

BUILD = "b11549"


def folder() -> Path:
    if chosen := os.environ.get("GGTOK_CHAT_ANSWERS"):
        return Path(chosen)
    return cache_folder() / f"chat-answers-{BUILD}-media"


def templates() -> dict[str, str]:
    """Returns llama.cpp's own template files by name."""
    return {p.stem: p.read_text("utf-8") for p in sorted(fetch("templates").glob("*.jinja"))}


def as_sent(body: object) -> str:
    return json.dumps(body, ensure_ascii=True)


def ask(server: Server, body: Body) -> dict[str, Any]:
    """Sends one body to a server and returns its answer."""
    answer: dict[str, Any] = {"body": as_sent(body), "at": datetime.now().isoformat()}
    prompt, error = server.prompt(answer["body"])
    if prompt is None:
        return {**answer, "error": error}
    if not media.parts_of(_messages(body)):
        return {**answer, "prompt": prompt, "ids": server.ids(prompt)}
    # Simplified from mtmd_tokenize, because the vocabularies here add at most a BOS.
    texts = prompt.split(media.MARKER)
    ids = server.ids("") + [id for text in texts for id in server.ids(text, add_special=False)]
    status, count = server.post("/v1/chat/completions/input_tokens", answer["body"])
    return {**answer, "prompt": prompt, "ids": ids, "count": [status, count]}


def _messages(body: Body) -> list[Any]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def recorded(vocab: str, name: str, template: str) -> dict[str, Any]:
    """Returns the record in the file for this template, or an empty record."""
    path = _path(vocab, name)
    digest = hashlib.sha256(template.encode()).hexdigest()
    if path.is_file():
        record: dict[str, Any] = json.loads(path.read_text())
        if record["template"] == digest:
            return record
    return {"template": digest, "caps": None, "answers": {}, "failed": None}


def missing(record: dict[str, Any], bodies: dict[str, Body]) -> dict[str, Body]:
    known = record["answers"]
    return {
        name: body
        for name, body in bodies.items()
        if name not in known or known[name]["body"] != as_sent(body)
    }


def record(
    servers: Servers, vocab: str, name: str, template: str, bodies: dict[str, Body]
) -> dict[str, Any]:
    """Completes a template's record: sends the requests that aren't recorded yet."""
    entry = recorded(vocab, name, template)
    wanted = list(missing(entry, bodies).items())
    while wanted and entry["failed"] is None:
        try:
            server = servers.start(template)
        except ServerError as e:
            entry["failed"] = str(e)
            break
        with server:
            if entry["caps"] is None:
                entry["caps"] = server.get("/props")[1]["chat_template_caps"]
            while wanted:
                key, body = wanted.pop(0)
                try:
                    entry["answers"][key] = ask(server, body)
                except ServerError as e:
                    entry["answers"][key] = {"body": as_sent(body), "died": str(e)}
                    break  # the outer loop starts another server for the rest
    write(vocab, name, entry)
    return entry


def write(vocab: str, name: str, record: dict[str, Any]) -> None:
    path = _path(vocab, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(json.dumps(record, indent=1))
    path.with_suffix(".new").replace(path)


def records(vocab: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields the name, template and record of each template with recorded answers."""
    for name, template in templates().items():
        entry = recorded(vocab, name, template)
        if entry["answers"] or entry["failed"]:
            yield name, template, entry


def _path(vocab: str, name: str) -> Path:
    return folder() / vocab / f"{name}.json"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chat.answers")
    parser.add_argument("--vocab", action="append", required=True)
    parser.add_argument("--template", action="append", help="a part of a file's name")
    args = parser.parse_args(arguments)
    for vocab in args.vocab:
        with Servers(real(vocab), media=True) as servers:
            for name, template in templates().items():
                if args.template and not any(part in name for part in args.template):
                    continue
                begin = time.monotonic()
                entry = record(servers, vocab, name, template, REQUESTS)
                rendered = sum("prompt" in a for a in entry["answers"].values())
                deaths = sum("died" in a for a in entry["answers"].values())
                print(
                    f"{vocab} {name}: {rendered} rendered of {len(entry['answers'])}, "
                    f"{deaths} deaths, {time.monotonic() - begin:.1f} s {entry['failed'] or ''}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
