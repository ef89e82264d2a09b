"""Runs a source's own package in a child process with limits on time and memory.

A source can make its package use any amount of time and memory: a normalizer can grow a text
without limit, or search for an expression that takes exponential time. A malformed source can crash
the package. So packages load sources only in another process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ggtok.base.concurrency import read_frame, write_frame
from ggtok.errors import VocabError

SECONDS = 60  # the time limit per request
MEMORY = 3 << 30  # the child's memory limit in bytes
MAX_ANSWER = 32 << 20  # the longest answer in bytes; about four million ids
# The child's limit of CPU time, in units of SECONDS. It also ends a child whose parent has died.
_TOTAL = 10

# A function that encodes texts to ids, parsing special tokens and adding none.
Encode = Callable[[Sequence[str]], list[list[int]]]

_ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",  # saves memory
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}

# The child has the same sys.path as this process.
_CHILD = """\
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from ggtok.vocabularies.convert.originals import main
main(sys.argv[1:])
"""


class TooMuch(VocabError):
    """Raised if the package exceeds the limits, crashes, or can't be run."""


def is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


class Package:
    """One of the packages in READERS.

    Its child process is started on demand, keeps the last source, and ends with this object.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._child: subprocess.Popen[bytes] | None = None
        self._source: object = None  # the source that the child read last

    def read(self, source: object) -> Encode | None:
        """Returns a function that encodes with a source, or None if the package isn't installed.

        Raises:
            VocabError: the package can't read the source.
            TooMuch: a limit is exceeded. The returned function may raise this, too.
        """
        if getattr(sys, "frozen", False) or not sys.executable:
            return None  # there is no interpreter to start
        if not is_installed(self.name):
            return None
        self._load(source)

        def encode(lines: Sequence[str]) -> list[list[int]]:
            if self._source is not source:
                self._load(source)
            answer = self._ask("encode", list(lines))
            if "error" in answer:
                raise self._too_much(answer["error"])
            ids: list[list[int]] = answer["ids"]
            return ids

        return encode

    def facts(self) -> dict[str, Any]:
        """Returns the fields of the :class:`Facts` about the source that was read last."""
        answer = self._ask("describe", None)
        if "error" in answer:
            raise self._too_much(answer["error"])
        facts: dict[str, Any] = answer["facts"]
        return facts

    def _load(self, source: object) -> None:
        answer = self._ask("read", source)
        if "error" in answer:
            reason = " ".join(answer["error"].split())
            raise VocabError(f"{self.name} can't load the source: {reason}")
        self._source = source

    def _ask(self, what: str, argument: object) -> dict[str, Any]:
        child = self._child = self._child or self._start()
        assert child.stdin is not None and child.stdout is not None
        watchdog = threading.Timer(SECONDS, child.kill)
        watchdog.daemon = True
        watchdog.start()
        answered = False
        try:
            write_frame(child.stdin, (what, argument))
            (size,) = struct.unpack("<Q", child.stdout.read(8))
            data = child.stdout.read(size) if size <= MAX_ANSWER else b""
            answer: dict[str, Any] = json.loads(data)
            answered = True
        except (OSError, ValueError, RecursionError, struct.error):
            raise self._too_much("it exceeded a limit or crashed") from None
        finally:
            watchdog.cancel()
            if not answered:
                self._child = self._source = None
                _end(child, 0)
        return answer

    def _too_much(self, reason: str) -> TooMuch:
        return TooMuch(
            f"{self.name} can't encode text with this source within {SECONDS} seconds and "
            f"{MEMORY >> 30} GiB: {reason}"
        )

    def _start(self) -> subprocess.Popen[bytes]:
        limits = map(str, (SECONDS * _TOTAL, MEMORY, MAX_ANSWER))
        arguments = json.dumps(sys.path), self.name, *limits
        try:
            child = subprocess.Popen(
                (sys.executable, "-c", _CHILD, *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ENVIRONMENT},
            )
        except OSError as e:
            raise TooMuch(f"{self.name} can't run in a child process: {e.strerror}") from None
        weakref.finalize(self, _end, child)
        return child


def _end(child: subprocess.Popen[bytes], timeout: float = 1.0) -> None:
    """Ends the child, which exits at the end of its input, or is killed after the timeout."""
    assert child.stdin is not None and child.stdout is not None
    with contextlib.suppress(OSError):  # the child hasn't read all of its input
        child.stdin.close()
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()


# ---- the child process, in which a package reads sources and encodes lines ----


def main(arguments: Sequence[str]) -> None:
    """Answers requests to read a source or to encode lines, until the end of input."""
    name = arguments[0]
    seconds, memory, most = map(int, arguments[1:])
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    devnull = os.open(os.devnull, os.O_RDWR)  # discards the package's output
    for descriptor in range(3):
        os.dup2(devnull, descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent terminates this process
    _limit(seconds, memory)
    original: LoadedOriginal | None = None
    while True:
        try:
            what, argument = read_frame(requests)
        except EOFError:
            return
        answer: dict[str, Any] = {}
        try:
            if what == "read":
                original = READERS[name](argument)
            else:
                assert original is not None
                if what == "encode":
                    answer["ids"] = original.encode(argument)
                else:
                    answer["facts"] = original.describe()
        except BaseException as e:  # includes panics in Rust
            answer["error"] = str(e)[:1000] or type(e).__name__
        data = json.dumps(answer).encode()
        if len(data) > most:
            data = json.dumps({"error": "too many ids"}).encode()
        answers.write(struct.pack("<Q", len(data)) + data)
        answers.flush()


def _limit(seconds: int, memory: int) -> None:
    """Limits processor time and memory, if the system supports it."""
    try:
        import resource
    except ImportError:
        return
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))
    if sys.platform.startswith("linux"):  # other systems count reserved memory, or have no limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


# ---- packages ----


class LoadedOriginal(NamedTuple):
    """A source that its package has loaded."""

    encode: Encode
    describe: Callable[[], dict[str, Any]]  # returns the fields of Facts


def _tokenizers(document: str) -> LoadedOriginal:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(document)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(lines: Sequence[str]) -> list[list[int]]:
        return [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]

    def describe() -> dict[str, Any]:
        return _vocabulary_of(tokenizer.get_vocab(), tokenizer.get_added_tokens_decoder())

    return LoadedOriginal(encode, describe)


def _vocabulary_of(vocab: dict[str, int], added: dict[int, Any]) -> dict[str, Any]:
    return {
        "tokens": {id: text for text, id in vocab.items()},
        "added": {
            id: [row.special, row.lstrip, row.rstrip, row.single_word, row.normalized]
            for id, row in added.items()
        },
    }


def _sentencepiece(model: bytes) -> LoadedOriginal:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=model)

    def describe() -> dict[str, Any]:
        return {"tokens": {id: processor.id_to_piece(id) for id in range(len(processor))}}

    return LoadedOriginal(lambda lines: [list(processor.encode(line)) for line in lines], describe)


def _tiktoken(document: dict[str, Any]) -> LoadedOriginal:
    from tiktoken import Encoding

    encoding = Encoding(
        "source",
        pat_str=document["pattern"],
        mergeable_ranks=document["ranks"],
        special_tokens=document["special"],
    )
    return LoadedOriginal(
        lambda lines: [encoding.encode(line, allowed_special="all") for line in lines],
        lambda: {"tokens": {}},
    )


def _transformers(folder: str) -> LoadedOriginal:
    from transformers import AutoTokenizer

    for name in "tokenizer_config.json", "config.json":
        _check_class(os.path.join(folder, name))
    tokenizer = AutoTokenizer.from_pretrained(
        folder, trust_remote_code=False, local_files_only=True
    )

    def encode(lines: Sequence[str]) -> list[list[int]]:
        return [list(tokenizer(line, add_special_tokens=False)["input_ids"]) for line in lines]

    def describe() -> dict[str, Any]:
        names = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
        ids = {name: getattr(tokenizer, f"{name}_token_id", None) for name in names}
        templates = tokenizer.chat_template
        if isinstance(templates, str):
            templates = {"default": templates}
        [text], around = encode(["a"]), list(tokenizer("a")["input_ids"])
        starts = range(len(around) - len(text) + 1)
        at = next((i for i in starts if around[i : i + len(text)] == text), 0)
        return {
            **_vocabulary_of(tokenizer.get_vocab(), tokenizer.added_tokens_decoder),
            "special": {name: id for name, id in ids.items() if id is not None},
            "around": [around[:at], around[at + len(text) :]],
            "ends": _ends_of(folder),
            "templates": templates or None,
        }

    return LoadedOriginal(encode, describe)


def _ends_of(folder: str) -> list[int] | None:
    """Returns the ids at which transformers ends generation with a model of this folder."""
    from transformers import GenerationConfig

    try:
        ends = GenerationConfig.from_pretrained(folder, local_files_only=True).eos_token_id
    except (OSError, ValueError):
        return None
    return ends if isinstance(ends, list) else None if ends is None else [ends]


def _check_class(path: str) -> None:
    """Raises ValueError for a class that isn't a tokenizer, which might load a model's weights."""
    try:
        with open(path, encoding="utf-8") as file:
            name = json.load(file).get("tokenizer_class")
    except FileNotFoundError:
        return
    if name is not None and not name.removesuffix("Fast").endswith(("Tokenizer", "Backend")):
        raise ValueError(f"tokenizer_class {name!r} is not a tokenizer")


READERS: dict[str, Callable[[Any], LoadedOriginal]] = {
    "tokenizers": _tokenizers,
    "sentencepiece": _sentencepiece,
    "tiktoken": _tiktoken,
    "transformers": _transformers,  # reads a folder, unlike the other packages
}
