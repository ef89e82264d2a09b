"""Writes all generated tables; with --check, compares them with the committed files instead.

    python cext/gen [--check]

Needs the packages of the extra `test`. Exits with status 1 if --check finds a difference.
"""

import sys

import case_tables
import pretok_dfa
import pretok_python
import unicode_tables


def main(check: bool) -> int:
    differ = []
    for module in (unicode_tables, pretok_dfa, pretok_python, case_tables):
        text, output = module.generate(), module.OUTPUT
        if text is None:
            continue
        if not check:
            output.write_text(text, encoding="utf-8", newline="\n")
        elif output.read_text(encoding="utf-8") != text:
            differ.append(output.name)
    if differ:
        print(f"{', '.join(differ)}: run `python cext/gen`, and commit the files", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--check"]))
