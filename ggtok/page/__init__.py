"""The page that shows vocabularies in a browser, with the library as WebAssembly.

``page.html`` is one file that loads nothing else. ``python -m tools.web`` generates it from web/.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources

# The element of page.html that is replaced. The page's security policy needs no hash of a data
# block, since it isn't executed.
_DATA = '<script type="application/json" id="ggtok-models">%s</script>'
_EMPTY = '{"models": []}'


def html(
    models: Iterable[Mapping[str, object]] = (),
    *,
    server: str | None = None,
    writer: str | None = None,
) -> bytes:
    """Returns the page as one HTML document.

    Args:
        models: the models that the page offers, as :func:`linked` and :func:`embedded` return
            them. The page opens the first one.
        server: the URL of ``ggtok serve``'s own endpoints, which give the page the results that
            only Python can compute. If None, the page works without a server.
        writer: the program that writes the page to a file, which the page names.
    """
    data: dict[str, object] = {"models": list(models)}
    data |= {} if server is None else {"server": server}
    data |= {} if writer is None else {"writer": writer}
    # In HTML, no text of the JSON may end the element or begin a comment.
    text = json.dumps(data).replace("<", "\\u003c")
    before, after = _parts()
    return before + (_DATA % text).encode() + after


def link_model(name: str, url: str) -> dict[str, object]:
    """Describes a model whose vocabulary the page fetches from `url`, in one request."""
    return {"name": name, "url": url, "whole": True}


def embed_model(name: str, vocabulary: bytes, source: str) -> dict[str, object]:
    """Describes a model whose vocabulary (a GGUF file's bytes) is in the page itself. The page
    says that the vocabulary comes from `source`."""
    packed = b64encode(gzip.compress(vocabulary, mtime=0)).decode()
    return {"name": name, "data": packed, "from": source}


@cache
def _parts() -> tuple[bytes, bytes]:
    page = resources.files(__name__).joinpath("page.html").read_bytes()
    before, found, after = page.partition((_DATA % _EMPTY).encode())
    if not found:
        raise RuntimeError("ggtok/page/page.html has no block of models: run python -m tools.web")
    return before, after
