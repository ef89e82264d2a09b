"""Finds models in Ollama's store.

The layout, from Ollama's ``manifest/paths.go``, ``manifest/manifest.go`` and
``types/model/name.go``:

    manifests/HOST/NAMESPACE/MODEL/TAG      JSON: layers by media type and digest
    manifests-v2/ollama.com/...             newer versions: a link to the manifest's blob
    blobs/sha256-HEX                        a layer (sha256:HEX in the oldest versions)

A newer manifest may be a list of manifests, one for each engine that can run the model.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from ggtok.base.escape import printable
from ggtok.base.files import read_regular
from ggtok.errors import FileError, InvalidValueError, VocabError, not_found, not_permitted
from ggtok.sources.model_files import Found, Hint, Notes, Source, in_any_case, scan

_HOST, _V2_HOST = "registry.ollama.ai", "ollama.com"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HOST_PART = re.compile(rf"{_PART.pattern}(:[0-9]+)?")
_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")
_MODEL = "application/vnd.ollama.image.model"
_TEMPLATE = "application/vnd.ollama.image.template"
_LIST = "application/vnd.ollama.manifest.list.v2+json"
# The engines that run GGUF files, in Ollama's order of preference.
_RUNNERS = ("ollama", "llamacpp")
_SHOWN = 200  # the most characters of a manifest that a message quotes
_MANIFEST_MOST = 1 << 20
_TEMPLATE_MOST = 1 << 20


def stores() -> list[str]:
    """Returns the store at OLLAMA_MODELS, or else the user's and the system service's stores."""
    if chosen := os.environ.get("OLLAMA_MODELS"):
        return [os.path.expanduser(chosen)]
    own = os.path.join(os.path.expanduser("~"), ".ollama", "models")
    if sys.platform in ("win32", "darwin"):
        return [own]
    return [own, "/usr/share/ollama/.ollama/models", "/var/lib/ollama/models"]


def _parts(name: str, rest: str) -> tuple[str, str, str, str]:
    """Splits ``[host/][namespace/]model[:tag]`` into host, namespace, model and tag."""
    rest, colon, tag = rest.rpartition(":") if ":" in rest.rpartition("/")[2] else (rest, "", "")
    parts = rest.split("/")
    if len(parts) <= 3:
        host, namespace, model = (_HOST, "library", "")[: 3 - len(parts)] + tuple(parts)
        tag = tag if colon else "latest"
        if _HOST_PART.fullmatch(host) and all(map(_PART.fullmatch, (namespace, model, tag))):
            return host, namespace, model, tag
    raise InvalidValueError(
        f"{printable(name)}: Ollama's names are ollama:[host/][namespace/]model[:tag]"
    )


def find_in_store(name: str, rest: str, did_you_mean: Hint) -> Found:
    """Returns the model that Ollama calls `rest`."""
    parts = _parts(name, rest)
    for store in stores():
        for manifest in _manifests(store, parts):
            if os.path.isfile(manifest):
                return Found(_source(name, store, manifest))
        if _forbidden(store):
            raise not_permitted(
                f"{printable(name)}: permission denied: the model may be in Ollama's store "
                f"{printable(store)}, which this user can't read"
            )
    where = " or ".join(map(printable, stores()))
    hint = did_you_mean(name) or "; 'ollama pull' downloads it, 'ggtok list' shows what is there"
    raise not_found(f"{printable(name)}: Ollama has no such model in {where}{hint}")


def _forbidden(store: str) -> bool:
    """Whether this user can't read the store. On Linux, the service's store has another owner."""
    try:
        os.listdir(os.path.join(store, "manifests"))
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _manifests(store: str, parts: tuple[str, str, str, str]) -> Iterator[str]:
    """Yields the possible paths of the manifest, in Ollama's order.

    The case of names is ignored, as in Ollama.
    """
    host, *below = parts
    public = host.lower() in (_HOST, _V2_HOST)
    yield in_any_case(store, "manifests-v2", _V2_HOST if public else host, *below)
    for alias in (host, _V2_HOST if host.lower() == _HOST else _HOST) if public else (host,):
        yield in_any_case(store, "manifests", alias, *below)


def _source(name: str, store: str, path: str) -> Source:
    manifest = _runnable(name, store, _json(name, path))
    layers = manifest.get("layers")
    digests: dict[str, str] = {}
    for layer in layers if isinstance(layers, list) else []:
        if isinstance(layer, dict):
            # Keep the first layer of each type. Parameters such as "; name=x" may follow the type.
            kind = str(layer.get("mediaType", "")).partition(";")[0]
            digests.setdefault(kind, str(layer.get("digest", "")))
    if _MODEL not in digests:
        kinds = ", ".join(sorted(kind.rpartition(".")[2] for kind in digests)) or "none"
        raise VocabError(
            f"{printable(name)}: the model has no GGUF layer (its layers: "
            f"{printable(kinds, _SHOWN)}): it runs in Ollama's cloud, or is in another format"
        )
    blob = _blob(name, store, digests[_MODEL])
    template = None
    if _TEMPLATE in digests:
        layer = read_regular(_blob(name, store, digests[_TEMPLATE]), _TEMPLATE_MOST)
        template = layer.decode("utf-8", "replace")
    return Source(name, "ollama", path=blob, template=template)


def _runnable(name: str, store: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """Returns the manifest, or, from a list of manifests, one for an engine that runs GGUF
    files."""
    if manifest.get("mediaType") != _LIST:
        return manifest
    children = manifest.get("manifests")
    runners = {
        str(child.get("runner", "")).lower(): child
        for child in (reversed(children) if isinstance(children, list) else [])
        if isinstance(child, dict)
    }
    for runner in _RUNNERS:
        child = runners.get(runner)
        if child and "layers" not in child and child.get("digest"):
            return _json(name, _blob(name, store, str(child["digest"])))
        if child:
            return child
    raise VocabError(
        f"{printable(name)}: the model has no GGUF layer; it is there only for these engines: "
        f"{printable(', '.join(sorted(runners)), _SHOWN)}"
    )


def _json(name: str, path: str) -> dict[str, Any]:
    try:
        manifest = json.loads(read_regular(path, _MANIFEST_MOST))
    except (OSError, ValueError, RecursionError) as e:
        raise FileError(
            f"{printable(name)}: the manifest {printable(path)} can't be read: "
            f"{printable(str(e), _SHOWN)}"
        ) from e
    if not isinstance(manifest, dict):
        raise FileError(f"{printable(name)}: the manifest {printable(path)} is not a JSON object")
    return manifest


def _blob(name: str, store: str, digest: str) -> str:
    match = _DIGEST.fullmatch(digest)
    if not match:
        raise FileError(
            f"{printable(name)}: the manifest names a layer '{printable(digest, 80)}', which is "
            "not a SHA-256 digest"
        )
    for separator in "-:":
        path = os.path.join(store, "blobs", f"sha256{separator}{match[1].lower()}")
        if os.path.isfile(path):
            return path
    raise not_found(
        f"{printable(name)}: the blob {digest} is missing in the store; 'ollama pull' the model "
        "again"
    )


def list_store(notes: Notes = None) -> Iterator[tuple[str, str, str | Exception]]:
    """Yields the kind, the loadable name, and the path or an error of each model in the stores."""
    for store in stores():
        seen = set()
        for root in ("manifests-v2", "manifests"):
            for parts, path in _tree(os.path.join(store, root), notes):
                name = _shortest(*parts)
                if name in seen:
                    continue
                seen.add(name)
                try:
                    yield "ollama", name, _source(name, store, path).path or ""
                except (FileError, VocabError, OSError) as e:
                    yield "ollama", name, e


def _tree(
    folder: str, notes: Notes = None, parts: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    for entry in scan(folder, notes):
        below = (*parts, entry.name)
        if len(below) == 4 and entry.is_file():
            yield below, entry.path
        elif len(below) < 4 and entry.is_dir():
            yield from _tree(entry.path, notes, below)


def _shortest(host: str, namespace: str, model: str, tag: str) -> str:
    """Returns the name that `ollama list` shows."""
    if host.lower() not in (_HOST, _V2_HOST):
        return f"ollama:{host}/{namespace}/{model}:{tag}"
    return f"ollama:{'' if namespace == 'library' else namespace + '/'}{model}:{tag}"
