"""Updates the output of the examples in the README and in docs/.

Review the diff before you commit it.

python -m tests.docs [PAGE...]
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import ELSEWHERE, PAGES, ROOT, run_page, surroundings


def main() -> None:
    here = [page for page in PAGES if page.relative_to(ROOT).as_posix() not in ELSEWHERE]
    for page in [Path(name).resolve() for name in sys.argv[1:]] or here:
        with tempfile.TemporaryDirectory(prefix="ggtok-docs-") as name:
            folder, home = Path(name), os.getcwd()
            surroundings(folder, page)
            os.chdir(folder)
            with contextlib.ExitStack() as after:
                after.callback(os.chdir, home)
                results = run_page(page, folder)
        text = page.read_text("utf-8")
        for block, shown in reversed(results):
            text = text[: block.begin] + shown + text[block.begin + len(block.text) :]
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
