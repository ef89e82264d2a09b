"""Files that another process changes, paths that aren't regular files, sparse files, and the peak
memory for files that are rejected."""

from __future__ import annotations

import atexit
import errno
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import ggtok
from tests.hostile import TESTS
from tests.hostile.judge import LOADED, OTHER, VAGUE, VOCAB_ERROR, Verdict, of_error
from tests.hostile.rows import ANY, NO_FILE, Trial, Trials
from tests.support.patch import GGUF, TYPES
from tests.support.vocabularies import fixture

TEXT = "the kettle 12345"


@cache
def folder() -> Path:
    path = tempfile.TemporaryDirectory(prefix="hostile-")
    atexit.register(path.cleanup)
    return Path(path.name)


# ---- files that change ----

# Repeatedly writes one of two contents to `path`, chosen at random, until the parent process exits.
WRITER = """
import os, random, sys, time
mode, path, a, b = sys.argv[1:]
contents = [open(a, "rb").read(), open(b, "rb").read()]
chooser, parent = random.Random(mode), os.getppid()
print(flush=True)
while os.getppid() == parent:
    data = contents[chooser.randrange(2)]
    pause = chooser.choice((0, 0, 0.0005, 0.003))
    if mode == "replaced":
        with open(path + ".new", "wb") as f:
            f.write(data)
        os.replace(path + ".new", path)
    elif mode == "overwritten in place":
        with open(path, "r+b", buffering=0) as f:
            f.write(data)
    elif mode == "written anew":
        with open(path, "wb", buffering=0) as f:
            f.write(data)
    elif mode == "written bit by bit":
        step = len(data) // 20 + 1
        with open(path, "wb", buffering=0) as f:
            for i in range(0, len(data), step):
                f.write(data[i : i + step])
    elif mode == "cut anywhere":
        with open(path, "r+b", buffering=0) as f:
            f.truncate(chooser.randrange(len(data)))
            time.sleep(pause)
            f.write(data)
    elif mode == "deleted and made":
        os.unlink(path)
        time.sleep(pause)
        with open(path, "wb", buffering=0) as f:
            f.write(data)
    time.sleep(pause)
"""
MODES = (
    "replaced",
    "overwritten in place",
    "written anew",
    "written bit by bit",
    "cut anywhere",
    "deleted and made",
)


def contents(large: bool) -> tuple[bytes, bytes]:
    """Returns two files of equal size, which are read in one block or, if `large`, in many."""
    both = []
    for letter in "wv":
        gguf = GGUF.read(fixture("spm"))
        tokens = gguf.strings("tokenizer.ggml.tokens")
        keep = 300  # the number of tokens to keep: byte tokens, special tokens, and some others
        rest = len(tokens) - keep if not large else 150_000
        gguf.set(
            "tokenizer.ggml.tokens",
            tokens[:keep] + [f"{letter}{i:06}".encode() for i in range(rest)],
        )
        for key, value in (("scores", -1.0), ("token_type", 1)):
            values = gguf.array(f"tokenizer.ggml.{key}")[:keep]
            gguf.set(f"tokenizer.ggml.{key}", values + [value] * rest)
        both.append(gguf.dump())
    return both[0], both[1]


