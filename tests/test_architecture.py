"""The structure of the code matches docs/architecture.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

from tests.chat.families import families

ROOT = Path(__file__).resolve().parents[1]
CEXT = ROOT / "cext"
PACKAGE = ROOT / "ggtok"

# For each folder of cext, the other folders whose files it may include. All of them are further up
# in this table, so there are no cycles.
MAY_USE = {
    "base": set(),
    "unicode": {"base"},
    "index": {"base", "unicode"},
    "cache": {"base"},
    "gguf": {"base", "index"},
    "pretok": {"base", "unicode"},
    "vocab": {"base", "unicode", "index", "gguf", "pretok"},
    "special": {"base", "index", "vocab"},
    "models": {"base", "unicode", "index", "cache", "gguf", "pretok", "vocab"},
    "decode": {"base", "unicode", "vocab"},
    "jinja": {"base", "unicode", "index"},
    "train": {"base", "unicode", "cache", "pretok"},
    "arrow": {"base"},
    "api": {"base", "unicode", "index", "gguf", "pretok", "vocab", "special", "models", "decode"},
    "chat": {"base", "unicode", "index", "jinja", "api"},
    "python": {"base", "unicode", "jinja", "arrow", "chat"},
}
# The same for jinja's folders: no dialect uses the other. core calls functions of the dialects only
# through a table of pointers, which compile.c selects.
MAY_USE_JINJA = {
    "core": set(),
    "llama": {"core"},
    "python": {"core"},
    "compile.c": {"llama", "python"},
}
# Folders that may include a public header, for its error and option types.
MAY_USE_GGTOK_H = {"arrow", "base", "gguf", "jinja", "pretok", "python", "train"}
MAY_USE_PUBLIC = {
    "ggtok.h": MAY_USE_GGTOK_H,
    "ggtok_chat.h": {"chat"},
    "ggtok_sample.h": {"models", "python"},
    "ggtok_trace.h": {"models", "python"},
    "ggtok_train.h": {"train", "python"},
}

# The same for the folders and single modules of ggtok/. errors.py and _version.py belong to base;
# only type checkers import _types.py.
MAY_USE_PYTHON = {
    "base": set(),
    "native": {"base"},
    "arrow": {"base", "native"},
    "sources": {"base", "native"},
    "loading": {"base", "native", "sources"},
    "text": {"base", "native", "arrow", "loading"},
    "chat": {"base", "native", "loading", "text"},
    "explain": {"base", "native", "loading"},
    "corpora": {"base", "native", "sources", "loading", "text", "chat"},
    "tokenizer": {
        "base",
        "native",
        "arrow",
        "loading",
        "text",
        "chat",
        "explain",
        "corpora",
    },
    "trim": {"base", "tokenizer"},
    "prompts": {"base", "native", "loading", "chat", "tokenizer"},
    "vocabularies": {
        *("base", "native", "sources", "loading", "text", "corpora", "tokenizer"),
    },
    "adapters": {"base", "native", "tokenizer", "vocabularies"},
    "inspect": {
        *("base", "native", "sources", "chat", "tokenizer", "vocabularies"),
    },
    "ggtok": {
        *("base", "text", "corpora", "tokenizer", "trim", "prompts", "vocabularies", "inspect"),
    },
    "distributed": {"base", "native", "text", "corpora", "ggtok"},
    "page": set(),
    "server": {"base", "native", "chat", "prompts", "page", "vocabularies", "ggtok"},
    "cli": {
        *("base", "native", "sources", "loading", "text", "chat", "explain", "corpora"),
        *("prompts", "vocabularies", "inspect", "ggtok", "page", "server"),
    },
}

# Hand-written files that may be longer than the limits below, and why.
LONGER_C = {"ggtok.h": "the public header, most of it documentation"}
LONGER_PYTHON = {"tokenizer.py": "every public method with its documentation"}
C_LINES, PYTHON_LINES = 600, 500
SOURCES = {".c", ".h", ".py", ".js", ".ts", ".html", ".css"}


def c_files() -> list[Path]:
    return sorted(p for p in CEXT.rglob("*") if p.suffix in (".c", ".h"))


def name_of(path: Path) -> str:
    return path.relative_to(CEXT).as_posix()


def includes(path: Path) -> list[str]:
    return re.findall(r'^#\s*include "([^"]+)"', path.read_text(), re.MULTILINE)


def folder_of(name: str) -> str:
    return name.split("/")[0]


def test_folders_only_use_what_they_may() -> None:
    order = list(MAY_USE)
    for folder, used in MAY_USE.items():
        assert all(order.index(other) < order.index(folder) for other in used), folder
    for path in c_files():
        name = name_of(path)
        for include in includes(path):
            assert (CEXT / include).is_file(), f"{name}: {include} is not written from cext/"
            if name in MAY_USE_PUBLIC:
                assert name != include == "ggtok.h", f"{name}: {include}"
                continue
            folder, other = folder_of(name), folder_of(include)
            if include in MAY_USE_PUBLIC:
                assert folder in MAY_USE_PUBLIC[include], f"{name}: {include}"
            else:
                assert other == folder or other in MAY_USE[folder], f"{name}: {include}"


def test_public_headers_have_tables_of_contents() -> None:
    """Each names functions and types that the header declares, in its order."""
    for name in MAY_USE_PUBLIC:
        text = (CEXT / name).read_text("utf-8")
        comment, _, rest = text.partition("*/")
        contents = comment.partition("Contents\n")[2].partition("\n *\n")[0]
        declarations = re.sub(r"/\*.*?\*/", "", rest, flags=re.DOTALL)
        listed = re.findall(r"\bggtok_\w+\b(?!\.h)", contents)
        places = [re.search(rf"\b{function}\b", declarations) for function in listed]
        assert len(listed) > 2 and all(places), name
        positions = [place.start() for place in places if place]
        assert positions == sorted(positions), name


def test_bindings_name_their_internal_headers_in_one_place() -> None:
    """cext/python and web/wasm use the C library through its public headers. Others are included
    only in python/internal.h, and one in web/wasm."""
    allowed = {"python", *MAY_USE_PUBLIC}
    for path in (CEXT / "python").iterdir():
        if path.suffix in (".c", ".h") and path.name != "internal.h":
            others = [name for name in includes(path) if folder_of(name) not in allowed]
            assert not others, f"{path.name}: {others}"
    wasm = {name for path in (ROOT / "web/wasm").glob("*.[ch]") for name in includes(path)}
    internal = {name for name in wasm if (CEXT / name).is_file()} - MAY_USE_PUBLIC.keys()
    assert internal == {"gguf/gguf.h"}


def test_the_dialects_of_templates_only_share_their_core() -> None:
    for path in c_files():
        used = {name.split("/")[1] for name in includes(path) if folder_of(name) == "jinja"}
        if folder_of(name_of(path)) == "jinja":
            own = name_of(path).split("/")[1]
            assert used <= {own, *MAY_USE_JINJA[own]}, path
        elif name_of(path) == "chat/transformers.c":
            assert used <= {"core", "python"}, path
        else:
            assert used <= {"core"}, path


def test_every_source_file_has_a_folder_and_every_folder_a_paragraph() -> None:
    for path in c_files():
        assert {name_of(path), folder_of(name_of(path))} & {*MAY_USE, *MAY_USE_PUBLIC}, path
    for folder in (*MAY_USE, "gen"):
        text = (CEXT / folder / "README.md").read_text()
        title, _, paragraph = text.partition("\n\n")
        assert title.startswith(f"# {folder}: "), folder
        assert len(paragraph.split()) > 15, folder
        assert "\n\n" not in paragraph.strip(), folder
    names = {path.name for path in CEXT.iterdir() if path.is_dir()} - {"__pycache__"}
    assert names == {*MAY_USE, "gen"}


def test_each_readme_says_what_its_folder_may_use() -> None:
    for folder, used in MAY_USE.items():
        text = " ".join((CEXT / folder / "README.md").read_text("utf-8").split())
        listed = text.partition("May use: ")[2].partition(". Start with")[0]
        assert set(re.findall(r"\b[a-z]+\b", listed)) & set(MAY_USE) == used, folder


# Texts of families that have other meanings, too: fields of requests, and a tag in conversations.
OTHER_MEANINGS = {"tool_calls", "function_calls", "<think>"}


def test_only_the_table_has_the_texts_of_families() -> None:
    """llama-server's families of templates are recognized in one place, cext/chat/families.c."""
    texts = {text for row in families() for text in (*row.present, *row.absent)} - OTHER_MEANINGS
    assert len(texts) > 40 and "chat_format=llm-jp-harmony-v1" in texts
    folders = "ggtok/chat ggtok/server ggtok/inspect web/js web/page cext/python".split()
    for folder in folders:
        paths = [path for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES]
        assert paths, folder
        for path in paths:
            source = path.read_text("utf-8")
            found = {text for text in texts if text in source}
            assert not found, f"{path.relative_to(ROOT)}: {found}"


