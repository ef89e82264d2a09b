"""Creates stores of models as other programs write them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
LIBRARY = "registry.ollama.ai/library"


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


class Ollama:
    """A store as Ollama writes it (manifest/manifest.go, manifest/paths.go)."""

    TYPES = "application/vnd.ollama.image."

    def __init__(self, root: Path) -> None:
        self.root = root

    def blob(self, data: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        write(self.root / "blobs" / f"sha256-{digest}", data)
        return {"mediaType": self.TYPES + kind, "digest": f"sha256:{digest}", "size": len(data)}

    def manifest(self, layers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        config = self.blob(b'{"model_format":"gguf","model_family":"llama"}', "config")
        config["mediaType"] = "application/vnd.docker.container.image.v1+json"
        kind = "application/vnd.docker.distribution.manifest.v2+json"
        return {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers, **more}

    def add(self, path: str, manifest: dict[str, Any], root: str = "manifests") -> Path:
        return write(self.root / root / path, json.dumps(manifest).encode())

    def model(self, path: str, data: bytes, template: str | None = None) -> Path:
        layers = [self.blob(data, "model"), self.blob(b"a license", "license")]
        if template is not None:
            layers.append(self.blob(template.encode(), "template"))
        return self.add(path, self.manifest(layers))


def hub_cache(folder: Path, repo: str, files: dict[str, bytes], ref: str = "main") -> Path:
    """Writes a cache like huggingface_hub's: blobs by hash, links to them by name, refs."""
    root = folder / ("models--" + repo.replace("/", "--"))
    for name, content in files.items():
        blob = root / "blobs" / hashlib.sha256(content).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link = root / "snapshots" / COMMIT / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    (root / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
    (root / "refs" / ref).write_text(COMMIT)
    return root
