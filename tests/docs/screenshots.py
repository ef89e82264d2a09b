"""Takes the pictures for docs/python.md: what a notebook shows for ``tok.show``.

    python -m tests.docs.screenshots     # needs Chromium and the packages playwright, pillow

The vocabulary is llama-bpe from llama.cpp, so the tokens are those of a widely used model.
"""

from __future__ import annotations

import io
from pathlib import Path
from shutil import which
from typing import Any

import ggtok
from fixtures.fetch import fetch
from tests.support.vocabularies import real

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
SCHEMES = {"light": ("#ffffff", "#1f2328"), "dark": ("#111111", "#e6edf3")}
TEMPLATE = "meta-llama-Llama-3.2-3B-Instruct.jinja"
_WIDTH, _SCALE = 500, 2  # a picture's width in CSS pixels, and screen pixels per CSS pixel
_COLORS = 64

TEXT = (
    "Tokenizers cut text into pieces: words, parts of words, 3.14159,\n"
    "\tdef add(a, b):  return a + b\n"
    "Grüße, κόσμε, привет and 👩‍🚀!"
)
HOSTILE = (
    "<script>alert('no')</script> &lt;b&gt; </bdi></div>\n"
    "\u202egnp.exe\u202c \x1b[31mred\x1b[0m \x07 \ufeff <|eot_id|>\n"
    "e\u0301\u0301\u0301 \u2028 \U000e0041 \x00"
)
MESSAGES = [
    {"role": "system", "content": "Answer in one word."},
    {"role": "user", "content": "What is <|eot_id|>?"},
    {"role": "assistant", "content": "Markup."},
    {"role": "user", "content": "And 2 + 2?"},
]


def pages() -> dict[str, str]:
    """Returns the HTML for each picture."""
    tok = ggtok.load(real("llama-bpe"))
    template = (fetch("templates") / TEMPLATE).read_text("utf-8")
    return {
        "text": tok.show(TEXT)._repr_html_(),
        "hostile": tok.show(HOSTILE)._repr_html_(),
        "chat": tok.show(
            MESSAGES, template=template, date_string="26 Nov 2026", add_generation_prompt=True
        )._repr_html_(),
    }


def small(png: bytes) -> bytes:
    """Reduces the number of colors, which shrinks the file to a third."""
    from PIL import Image

    image = Image.open(io.BytesIO(png)).convert("RGB")
    out = io.BytesIO()
    image.quantize(_COLORS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=which("chromium"))
        for scheme, (background, color) in SCHEMES.items():
            page: Any = browser.new_page(
                color_scheme=scheme,
                device_scale_factor=_SCALE,
                viewport={"width": _WIDTH, "height": 60},
            )
            for name, html in pages().items():
                style = f"margin:12px;background:{background};color:{color};font-size:14px"
                page.set_content(f"<!doctype html><body style='{style}'>{html}")
                picture = FOLDER / f"show-{name}-{scheme}.png"
                picture.write_bytes(small(page.screenshot(full_page=True)))
                print(f"{picture.name}: {picture.stat().st_size:,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