def fingerprint(tok: ggtok.Tokenizer) -> list[bytes]:
    return [tok.token_text(id) for id in range(0, tok.n_tokens, tok.n_tokens // 1000 + 1)]


class Writer:
    """The process that changes a file. It is replaced when a trial needs another mode or size."""

    def __init__(self) -> None:
        self.at: tuple[str, bool] | None = None
        self.child: subprocess.Popen[bytes] | None = None
        self.contents: list[list[bytes]] = []  # fingerprints of the two vocabularies
        self.path = Path()
        self.size = 0
        folder()  # create the folder first, so that it outlives the writer
        atexit.register(self.stop)

    def start(self, mode: str, large: bool) -> None:
        if self.at == (mode, large):
            return
        self.stop()
        self.at = mode, large
        self.path = folder() / f"changing-{mode.replace(' ', '-')}-{large}.gguf"
        sources = []
        self.contents = []
        for i, data in enumerate(contents(large)):
            self.size = len(data)
            self.path.write_bytes(data)
            sources.append(str(self.path) + f".{i}")
            Path(sources[-1]).write_bytes(data)
            self.contents.append(fingerprint(ggtok.load(data)))
        self.child = subprocess.Popen(
            [sys.executable, "-c", WRITER, mode, str(self.path), *sources], stdout=subprocess.PIPE
        )
        assert self.child.stdout is not None
        self.child.stdout.readline()

    def stop(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None
        self.at = None


@cache
def writer() -> Writer:
    return Writer()


def load_while_changing(mode: str, large: bool) -> Verdict:
    writer().start(mode, large)
    try:
        tok = ggtok.load(writer().path)
    except FileNotFoundError as error:
        expected = mode == "deleted and made" and isinstance(error, ggtok.FileError)
        return Verdict(OTHER) if expected else Verdict(VAGUE, repr(error))
    except Exception as error:
        if mode == "replaced":
            return Verdict(VAGUE, f"the file was whole at all times: {error!r}")
        return of_error(error, writer().size)
    found = fingerprint(tok)
    if found in writer().contents:
        return Verdict(LOADED)
    if mode == "overwritten in place":  # the file itself can be a mixture of both
        a, b = writer().contents
        ends = [next(i for i, x in enumerate(found) if x != old[i]) for old in (a, b)]
        if found in (a[: ends[0]] + b[ends[0] :], b[: ends[1]] + a[ends[1] :]):
            return Verdict(LOADED)
    return Verdict(VAGUE, "contents that the file never had")


def changing() -> Sequence[Trial]:
    return [
        (
            f"{mode}, {'large' if large else 'small'}, load {i}",
            lambda mode=mode, large=large: load_while_changing(mode, large),
        )
        for large, n in ((False, 500), (True, 40))
        for mode in MODES
        for i in range(n)
    ]


# ---- changes after loading ----


def changed_afterwards(change: Callable[[Path], object]) -> Verdict:
    path = folder() / "afterwards.gguf"
    path.write_bytes(contents(False)[0])
    fds = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    tok = ggtok.load(path)
    if sys.platform == "linux":
        if len(os.listdir("/proc/self/fd")) != fds:
            return Verdict(VAGUE, "a file descriptor stays open")
        if path.name in Path("/proc/self/maps").read_text():
            return Verdict(VAGUE, "the file stays mapped")
    before = tok.encode(TEXT), tok.token_text(100), dict(tok.metadata)
    change(path)
    if (tok.encode(TEXT), tok.token_text(100), dict(tok.metadata)) != before:
        return Verdict(VAGUE, "the tokenizer changed with its file")
    return Verdict(LOADED)


def afterwards() -> Sequence[Trial]:
    changes: dict[str, Callable[[Path], object]] = {
        "deleted": lambda path: path.unlink(),
        "emptied": lambda path: os.truncate(path, 0),
        "cut": lambda path: os.truncate(path, 5000),
        "overwritten": lambda path: path.write_bytes(b"\xff" * path.stat().st_size),
        "replaced": lambda path: os.replace(fixture_copy(), path),
    }
    return [(what, lambda c=change: changed_afterwards(c)) for what, change in changes.items()]


def fixture_copy() -> Path:
    path = folder() / "copy.gguf"
    path.write_bytes(fixture("test").read_bytes())
    return path


# ---- not regular files ----


def load_non_file(path: Path, number: int, before: Callable[[Path], object] | None) -> Verdict:
    if before is not None:
        before(path)
    # Root may read everything, so become another user for a moment.
    root = number == errno.EACCES and os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        ggtok.load(path)
    except ggtok.FileError as error:
        if error.errno != number:
            return Verdict(VAGUE, f"{error!r} instead of {errno.errorcode[number]}")
        if str(error.filename) != str(path) or str(path)[:200] not in str(error):
            return Verdict(VAGUE, f"does not name the path: {error}")
        return Verdict(OTHER)
    finally:
        if root:
            os.seteuid(0)
    return Verdict(LOADED)


def non_files() -> Sequence[Trial]:
    at = folder()
    rows: list[tuple[str, Path, int, Callable[[Path], object] | None]] = [
        ("nothing", at / "nothing.gguf", errno.ENOENT, None),
        ("a folder", at, errno.EISDIR, None),
        ("a file with a folder's name", at / "sound.gguf" / "x", errno.ENOTDIR, write_parent),
        ("a name too long", at / ("n" * 300), errno.ENAMETOOLONG, None),
        ("a link to itself", at / "loop", errno.ELOOP, lambda p: p.is_symlink() or p.symlink_to(p)),
        (
            "a link to nothing",
            at / "dangling",
            errno.ENOENT,
            lambda p: p.is_symlink() or p.symlink_to(at / "no"),
        ),
        ("a pipe", at / "pipe", errno.ESPIPE, lambda p: p.exists() or os.mkfifo(p)),
        ("a socket", at / "socket", errno.ENXIO, listen),
        ("a locked file", at / "locked.gguf", errno.EACCES, write_locked),
        *((str(p), p, errno.ESPIPE, None) for p in map(Path, DEVICES) if p.exists()),
    ]
    return [(what, lambda p=p, n=n, b=b: load_non_file(p, n, b)) for what, p, n, b in rows]


DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/tty0")


def write_parent(path: Path) -> None:
    path.parent.write_bytes(fixture("test").read_bytes())


def write_locked(path: Path) -> None:
    folder().chmod(0o755)
    path.write_bytes(fixture("test").read_bytes())
    path.chmod(0)


@cache
def listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    return listener


# ---- sparse files ----


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])  # rchar: bytes that read(2) etc. read


def sparse(large: bool) -> Verdict:
    """Loads a file whose 40 GB of tensors are a hole. Only the metadata may be read."""
    data = bytearray(contents(large)[0])
    struct.pack_into("<Q", data, 8, 291)  # the number of tensors
    path = folder() / "sparse.gguf"
    path.write_bytes(data)
    os.truncate(path, 40 * 10**9)
    os.utime(path, (10**9, 10**9))  # an old mtime, because a recently written file is read twice
    ggtok.load(fixture("test"))
    before = bytes_read()
    tok = ggtok.load(path)
    read = bytes_read() - before
    path.unlink()
    if read > max(2 * len(data), 1 << 20) + 4096:
        return Verdict(VAGUE, f"{read} bytes read for {len(data)} of metadata")
    if not tok.encode(TEXT):
        return Verdict(VAGUE, "no ids")
    return Verdict(LOADED)


def sparse_files() -> Sequence[Trial]:
    return [
        (f"{size} metadata", lambda s=size: sparse(s == "large")) for size in ("small", "large")
    ]


# ---- memory for rejected files ----

# Limits of the peak memory for rejecting a file, as multiples of the file's size. PLaMo's automaton
# has a state for each byte of each token's text, and a state takes up to 70 bytes during
# construction. Other types' tries, too, have such states for texts of more than 256 bytes
# (index/trie_long.h).
MULTIPLE, PLAMO_MULTIPLE, LONG_MULTIPLE = 16, 80, 48


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def key(name: str, kind: str, body: bytes) -> bytes:
    return string(name.encode()) + struct.pack("<I", TYPES.index(kind)) + body


def strings(name: str, texts: Sequence[bytes]) -> bytes:
    head = struct.pack("<IQ", TYPES.index("str"), len(texts))
    return key(name, "arr", head + b"".join(map(string, texts)))


def numbers(name: str, kind: str, body: bytes, size: int) -> bytes:
    return key(name, "arr", struct.pack("<IQ", TYPES.index(kind), len(body) // size) + body)


def whole(*keys: bytes, n: int | None = None) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys) if n is None else n) + b"".join(keys)


N = 400_000
WRONG_AT_THE_END = key("tokenizer.ggml.suppress_tokens", "u8", b"\1")
CUT = struct.pack("<Q", 2**40)


def heavy(shape: str) -> bytes:
    """Builds a file of a few megabytes that is rejected as late as possible."""
    model, _, tokens = shape.partition(": ")
    if model == "keys":
        many = [key(f"k{i:06}", "u8", b"\1") for i in range(N)]
        return whole(*many) if tokens == "no model" else whole(*many, CUT, n=N + 1)
    texts = {
        "empty": lambda: [b""] * N,
        "short": lambda: [f"{i:x}".encode() for i in range(N)],
        "spread": lambda: [f"{i * 2654435761 % 2**32:08x}".encode() for i in range(N)],
        "long": lambda: [bytes([97 + i % 26]) * 20_000 + b"%d" % i for i in range(200)],
        "chain": lambda: [b"a" * i for i in range(1, 3000)],
    }[tokens]()
    if model in ("plamo2", "plamo3"):
        texts = [b"<unk>", *(b"<0x%02X>" % i for i in range(256)), *texts]
    keys = [
        key("tokenizer.ggml.model", "str", string(model.encode())),
        key("tokenizer.ggml.pre", "str", string(b"gpt-2")),
        strings("tokenizer.ggml.tokens", texts),
        numbers("tokenizer.ggml.scores", "f32", struct.pack("<f", -1.0) * len(texts), 4),
    ]
    if model.startswith("plamo"):
        types = [2, *[6] * 256, *[1] * (len(texts) - 257)]
        keys.append(
            numbers("tokenizer.ggml.token_type", "i32", struct.pack(f"<{len(types)}i", *types), 4)
        )
    if model in ("gpt2", "gemma4", "hybriddna", "whitespace"):
        keys.append(
            strings("tokenizer.ggml.merges", [b"%x %x" % (i // 16, i % 16) for i in range(16, N)])
        )
    if model == "t5":
        blob = struct.pack("<I", 4 << 20) + bytes(range(256)) * (4 << 12) + b"x\0" * (1 << 20)
        keys.append(numbers("tokenizer.ggml.precompiled_charsmap", "u8", blob, 1))
    return whole(*keys, WRONG_AT_THE_END)


# Runs in a separate process, because memory that an earlier input released would be used again
# without raising the peak.
MEASURE = f"""
{TESTS}
import ggtok
from pathlib import Path
from tests.hostile.judge import vagueness
from tests.support.memory import peak, resident

path = Path(sys.argv[1])
Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
before = resident()
try:
    ggtok.load(path)
    note = "loaded"
except Exception as error:
    note = vagueness(error, path.stat().st_size)
print((peak() - before) * 1024, note)
"""


def peak_of_rejection(data: bytes) -> tuple[int, str]:
    """Returns the peak memory for rejecting a file, in bytes, and why its error is vague, or ""."""
    path = folder() / "heavy.gguf"
    path.write_bytes(data)
    command = [sys.executable, "-c", MEASURE, str(path)]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
    if done.returncode:
        return 0, f"exit status {done.returncode}: {done.stderr[-300:]}"
    peak, _, note = done.stdout.strip().partition(" ")
    return int(peak), note


def rejection(shape: str) -> Verdict:
    data = heavy(shape)
    peak, note = peak_of_rejection(data)
    model, _, tokens = shape.partition(": ")
    most = MULTIPLE
    if model.startswith("plamo"):
        most = PLAMO_MULTIPLE
    elif model in ("bert", "t5", "rwkv") and tokens == "long":
        most = LONG_MULTIPLE
    if not note and peak > most * len(data):
        note = f"rejecting {len(data)} bytes took {peak / len(data):.1f} times as much memory"
    return Verdict(VAGUE, note) if note else Verdict(VOCAB_ERROR)


MODELS = ("llama", "gpt2", "gemma4", "bert", "t5", "rwkv", "plamo2", "hybriddna", "whitespace")


def rejections() -> Sequence[Trial]:
    shapes = ["keys: no model", "keys: cut"]
    shapes += [
        f"{model}: {tokens}"
        for model in MODELS
        for tokens in ("empty", "short", "spread", "long", "chain")
        if (model, tokens) != ("gpt2", "empty")
    ]
    return [(shape, lambda s=shape: rejection(s)) for shape in shapes]


LINUX = sys.platform == "linux"
POSIX = sys.platform != "win32"
SURROUNDINGS = [
    Trials("files that change while they are read", changing, allowed=ANY | NO_FILE, sample=150),
    *([Trials("files that change afterwards", afterwards)] if POSIX else []),
    *([Trials("paths that aren't files", non_files, allowed=NO_FILE)] if POSIX else []),
    *([Trials("40 GB of holes after the metadata", sparse_files)] if LINUX else []),
    *(
        [
            Trials(
                "memory for rejecting files",
                rejections,
                allowed=frozenset((VOCAB_ERROR,)),
                sample=6,
            )
        ]
        if LINUX
        else []
    ),
]
