"""python -m tests.making.consumers: tests exported vocabularies in other libraries.

    python -m tests.making.consumers                   # the fixtures and llama.cpp's vocabularies
    python -m tests.making.consumers spm qwen2         # only these
    python -m tests.making.consumers --work DIR        # keep the files and the environment

Each vocabulary is written in each format, unless that is rejected with a reason. Written files must
give ggtok's ids on 3,000 lines in tokenizers 0.23, in 1.0rc (in a separate virtual environment,
because both can't be installed in one), in tiktoken or in sentencepiece. If they are converted and
written again, the bytes must be the same. Files that only inexact=True writes are counted, too, and
so are the results in 1.0rc with the published expressions. Prints a row for each vocabulary; the
exit status is 1 if a file written without inexact=True differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import ggtok
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert import confirm
from ggtok.vocabularies.convert.lines import lines_for
from ggtok.vocabularies.convert.tiktoken_files import read_ranks
from ggtok.vocabularies.patterns import CHAIN_OF_PRE
from ggtok.vocabularies.pre_tokenizer_json import limit_to_unicode_15
from ggtok.vocabularies.vocabulary import Vocabulary
from tests.support.vocabularies import OTHERS, REAL, fixture, fixture_names, real

NEXT = "tokenizers==1.0.0rc3"
# Errors with which 1.0rc may reject a file, and their meaning for the table. The wheels of 1.0rc
# support only published expressions, which they recognize by their text.
LACKS = {
    "this `Split` pattern needs a system-regex backend": "lacks the expressions",
    "This byte-level vocabulary has no token for bytes": "wants tokens for bytes of no character",
}
FORMATS = ("json", "tiktoken", "model")
# The program that runs in the other environment: it reads lines from standard input and writes
# their ids.
READER = """
import json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
lines = json.load(sys.stdin)
json.dump([tokenizer.encode(line, add_special_tokens=False).ids for line in lines], sys.stdout)
"""


class Refused(Exception):
    """Raised with a library's own message if it can't load a file, or can't encode with it."""


Encode = Callable[[Sequence[str]], list[list[int]]]


def environment(work: Path) -> Path:
    """Returns a Python interpreter that has the next version of tokenizers."""
    folder = work / "environment"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", NEXT]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return python


def _in(python: str | Path, path: Path) -> Encode:
    def encode(lines: Sequence[str]) -> list[list[int]]:
        command = [str(python), "-c", READER, str(path)]
        done = subprocess.run(
            command, input=json.dumps(list(lines)), text=True, capture_output=True
        )
        if done.returncode:
            raise Refused(done.stderr.strip().rpartition("\n")[2])
        ids: list[list[int]] = json.loads(done.stdout)
        return ids

    return encode


def _tiktoken(v: Vocabulary, path: Path) -> Encode:
    """Returns a function that encodes with tiktoken. Since tiktoken supports only one expression,
    words are encoded one by one if the pre-tokenizer has several expressions."""
    import tiktoken
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Sequence as Steps
    from tokenizers.pre_tokenizers import Split

    steps = [limit_to_unicode_15(step) for step in CHAIN_OF_PRE[v.pre or "default"].steps]
    ranks = read_ranks(path.read_bytes(), path.name)
    encoding = tiktoken.Encoding("x", pat_str=steps[0], mergeable_ranks=ranks, special_tokens={})
    if len(steps) == 1:
        return lambda lines: [encoding.encode(line, disallowed_special=()) for line in lines]
    cut = Steps([Split(Regex(step), "isolated") for step in steps])

    def words(line: str) -> list[int]:
        ids = [encoding._encode_single_piece(word) for word, _ in cut.pre_tokenize_str(line)]
        return [id for some in ids for id in some]

    return lambda lines: list(map(words, lines))


def _sentencepiece(path: Path) -> Encode:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return lambda lines: [list(ids) for ids in processor.encode(list(lines))]


def readers(v: Vocabulary, path: Path, python: Path) -> dict[str, Encode]:
    """Returns an encoding function for each library that reads the file, by the library's name."""
    if path.suffix == ".json":
        return {"0.23": _in(sys.executable, path), "1.0rc": _in(python, path)}
    if path.suffix == ".tiktoken":
        return {"tiktoken": _tiktoken(v, path)}
    return {"sentencepiece": _sentencepiece(path)}


