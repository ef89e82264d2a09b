"""The worked examples and drawings in docs/design are correct, and the files named there exist.

The tests read the examples from the pages, so a page and its test can't diverge.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import regex

import ggtok
from ggtok.text.batch_encoding import encode_blocks
from tests.c.build import STEPS
from tests.docs.pages import ROOT
from tests.support.patch import GGUF
from tests.support.programs import Build
from tests.support.vocabularies import fixture

DESIGN = ROOT / "docs" / "design"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
Words = Callable[[str, str], list[str]]


def drawing(where: str, begins: str) -> list[str]:
    """Returns the lines of the first drawing in which a line begins with these words. `where` is a
    page ("bpe"), or a section of it ("types: WPM"), by the beginning of its heading."""
    page, _, section = where.partition(": ")
    text = (DESIGN / f"{page}.md").read_text("utf-8")
    if section:
        text = text[text.index(f"\n## {section}") :]
    for block in re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines: list[str] = block.splitlines()
        if any(line.startswith(begins) for line in lines):
            return lines
    raise AssertionError(f"{where} has no drawing with {begins!r}")


def line(where: str, begins: str) -> str:
    """Returns the rest of the drawing's line that begins with these words."""
    found = next(text for text in drawing(where, begins) if text.startswith(begins))
    return found.removeprefix(begins)


def first_column(page: str, begins: str) -> str:
    """Returns the line up to its first run of three or more spaces."""
    return re.split(r"\s{3,}", line(page, begins).strip())[0]


def load(like: str, tokens: dict[str, int], **keys: object) -> ggtok.Tokenizer:
    """Loads a fixture with other tokens (types by text) and other values of keys."""
    gguf = GGUF.read(fixture(like))
    gguf.set("tokenizer.ggml.tokens", list(tokens))
    gguf.set("tokenizer.ggml.token_type", list(tokens.values()))
    for key, value in keys.items():
        gguf.set(f"tokenizer.ggml.{key}", value)
    return ggtok.load(gguf.dump())


def pieces(tok: ggtok.Tokenizer, text: str) -> list[str]:
    return [tok.token_text(id).decode() for id in tok.encode(text, add_special=False)]


def bpe(tokens: dict[str, int], merges: list[str]) -> ggtok.Tokenizer:
    letters = [
        token.decode()
        for token in GGUF.read(fixture("bpe-gpt2")).strings("tokenizer.ggml.tokens")[:256]
    ]
    keys = dict.fromkeys(("bos_token_id", "eos_token_id", "unknown_token_id"), 0)
    return load("bpe-gpt2", {**dict.fromkeys(letters, NORMAL), **tokens}, merges=merges, **keys)


def test_partition() -> None:
    page = (DESIGN / "partition.md").read_text("utf-8")
    assert "Tokens `<a>`, `<ab>`, `b><`; text `x<ab><a>`:" in page
    tok = bpe(dict.fromkeys(["<a>", "<ab>", "b><"], USER_DEFINED), [])
    fragments = re.findall(r"[^\s│\"]+", line("partition", "fragments "))
    assert pieces(tok, "x<ab><a>") == fragments
    # The drawing shows each token under the position where it ends.
    drawn = drawing("partition", "place ")
    text = "x<ab><a>"
    under = dict(zip(line("partition", "place ").split(), text, strict=True))
    assert "".join(under.values()) == "".join(line("partition", "text ").split())
    for token in ("<a>", "b><", "<ab>"):
        (row,) = (text for text in drawn if f"{token}  " in text and "candidate of end" in text)
        end = int(re.findall(r"candidate of end (\d)", row)[0])
        assert text[:end].endswith(token)
        column = row.index("└")
        assert drawn[0][column] == str(end - 1), f"{token} is not drawn under its last byte"


def test_bpe() -> None:
    merges = re.findall(r'"(\w+ \w+)"', line("bpe", "merges "))
    symbols = re.findall(r"(\w+)=", line("bpe", "symbols "))
    tok = bpe(dict.fromkeys([s for s in symbols if len(s) > 1], NORMAL), merges)
    states = [drawing("bpe", "word ")[n] for n in (3, 5, 6, 7)]
    states = [
        re.split(r"   (?:least|no pair)|^word", state)[-2 if n else 1]
        for n, state in enumerate(states)
    ]
    word = line("bpe", "word ").split()
    ranks = {tuple(merge.split()): rank for rank, merge in enumerate(merges)}
    for n, state in enumerate(states):
        assert state.split() == word, n
        pairs = [(ranks.get(pair, 99), at) for at, pair in enumerate(itertools.pairwise(word))]
        if n == 0:
            drawn = line("bpe", "rank ").split("least")[0].split()
            shown = [rank if rank == "-" else int(rank) for rank in drawn]
            assert shown == ["-" if rank == 99 else rank for rank, _ in pairs]
        rank, at = min(pairs)
        if rank == 99:
            break
        word[at : at + 2] = ["".join(word[at : at + 2])]
    assert pieces(tok, "hello") == word == ["hell", "o"]