def test_no_include_cycles() -> None:
    """A .c file and the header with the same name count as one file."""
    uses: dict[str, set[str]] = {}
    for path in c_files():
        name = name_of(path)[:-2]
        used = {include[:-2] for include in includes(path)} - {name}
        uses.setdefault(name, set()).update(used)
    TopologicalSorter(uses).prepare()  # raises CycleError, which names the files in the cycle


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in PACKAGE.rglob("*.py")}


def imported(path: Path) -> set[str]:
    """Returns the package's modules that a file imports, including imports in functions and for
    type checkers."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in MODULES else str(node.module) for name in whole}
    return names & MODULES.keys()


def test_no_import_cycles() -> None:
    uses = {name: imported(path) for name, path in MODULES.items()}
    assert "ggtok.native" in uses["ggtok.loading.loaded"]
    TopologicalSorter(uses).prepare()  # raises CycleError, which names the modules in the cycle


def room_of(module: str) -> str:
    parts = module.split(".")
    room = parts[1] if len(parts) > 1 else "ggtok"
    return "base" if room in ("errors", "_version") else room


def test_rooms_only_use_what_they_may() -> None:
    order = list(MAY_USE_PYTHON)
    found: dict[str, set[str]] = {room: set() for room in order}
    for name, path in MODULES.items():
        if name not in ("ggtok._types", "ggtok.__main__"):
            room = room_of(name)
            used = {room_of(other) for other in imported(path)} - {room, "_types"}
            assert used <= MAY_USE_PYTHON[room], f"{name}: {used - MAY_USE_PYTHON[room]}"
            found[room] |= used
    for room, used in MAY_USE_PYTHON.items():
        assert all(order.index(other) < order.index(room) for other in used), room
        assert used == found[room], f"{room}: {used - found[room]} is not used"


def test_few_modules_touch_the_c_library() -> None:
    for name, path in MODULES.items():
        if "ggtok._ffi" in path.read_text("utf-8"):
            assert name.startswith("ggtok.native"), name


def lines(path: Path) -> int:
    return path.read_text().count("\n")


def test_files_are_short_enough_to_read() -> None:
    too_long = {
        name_of(path)
        for path in c_files()
        if lines(path) > C_LINES and "DO NOT EDIT" not in path.read_text()[:300]
    }
    assert too_long == set(LONGER_C)
    assert {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if lines(path) > PYTHON_LINES
    } == set(LONGER_PYTHON)


def test_styles_use_the_scales_of_fonts_and_distances() -> None:
    """The page's sizes are the variables that style.css defines, multiples of the font's size, or
    hairlines. On phones, inputs have 16 pixels, since Safari enlarges the page for smaller ones."""
    odd = []
    for path in sorted((ROOT / "web" / "page").glob("*.css")):
        for name, value in re.findall(r"^\s*([a-z-]+): ([^;]+);", path.read_text(), re.M):
            size = re.match(r"font(-size)?$", name) and value not in ("inherit", "16px")
            distance = re.match(r"((row|column)-)?gap$|(padding|margin)(-[a-z-]+)?$", name)
            lengths = re.findall(r"[\d.]+(?:px|rem)", value) if size or distance else []
            odd += [f"{path.name}: {name}: {value}" for length in lengths if length != "1px"]
    assert odd == []


def test_no_two_modules_have_one_name() -> None:
    """A reader of a traceback knows a module by its file's name."""
    names = Counter(path.name for path in PACKAGE.rglob("*.py"))
    assert [name for name, n in names.items() if n > 1] == ["__init__.py"]


