"""Chooses the model file of a repository by llama.cpp's rule.

Equals ``find_best_model`` and ``gguf_filename_is_model`` in ``common/download.cpp`` of b11549: the
first file, in the order of the listing, whose path contains the quantization followed by ``.`` or
``-``, ignoring case. Without a quantization, Q4_K_M is preferred, then Q8_0, then any file. Of a
split model, only the first file counts. Files that accompany a model (projectors, importance
matrices, draft heads) don't count. llama.cpp treats the quantization as a regular expression;
ggtok treats it as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ggtok.base.escape import shown
from ggtok.sources.split import shard

_DEFAULTS = ("Q4_K_M", "Q8_0")
_NO_MODELS = ("mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-")


def is_model(path: str) -> bool:
    """Whether this is the path (with ``/``) of a model, or of a split model's first file."""
    if not path.endswith(".gguf"):
        return False
    name = path.rpartition("/")[2]
    if any(word in name for word in _NO_MODELS):
        return False
    split = shard(path)
    return split is None or split[2] <= 1 or split[1] == 1


def choose(paths: Iterable[str], quant: str | None) -> str | None:
    """The path of the model in a repository, or None."""
    models = [path for path in paths if is_model(path)]
    for wanted in (quant,) if quant else _DEFAULTS:
        pattern = re.compile(re.escape(wanted) + "[.-]", re.IGNORECASE)
        for path in models:
            if pattern.search(path):
                return path
    return models[0] if models and not quant else None


def no_model(name: str, paths: Iterable[str], quant: str | None) -> str:
    """The error message if there is no such model."""
    models = sorted(path for path in paths if is_model(path))
    what = f"no GGUF model of quantization '{shown(quant)}'" if quant else "no GGUF model"
    if not models:
        return f"{shown(name)}: there is {what}"
    listed = ", ".join(shown(model, 200) for model in models[:8])
    more = f" and {len(models) - 8} more" if len(models) > 8 else ""
    return f"{shown(name)}: there is {what}; these are there: {listed}{more}"