def test_misses() -> None:
    """The drawing agrees with the caches' hit and miss counters for its text."""
    words = line("caches: Misses", "words ").split()
    caches = line("caches: Misses", "caches ").split()
    out = drawing("caches: Misses", "out ")
    hits = [int(id) for id in line("caches: Misses", "out ").split("the")[0].split()]
    ids = dict(
        zip((w for w, c in zip(words, caches, strict=True) if c == "hit"), hits, strict=True)
    )
    ids_of = {word: [id] for word, id in ids.items()} | {"quux": [5, 6], "zyxt": [7]}
    assert line("caches: Misses", "ids ").split("stored")[0].split() == ["5", "6", "7"]
    assert [int(id) for id in out[-1].split("moved")[0].split()[1:]] == [
        id for word in words for id in ids_of[word]
    ]
    before = [sum(c == "hit" for c in caches[:n]) for n, c in enumerate(caches) if c == "miss"]
    drawn = re.findall(r"\d: (\w+), after (\d)", "".join(out))
    assert drawn == [(w, str(n)) for w, n in zip(["quux", "zyxt", "quux"], before, strict=True)]
    tok = ggtok.load(fixture("bpe-gpt2"))
    tok.encode(" the runs.")
    earlier = tok.cache_info()
    text = " " + " ".join(words[:-1]) + words[-1]
    assert tok.encode(text) == [
        id
        for word in text.replace(".", " .").split()
        for id in tok.encode(word if word == "." else " " + word)
    ]
    tok.cache_clear()
    tok.encode(" the runs.")
    tok.encode(text)
    info = tok.cache_info()
    assert earlier.misses == 3
    assert (info.hits, info.misses) == (caches.count("hit"), 3 + caches.count("miss"))


@pytest.fixture(scope="module")
def words(c_program: Build) -> Words:
    """Returns a function that splits a text into words: `words(pre_tokenizer_name, text)`."""
    program = c_program("words", *STEPS)  # reuses the object files of `work`

    def run(name: str, text: str) -> list[str]:
        completed = subprocess.run([program, name, text], capture_output=True, check=True)
        return re.findall(r"^\[(.*?)\]$", completed.stdout.decode(), re.MULTILINE | re.DOTALL)

    return run


def test_pretokenizers(words: Words) -> None:
    (head, *rows) = drawing("pretokenizers", '"Tel. 12345"')
    assert re.findall(r'"([^"]*)"', rows[-1]) == words("falcon", "Tel. 12345")
    assert re.findall(r'"([^"]*)"', rows[-2]) == words("gpt-2", "Tel. 12345")
    assert "punctuation │ gpt2 │ digits in threes" in head
    assert words("gpt-2", "a  b") == ["a", " ", " b"]
    page = (DESIGN / "pretokenizers.md").read_text("utf-8")
    assert "on `a  b`, gpt2 reads" in page
    assert "The words are `a`, ` `, ` b`." in page


def test_windows(words: Words) -> None:
    """Each mask in the drawing results from the operations above it."""
    text = "I'm OK. The end."
    drawn = drawing("pretokenizers: Windows", "text ")
    assert "".join(drawn[0].removeprefix("text ").split()) == text.replace(" ", "")

    def mask(begins: str) -> int:
        (row,) = (row for row in drawn if row.startswith(begins))
        bits = re.findall(r"[01](?: [01]){15}", row)[0].split()
        return sum(1 << n for n, bit in enumerate(bits) if bit == "1")

    def of(wanted: Callable[[str], bool]) -> int:
        return sum(1 << n for n, c in enumerate(text) if wanted(c))

    letter, space = of(str.isalpha), of(str.isspace)
    punct = of(lambda c: not c.isalnum() and not c.isspace())
    assert (mask("letter  "), mask("space "), mask("punct ")) == (letter, space, punct)
    starts = letter & ~(letter << 1)
    assert mask("letter & ") == starts
    starts &= ~(space << 1)
    assert mask("       & ~(space") == starts
    starts |= space & ~(space << 1)
    assert mask("| space") == starts
    starts |= punct & ~(punct << 1)
    assert mask("| punct") == starts
    starts &= ~(1 << text.index("m"))
    assert mask("contraction") == starts
    cut = [n for n in range(len(text)) if starts >> n & 1]
    expected = [text[i:j] for i, j in zip(cut, [*cut[1:], len(text)], strict=True)]
    drawn = line("pretokenizers: Windows", "words ").split("│")
    shown = [word.strip().strip("'") for word in drawn]
    assert shown == [word.strip("'") for word in expected]
    assert expected == words("llama-bpe", text)


