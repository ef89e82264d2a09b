"""Hooks that mkdocs calls while it builds the site (mkdocs.yml): they define the navigation,
generate pages, and adapt links to files outside docs/."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import reference

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs" / "README.md"
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
_TO_HEADING = re.compile(r"\]\([^)]*#[^)]*\)")
_TEXT_AND_LINK = re.compile(r"\[([^\[\]]+)" + LINK.pattern)
_DEMONSTRATED = ("bpe-gpt2", "spm", "wpm", "ugm", "rwkv")
_VIEW = """

## Try it

This is the page with the project's small test vocabularies. You can drop your own GGUF file on it.

<iframe src="../page.html" title="ggtok view" loading="lazy"
        style="width: 100%; height: 50rem; border: 0"></iframe>
"""
_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".c": "c", ".h": "c", ".py": "python", ".md": "markdown"}


def on_config(config: Any) -> Any:
    config.nav = navigation(INDEX.read_text("utf-8"))
    return config


def navigation(index: str) -> list[Any]:
    """Returns the sections of docs/README.md, each with the pages that it links to, in order."""
    nav: list[Any] = [at_site("docs/README.md")]
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        whole = _TO_HEADING.sub("", text)  # a page belongs to the section that links to all of it
        pages = [at_site(file) for file in linked(whole, "docs/README.md") if is_page(file)]
        if title == "Reference":
            pages += reference.PAGES
        nav.append({title: list(dict.fromkeys(pages))})
    return nav


def on_files(files: Any, config: Any) -> Any:
    """Adds the reference, the pages outside docs/, and the source files that pages link to."""
    from mkdocs.structure.files import File

    made = {name: write() for name, write in reference.PAGES.items()}
    pages = ["docs/" + file.src_uri for file in files if file.src_uri.endswith(".md")]
    to_do = [*pages, "README.md"]
    for page in to_do:  # a list that grows during the loop
        text = (ROOT / page).read_text("utf-8")
        name = at_site(page)
        if page not in pages:
            made[name] = text
        for file in filter(lambda file: (ROOT / file).is_file(), linked(text, page)):
            if is_page(file) and file not in to_do:
                to_do.append(file)
            elif not file.startswith("docs/") and not is_page(file):
                made[at_site(file)] = source(file)
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "page.html", content=demonstration()))
    return files


def demonstration() -> bytes:
    """Returns the page of `ggtok view` with vocabularies from fixtures/."""
    from ggtok import page

    paths = [ROOT / "fixtures" / "chat.gguf"]
    paths += (ROOT / "fixtures" / "gguf" / f"{name}.gguf" for name in _DEMONSTRATED)
    return page.html(page.embed_model(path.stem, path.read_bytes(), path.name) for path in paths)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Adapts links to the site. The site has no pages for folders, so links to them become text."""
    here = page.file.src_uri
    if here.startswith(("reference/", "source/")):
        return markdown
    base = of_site(here)

    def unlinked(found: re.Match[str]) -> str:
        is_folder = (ROOT / resolved(found[2], base)).is_dir()
        return found[1] if is_folder else found[0]

    def link(found: re.Match[str]) -> str:
        to = at_site(resolved(found[1], base))
        return f"]({posixpath.relpath(to, posixpath.dirname(here) or '.')}{found[2] or ''})"

    if here == "viewing.md":
        markdown += _VIEW
    return _outside_code(markdown, lambda part: LINK.sub(link, _TEXT_AND_LINK.sub(unlinked, part)))


def _outside_code(markdown: str, change: Any) -> str:
    done, at = [], 0
    for fence in _FENCED.finditer(markdown):
        done += [change(markdown[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*done, change(markdown[at:])])


def linked(text: str, page: str) -> list[str]:
    """Returns the paths, from the root, of the project's files that a page links to."""
    return [resolved(found[1], page) for found in LINK.finditer(_FENCED.sub("", text))]


def resolved(target: str, page: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def is_page(file: str) -> bool:
    """Whether a file is a page: a Markdown file in docs/ or in the root folder."""
    return file.endswith(".md") and (file.startswith("docs/") or "/" not in file)


def at_site(file: str) -> str:
    """Returns the path of a file of the project in the site."""
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    return f"project/{file}" if is_page(file) else f"source/{file}.md"


def of_site(name: str) -> str:
    return name.removeprefix("project/") if name.startswith("project/") else f"docs/{name}"


def source(file: str) -> str:
    """Returns a page with a file's source code, excluded from the site's search."""
    language = _LANGUAGES.get(Path(file).suffix, "")
    text = (ROOT / file).read_text("utf-8")
    return f"---\nsearch: {{ exclude: true }}\n---\n\n# {file}\n\n````{language}\n{text}````\n"