def test_no_test_module_imports_another() -> None:
    """Shared helpers are in separate modules, next to their users or in tests/support."""
    for path in (ROOT / "tests").rglob("*.py"):
        found = re.search(
            r"^\s*(?:from|import) tests\.[\w.]*\btest_\w+", path.read_text("utf-8"), re.M
        )
        assert not found, f"{path}: {found and found[0]}"


DESIGN = ROOT / "docs" / "design"
CLAIM = re.compile(r"^\*\*Claim (\w+\.\d+)", re.MULTILINE)


def test_design_pages_contain_no_timings() -> None:
    """Design pages contain no measured times: they belong in docs/performance.md."""
    for page in DESIGN.glob("*.md"):
        found = re.search(r"\d\s*(MB/s|GB/s|us\b|ns\b|ms\b)", page.read_text())
        assert not found, f"{page.name}: {found and found[0]}"


def test_every_claim_has_a_test() -> None:
    """Each claim in docs/design has a test that names it, as in `Claim partition.2`."""
    claims = {
        claim: page.name
        for page in DESIGN.glob("*.md")
        for claim in CLAIM.findall(page.read_text())
    }
    assert len(claims) > 15
    named: set[str] = set()
    for path in (ROOT / "tests").rglob("*"):
        if path.suffix in (".py", ".c", ".h", ".cpp") and path != Path(__file__).resolve():
            named |= set(re.findall(r"Claim (\w+\.\d+)", path.read_text()))
    assert set(claims) - named == set()
    assert named - set(claims) == set()


