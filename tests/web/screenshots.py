"""Takes pictures of the page's views, for docs/.

    python -m tests.web.screenshots MODEL.gguf [ANOTHER.gguf]

Each view is taken at 1,600 pixels in the light theme and at 360 pixels in the dark theme.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.web import pages
from tests.web.access import set_state

OUT = Path(__file__).parents[2] / "docs" / "page"

TEXT = """The tokenizer splits text into pieces: na\u00efve caf\u00e9, d\u00e9j\u00e0 vu,
\u0440\u0443\u0441\u0441\u043a\u0438\u0439.

def total(items):
    return sum(items)  # 1234567890
"""

VIEWS = {
    "models": {"view": "models"},
    "text": {"view": "text", "text": TEXT},
    "why": {"view": "why", "text": TEXT},
    "compare": {"view": "compare", "text": TEXT},
    "vocabulary": {"view": "vocabulary", "vocabulary.query": "token"},
    "map": {"view": "vocabulary", "vocabulary.panel": "map", "vocabulary.query": ""},
    "chat": {"view": "chat", "chat.show": "origins"},
    "file": {"view": "file"},
}


def main() -> None:
    OUT.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = pages.launch(playwright)
        for width, height, scheme in ((1600, 900, "light"), (360, 740, "dark")):
            viewport = {"width": width, "height": height}
            context = browser.new_context(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
            shown = pages.Shown(context.new_page())
            for name in sys.argv[:0:-1]:  # the first model is opened last, so it is selected
                shown.open(Path(name))
            for view, state in VIEWS.items():
                set_state(shown, state)
                shown.page.wait_for_timeout(5000)  # until messages have disappeared
                if view == "text":
                    shown.page.hover("gg-tokens [role=option] >> nth=3")
                picture = Image.open(io.BytesIO(shown.page.screenshot()))
                path = OUT / f"{view}-{width}.png"
                picture.convert("P", palette=Image.Palette.ADAPTIVE).save(path, optimize=True)
                print(f"{path.name}: {path.stat().st_size:,} bytes")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
