"""Which requests may make an upstream server generate text, and which bodies can be counted."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ggtok.server.refusals import Refusal

# Methods with which no server that has COMPLETIONS generates.
NOT_GENERATING = {"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"}
# Paths of POST requests that generate nothing, of llama-server, Ollama, vLLM and LM Studio.
_GENERATES_NOTHING = re.compile(
    "/(v1/|api/v0/)?(embeddings?|rerank|reranking|score|pooling|classify)"
    "|/(v1/)?(lora-adapters|load_lora_adapter|unload_lora_adapter|models|models/(load|unload))"
    "|/slots/[0-9]+|/api/(embed|embeddings|show|pull|push|create|copy|delete|blobs/[a-z0-9:-]+)"
)
_PLAIN = re.compile(rb"[a-z]+/[a-z0-9.+-]+(\s*;\s*charset=\"?utf-?8\"?)?\s*")


def check_generates_nothing(path: str, exact: bool) -> None:
    """Raises Refusal unless POST requests for this path generate nothing.

    Args:
        exact: whether the path has no escapes. Servers decode more than the standard says:
            cpp-httplib also decodes %u0063.
    """
    if not exact or not _GENERATES_NOTHING.fullmatch(path):
        raise uncounted_refusal("its path isn't one of those that generate nothing")


def uncounted_refusal(reason: str) -> Refusal:
    return Refusal(
        f"the prompt of this request can't be counted, so the limit of its length refuses it: "
        f"{reason} (ggtok serve --limit-unknown pass passes such requests on)"
    )


def is_plain(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body can only be read as text in UTF-8, neither compressed nor multipart."""
    for name, value in headers:
        if name == b"content-encoding" and value.lower() not in (b"", b"identity"):
            return False
        if name == b"content-type" and not _PLAIN.fullmatch(value.lower()):
            return False
    return True