def test_wpm() -> None:
    looked_up = re.findall(r"▁\S+", line("types: WPM", "looked up "))
    specials = {"[PAD]": CONTROL, "[UNK]": UNKNOWN, "[CLS]": CONTROL, "[SEP]": CONTROL}
    tok = load("wpm", {**specials, "[MASK]": CONTROL, **dict.fromkeys(looked_up, NORMAL)})
    text = re.split(r"   +", line("types: WPM", "text ").strip())[0]
    assert text == "Straße,  naïve"
    assert pieces(tok, text) == looked_up == ["▁straße", "▁,", "▁naive"]


def test_rwkv() -> None:
    tokens = line("types: RWKV", "tokens ").split()
    tok = load("rwkv", {"end": CONTROL, **dict.fromkeys(tokens, NORMAL)})
    parts = [part.split() for part in first_column("types: RWKV", "text ").split("│")]
    longest = [part.split() for part in first_column("types: RWKV", "longest ").split("│")]
    assert len(parts) == len(longest) == 2
    for part, ids in zip(parts, longest, strict=True):
        assert pieces(tok, "".join(part)) == ids
    assert pieces(tok, "".join([*parts[0], *parts[1]])) == [*longest[0], *longest[1]]
    # The drawing cuts the text between two characters that no token contains side by side.
    assert not any(parts[0][-1] + parts[1][0] in token for token in tokens)


def test_spm() -> None:
    drawn = re.findall(r"(\S+) \((-\d+)\)", line("types: SPM", "tokens "))
    scores = {token: float(score) for token, score in drawn}
    one = {c: -100.0 for token in scores for c in token} | {"t": -100.0, "a": -100.0}
    table = {"<unk>": 0.0, "<s>": 0.0, "</s>": 0.0, **one, **scores}
    types = dict(zip(table, [UNKNOWN, CONTROL, CONTROL], strict=False))
    tok = load("spm", {t: types.get(t, NORMAL) for t in table}, scores=list(table.values()))
    text = line("types: SPM", "text ").split()
    assert "".join(text) == "▁the▁cat"
    ids = first_column("types: SPM", "ids ").replace("│", " ").split()
    assert pieces(tok, "the cat") == ids
    # The drawing cuts the text at the only position between two characters that no token contains
    # side by side.
    cuts = [n for n in range(1, 8) if not any("".join(text[n - 1 : n + 1]) in t for t in scores)]
    before, after = first_column("types: SPM", "cut ").split("│")
    assert cuts == [len(before.split())]
    assert before.split() + after.split() == text


def test_ugm() -> None:
    drawn = re.findall(r"(\S+) \((-\d+)\)", line("types: UGM", "tokens "))
    scores = {token: float(score) for token, score in drawn}
    text = line("types: UGM", "normalized ").split()
    worst = min(scores.values()) - 10  # the score that llama.cpp uses for unknown tokens
    best = [0.0]
    for end in range(1, len(text) + 1):
        sums = [best[end - 1] + worst]
        for begin in range(end):
            token = "".join(text[begin:end])
            if token in scores:
                sums.append(best[begin] + scores[token])
        best.append(max(sums))
    assert [int(best_) for best_ in best] == [
        int(number) for number in first_column("types: UGM", "best ").split()
    ]
    tok = load(
        "ugm",
        {"<pad>": CONTROL, "</s>": CONTROL, "<unk>": UNKNOWN, **dict.fromkeys(scores, NORMAL)},
        scores=[0.0, 0.0, 0.0, *scores.values()],
    )
    assert pieces(tok, "hello") == ["▁hello"]
    assert pieces(tok, "he") == ["▁he"]


def test_plamo() -> None:
    text = line("types: PLaMo2", "text ").split()
    tokens = line("types: PLaMo2", "tokens ").split("S =")[0].split()
    suffixes = {token[n:] for token in tokens for n in range(len(token))}
    assert suffixes == set(re.findall(r"\w+", line("types: PLaMo2", "tokens ").split("S =")[1]))
    states = re.findall(r"\w+", line("types: PLaMo2", "state ").split('""')[0])
    for at, state in enumerate(states):
        rest = "".join(text[at:])
        assert state == max((s for s in suffixes if rest.startswith(s)), key=len)


def test_tries() -> None:
    tokens = line("loading: Tries", "tokens ").split()
    text = first_column("loading: Tries", "text ")
    longest = re.findall(r"longest match: (\S+)", line("loading: Tries", "text "))
    prefixes = re.findall(r"prefixes: (.*)", line("loading: Tries", "text "))[0].split(", ")
    assert prefixes == [token for token in tokens if text.startswith(token)]
    specials = {"[PAD]": CONTROL, "[UNK]": UNKNOWN, "[CLS]": CONTROL, "[SEP]": CONTROL}
    wpm = load("wpm", {**specials, "[MASK]": CONTROL, **dict.fromkeys(tokens, NORMAL)})
    assert pieces(wpm, text.removeprefix("▁")) == longest
    drawn = " ".join(drawing("loading: Tries", "root "))
    assert set(re.findall(r"token (\S+)", drawn)) == set(tokens)