def unmerged_characters(v: Vocabulary) -> set[str]:
    """Returns characters that are tokens of byte-level BPE, but that no merges produce.

    tokenizers 1.0.0rc3 encodes such a character as the token, contrary to the merges.
    """
    if v.model != "gpt2":
        return set()
    tok = v.tokenizer()
    texts = [(id, text.decode("utf-8", "replace")) for id, text in enumerate(v.tokens)]
    one = [(id, text) for id, text in texts if len(text) == 1 and v.types[id] == spelling.NORMAL]
    ids = tok.encode_batch([text for _, text in one], add_special=False)
    return {text for (id, text), found in zip(one, ids, strict=True) if found != [id]}


def differing(v: Vocabulary, encode: Encode, special: bool, without: set[str]) -> int:
    """Returns how many of 3,000 lines get different ids. Skips lines with user-defined tokens,
    which tiktoken doesn't support, unless `special`."""
    tok = v.tokenizer()
    own = [
        tok.token_text(id).decode("utf-8", "replace")
        for id in range(tok.n_tokens)
        if tok.token_attr(id) & ggtok.TokenAttr.USER_DEFINED
    ]
    lines = lines_for(v, confirm.CHECK_LINES)
    if without:
        lines = [line for line in lines if without.isdisjoint(line)]
    if not special:
        lines = [line for line in lines if not any(text in line for text in own)]
    ours = confirm.encode_ours(v, parse_special=special)(lines)
    return sum(a != b for a, b in zip(ours, encode(lines), strict=True))


def round_trips(v: Vocabulary, path: Path, *, inexact: bool) -> bool:
    pre = (v.pre or "default") if path.suffix == ".tiktoken" else None
    other = path.with_name("again" + path.suffix)
    ggtok.convert(path, pre=pre).save(other, inexact=inexact)
    return other.read_bytes() == path.read_bytes()


def library_result(v: Vocabulary, path: Path, name: str, encode: Encode) -> tuple[str, bool]:
    """Describes a library's result for the lines, and returns whether the result is correct."""
    without = unmerged_characters(v) if name == "1.0rc" else set()
    try:
        n = differing(v, encode, path.suffix == ".json", without)
    except Refused as e:
        reason = next((text for said, text in LACKS.items() if said in str(e)), None)
        return reason or f"FAILS: {e}", reason is not None
    left = f", without {len(without)} characters that no merges make" if without else ""
    return f"{n} differ{left}", n == 0


def format_result(v: Vocabulary, path: Path, python: Path) -> tuple[str, bool]:
    """Describes the results for one format, and returns whether they are correct."""
    found, exact = [], True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        try:
            v.save(path)
        except ggtok.VocabError as e:
            if "inexact=True" not in str(e):
                return f"refused: {e}", True
            exact = False
            v.save(path, inexact=True)
            found.append(f"inexact: {e}")
        good = True
        for name, encode in readers(v, path, python).items():
            result, is_correct = library_result(v, path, name, encode)
            found.append(f"{name}: {result}")
            good &= is_correct or (not exact and "FAILS" not in result)
        published = path.with_name("published.json")
        if exact and path.suffix == ".json":
            v.save(published, inexact=True)
            if published.read_bytes() != path.read_bytes():
                result, is_correct = library_result(v, published, "1.0rc", _in(python, published))
                found.append(f"published, 1.0rc: {result}")
                good &= is_correct
        try:
            same = round_trips(v, path, inexact=not exact)
        except ggtok.VocabError as e:
            same, found = False, [*found, str(e)]
    found.append("fixed point" if same else "NO FIXED POINT")
    return "; ".join(found), good and same


def main() -> int:
    paths = dict.fromkeys(fixture_names(), fixture) | dict.fromkeys((*REAL, *OTHERS), real)
    parser = argparse.ArgumentParser(
        prog="python -m tests.making.consumers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(paths))
    parser.add_argument("--work", type=Path)
    args = parser.parse_args()
    if unknown := set(args.names) - set(paths):
        parser.error(f"no such vocabulary: {', '.join(sorted(unknown))}")
    clean = True
    with tempfile.TemporaryDirectory(prefix="ggtok-consumers-") as folder:
        work = args.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        python = environment(work)
        for name in args.names or paths:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ggtok.VocabWarning)
                    v = ggtok.vocabulary(paths[name](name))
            except ggtok.VocabError as e:
                print(f"{name}: no vocabulary: {e}")
                continue
            for format in FORMATS:
                end = "tokenizer.json" if format == "json" else f"x.{format}"
                result, good = format_result(v, work / end, python)
                print(f"{name}, {format}: {result}", flush=True)
                clean &= good
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
