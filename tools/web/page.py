"""Assembles the page: one HTML file with its style, its scripts and the WebAssembly module.

The page loads nothing else, so it works from a server, as a file and as an e-mail attachment. Its
security policy allows only one script, identified by its hash, WebAssembly, and workers that this
script creates.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import runpy
import subprocess
from pathlib import Path

from tools.web.module import ROOT, BuildError

WEB = ROOT / "web"
NODE_MODULES = WEB / "node_modules"
VERSION = runpy.run_path(str(ROOT / "ggtok" / "_version.py"))["__version__"]

# `connect-src` lets users open models by URL. frame-ancestors is absent: it has no effect in a
# <meta>.
POLICY = (
    "default-src 'none'; script-src '{script}' 'wasm-unsafe-eval'; style-src '{style}'; "
    "worker-src blob:; connect-src 'self' https: http:; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


def build(wasm: Path, out: Path) -> None:
    """Writes ``page.html``, and ``licences.txt`` with the licences of the bundled packages."""
    script = _bundle("page/main.js", f"--define:VERSION={json.dumps(VERSION)}")
    icon = (WEB / "page" / "icon.svg").read_bytes()
    style = _bundle("page/style.css")
    parts = {
        "script": script,
        "style": style,
        "policy": POLICY.format(script=_hash(script), style=_hash(style)),
        # Chromium can't start module workers from file:// pages, so the worker is a classic script.
        "worker": f"(async()=>{{{_bundle('js/worker-main.js')}}})()",
        "icon": f"data:image/svg+xml;base64,{base64.b64encode(icon).decode()}",
        "wasm": base64.b64encode(gzip.compress(wasm.read_bytes(), mtime=0)).decode(),
    }
    template = (WEB / "page" / "page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)
    (out / "page.html").write_text(page, encoding="utf-8", newline="\n")
    (out / "licences.txt").write_text(licences(), encoding="utf-8", newline="\n")


def _bundle(entry: str, *options: str) -> str:
    """Returns a minified script (or style sheet) with everything that it imports."""
    esbuild = NODE_MODULES / ".bin" / "esbuild"
    if not esbuild.exists():
        raise BuildError("web/node_modules lacks esbuild: run npm ci --prefix web --ignore-scripts")
    command = [
        str(esbuild),
        entry,
        "--bundle",
        "--minify",
        "--keep-names",  # errors carry class names from the worker to the page
        "--format=esm",
        "--target=es2022",
        "--charset=utf8",
        "--external:node:*",  # modules that only Node imports
        "--define:import.meta.url=undefined",  # only Node reads it; a classic script can't name it
        "--legal-comments=none",
        "--log-level=error",
        *options,
    ]
    done = subprocess.run(command, cwd=WEB, capture_output=True)
    if done.returncode:
        raise BuildError(f"esbuild {entry} failed:\n{done.stderr.decode(errors='replace')}")
    text = done.stdout.decode().strip()
    # Escape whatever would end the element that contains the text, and carriage returns, which HTML
    # normalizes.
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r", "\\r")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def licences() -> str:
    """Returns the licences of the packages in the page, with their versions and hashes from
    package-lock.json."""
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    texts = []
    for path, package in sorted(lock["packages"].items()):
        folder = WEB / path
        if not path or package.get("dev") or path.endswith("@types/trusted-types"):
            continue
        name = path.removeprefix("node_modules/")
        found = next(folder.glob("LICEN[SC]E*"), None)
        licence = package["license"] if found is None else found.read_text(encoding="utf-8").strip()
        texts.append(f"{name} {package['version']}\n{package['integrity']}\n\n{licence}\n")
    return f"\n{'-' * 80}\n\n".join(texts)