def test_blocks() -> None:
    drawn = drawing("blocks", "block ")
    read, _ = line("blocks", "block ").strip().split("│")
    kept = re.findall(r'next block:  "(.*?)"', "".join(drawn))[0]
    tok = ggtok.load(fixture("bpe-gpt2"))
    first, *_ = encode_blocks(tok._loaded, [read, " and so on"], block_bytes=len(read))
    cut = len(tok.decode_bytes(first))
    assert read[cut:] == kept
    assert line("blocks", "encoded ").strip().split("   ")[0] == read[:cut]
    assert drawn[1].index("▲") == drawn[0].index(read) + cut


def test_architecture() -> None:
    """The ids in the example of docs/architecture.md are right."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tok = ggtok.load(fixture("bpe-llama3"))
    text = re.findall(r'^ "(Hi.*)"$', page, re.MULTILINE)[0]
    drawn = re.findall(r'^ ids (\[.*?\])\s+──►  decode/  ──►  "(.*)"$', page, re.MULTILINE)
    ids = tok.encode(text, add_special=False, parse_special=True)
    assert drawn == [(str(ids), text)]
    assert tok.decode(ids) == text
    assert pieces(tok, text.split(">")[1]) == [tok.token_text(id).decode() for id in ids[3:]]


def test_glossary_is_in_order() -> None:
    terms = re.findall(r"^\| ([^|]+?) \|", (DESIGN / "glossary.md").read_text("utf-8"), re.M)[2:]
    assert len(terms) > 35
    assert terms == sorted(terms, key=lambda term: regex.sub(r"\W", "", term.lower()))


PAGES = sorted(DESIGN.glob("*.md"))
_SOURCE = re.compile(r"`((?:[\w.-]+/)*[\w-]+(?:\.(?:c|h|cpp|py|inc|md)|/))`")


# Pages name files relative to the root, to cext/, or to the folder that the page describes.
_FOLDERS = (
    "",
    "cext",
    "cext/jinja",
    "cext/train",
    "cext/models",
    "cext/models/bpe",
    "cext/pretok",
    "cext/pretok/windows",
)


def path_exists(path: str) -> bool:
    return any((ROOT / folder / path).exists() for folder in _FOLDERS)


GUIDES = [ROOT / "docs" / "architecture.md", *sorted((ROOT / "cext").glob("*/README.md"))]


@pytest.mark.parametrize(
    "page", [*PAGES, *GUIDES], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_files_that_a_page_names_exist(page: Path) -> None:
    for path in _SOURCE.findall(page.read_text("utf-8")):
        assert path_exists(path) or (page.parent / path).exists(), f"{page}: {path}"


def test_pages_that_comments_name_exist() -> None:
    sources = [p for folder in ("cext", "ggtok") for p in (ROOT / folder).rglob("*.*")]
    named = {
        (path.name, page)
        for path in sources
        if path.suffix in (".c", ".h", ".py", ".inc")
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text("utf-8"))
    }
    assert len(named) > 10
    assert {(name, page) for name, page in named if not (ROOT / page).is_file()} == set()


def test_tests_that_pages_name_exist() -> None:
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    named = {
        name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))
    }
    assert len(named) >= 2
    assert {name for name in named if f"def {name}(" not in tests} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_its_readers_and_tests(page: Path) -> None:
    if page.stem == "glossary":
        return
    text = page.read_text("utf-8")
    assert re.search(r"^For anyone who ", text, re.MULTILINE), "for whom is it?"
    assert re.search(r"`tests/", text), "which tests hold it?"
    assert re.search(r"^(```|    \S)", text, re.MULTILINE), "neither an example nor a drawing"


def test_functions_that_misses_names_are_where_it_says() -> None:
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+) \|", (DESIGN / "caches.md").read_text(), re.M)
    source = {
        path.name: path.read_text()
        for path in (ROOT / "cext").rglob("*.[ch]")
        if path.parent.name in ("models", "bpe", "cache")
    }
    everything = "".join(source.values())
    names = re.findall(r"`(\w+)`", "".join(rows))
    assert len(names) >= 8
    for name in names:
        assert re.search(rf"\b(ggtok_)?{name}\(", everything), name
    for name, file in re.findall(r"`(\w+)` \(`(?:\w+/)?(\w+\.c)`\)", "".join(rows)):
        assert re.search(rf"\b(ggtok_)?{name}\(", source[file]), f"{name} is not in {file}"
