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

# The part of page.html that is replaced. A block of data needs no hash in the page's security
# policy, since nothing in it is executed.
_DATA = '<script type="application/json" id="ggtok-models">%s</script>'
_EMPTY = '{"models": []}'


def html(models: Iterable[Mapping[str, str]] = (), *, server: str | None = None) -> bytes:
    """Returns the page as one HTML document.

    Args:
        models: the models that the page offers, first the one that it opens: what :func:`linked`
            and :func:`embedded` return.
        server: the URL of ``ggtok serve``'s own endpoints, from which the page gets what only
            Python can tell; None: the page works without a server.
    """
    data = {"models": list(models), **({} if server is None else {"server": server})}
    # JSON within HTML: no text may end the block or begin a comment.
    text = json.dumps(data).replace("<", "\\u003c")
    before, after = _parts()
    return before + (_DATA % text).encode() + after


def linked(name: str, url: str) -> dict[str, str]:
    """Returns a model whose vocabulary the page fetches from `url`."""
    return {"name": name, "url": url}


def embedded(name: str, vocabulary: bytes) -> dict[str, str]:
    """Returns a model whose vocabulary, the bytes of a GGUF file, is in the page itself."""
    return {"name": name, "data": b64encode(gzip.compress(vocabulary, mtime=0)).decode()}


@cache
def _parts() -> tuple[bytes, bytes]:
    page = resources.files(__name__).joinpath("page.html").read_bytes()
    before, found, after = page.partition((_DATA % _EMPTY).encode())
    if not found:
        raise RuntimeError("ggtok/page/page.html has no block of models: run python -m tools.web")
    return before, after