def test_lists_are_created_empty() -> None:
    """Lists are created empty, so that the garbage collector never sees NULL items. In addition, no
    code depends on the memory layout of CPython's objects."""
    for path in c_files():
        name, text = name_of(path), path.read_text()
        if name != "python/list.h":
            assert not re.search(r"PyTuple_New|PyList_New\((?!0\))", text), name
        assert not re.search(r"Py(List|Tuple|Long|Unicode|Bytes)Object|->ob_|Py\w+_GET_", text), (
            name
        )


def test_only_known_modules_have_locks() -> None:
    """A fork acquires all locks (base/shared_lock.h), except those in api/batch.c, which belong to
    one call."""
    lock = re.compile(
        r"\batomic_flag\b|\bpthread_(?:mutex|rwlock|spin|once|cond)|\block_init\(|LOCK_STATIC"
    )
    found = {name_of(path) for path in c_files() if lock.search(path.read_text())}
    assert found == {"base/threads.h", "base/shared_lock.c", "api/batch.c"}
    lock = re.compile(
        r"\b(?:R?Lock|Condition|Semaphore|Barrier)\(|from functools .*cached_prop|functools\.cac"
    )
    assert {name for name, path in MODULES.items() if lock.search(path.read_text("utf-8"))} == {
        "ggtok.chat.compiled",  # a child process gets a new one
        "ggtok.server.limits",  # a semaphore for the event loop
        "ggtok.server.registry",
        "ggtok.sources.hub",
    }


def test_only_the_child_process_imports_other_libraries() -> None:
    """Only originals.py, which runs in a child process, reads sources with other libraries'
    packages."""
    uses = re.compile(r"^\s*(?:from|import) (?:tokenizers|sentencepiece|tiktoken)\b", re.M)
    found = {name for name, path in MODULES.items() if uses.search(path.read_text("utf-8"))}
    assert found == {
        "ggtok.vocabularies.convert.originals",
        "ggtok.vocabularies.train_unigram",  # trains on the caller's texts
    }
