"""Finds models that LM Studio has downloaded: MODELS/PUBLISHER/MODEL/FILE.gguf.

LM Studio's home is the path in ``~/.lmstudio-home-pointer``, else ``~/.cache/lm-studio`` (older
versions), else ``~/.lmstudio`` (``findLMStudioHome`` in its ``lms`` tool). The models are in the
folder that ``downloadsFolder`` in its ``settings.json`` names, else in ``models``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from ggtok.base.escape import printable
from ggtok.base.files import read_regular
from ggtok.errors import InvalidValueError, not_found
from ggtok.sources.model_files import (
    Found,
    Hint,
    Notes,
    Source,
    choose,
    files,
    first,
    in_any_case,
    no_model,
)

# The most bytes to read from LM Studio's own files.
_POINTER_MOST = 1 << 13
_SETTINGS_MOST = 1 << 20


def folders() -> list[str]:
    """Returns the model folders that exist, most likely first."""
    return [place for place in model_folders() if os.path.isdir(place)]


def model_folders() -> list[str]:
    """Returns the folders where models may be, most likely first."""
    user = os.path.expanduser("~")
    homes = [os.path.join(user, ".lmstudio"), os.path.join(user, ".cache", "lm-studio")]
    try:
        pointer = read_regular(os.path.join(user, ".lmstudio-home-pointer"), _POINTER_MOST)
        homes.insert(0, pointer.decode().strip())
    except (OSError, ValueError):
        pass
    found: list[str] = []
    for home in homes:
        for folder in (_chosen(home), os.path.join(home, "models")):
            if folder and "\0" not in folder and folder not in found:
                found.append(folder)
    return found


def _chosen(home: str) -> str | None:
    try:
        settings = read_regular(os.path.join(home, "settings.json"), _SETTINGS_MOST)
        folder = json.loads(settings)["downloadsFolder"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return folder if isinstance(folder, str) and folder else None


def find_in_lmstudio(name: str, rest: str, did_you_mean: Hint) -> Found:
    """Returns the model ``publisher/model`` or ``publisher/model/file.gguf``.

    If a model has several files, the quantization after ``:`` (``@`` in LM Studio) selects one;
    without a quantization, llama.cpp's rule does.
    """
    parts = rest.split("/", 2)
    if len(parts) < 2 or not all(parts) or ".." in rest.split("/") or "\\" in rest:
        raise InvalidValueError(
            f"{printable(name)}: LM Studio's models are "
            "lmstudio:publisher/model[:quant] or lmstudio:publisher/model/file.gguf"
        )
    publisher, model, *file = parts
    quant = None
    if not file:
        for mark in "@:":
            model, _, quant = model.partition(mark)
            if quant:
                break
    available: list[str] = []
    for folder in folders():
        # The user may have copied the name from LM Studio, which shows names in lower case.
        place = in_any_case(folder, publisher, model)
        if not os.path.isdir(place):
            continue
        available = sorted(files(place))
        chosen = first(file[0]) if file else choose(available, quant)
        if chosen in available:
            return Found(Source(name, "lmstudio", path=os.path.join(place, *chosen.split("/"))))
    if available:
        raise not_found(no_model(name, available, quant or (file[0] if file else None)))
    where = " or ".join(map(printable, model_folders()))
    hint = did_you_mean(name)
    raise not_found(f"{printable(name)}: LM Studio has no such model in {where}{hint}")


def list_lmstudio(notes: Notes = None) -> Iterator[tuple[str, str, str]]:
    """Yields the kind, loadable name and path of each possible model."""
    for folder in model_folders():
        for file in files(folder, notes):
            if file.endswith(".gguf") and file == first(file) and file.count("/") >= 2:
                yield "lmstudio", f"lmstudio:{file}", os.path.join(folder, *file.split("/"))
