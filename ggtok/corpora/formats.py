"""The formats of ids."""

from __future__ import annotations

import os

from ggtok.corpora.arrow import Arrow
from ggtok.corpora.layouts import Megatron, Npy, Raw
from ggtok.corpora.partial_file import partial_of
from ggtok.corpora.sources import COMPRESSIONS
from ggtok.errors import Argument, InvalidValueError, Wording, file_error

# One row for each.
FORMATS: dict[str, type[Raw]] = {"raw": Raw, "npy": Npy, "megatron": Megatron, "arrow": Arrow}

# The formats that may have a name with this extension, the default first. Other extensions say
# nothing, but for those of files that ids can't be.
_EXTENSIONS = {
    ".bin": ("raw", "megatron"),
    ".npy": ("npy",),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ("arrow",)),
}
_OTHERS = (
    *COMPRESSIONS,
    *".csv .gguf .idx .json .jsonl .ndjson .npz .parquet .pt .txt .zip".split(),
)


def named(name: str | None, out: str) -> str:
    """The name of the format: `name`, which must fit the output's extension, or by that alone."""
    extension = os.path.splitext(out)[1].lower()
    if extension in _OTHERS:
        raise InvalidValueError(
            f"{out}: ids aren't written as {extension}; name the output {out[: -len(extension)]}"
            ".bin, or .npy or .arrow"
        )
    fitting = _EXTENSIONS.get(extension, tuple(FORMATS))
    if name is None:
        return fitting[0]
    if name in FORMATS and name not in fitting:
        raise InvalidValueError(
            Wording(
                f"{out}: a {extension} file doesn't hold ",
                *(Argument("format", repr(name)), ", but ", Argument("format", repr(fitting[0]))),
                "; name the output otherwise, or leave the format to its name",
            )
        )
    return name


def find(name: str, dtype: str, n_tokens: int) -> tuple[type[Raw], str]:
    """The class of a format, and the type of its ids."""
    if name not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        raise InvalidValueError(f"format must be one of {known}, not {name!r}")
    known = ", ".join(map(repr, ("auto", *Raw.dtypes)))
    if dtype not in ("auto", *Raw.dtypes):
        raise InvalidValueError(f"dtype must be one of {known}, not {dtype!r}")
    format = FORMATS[name]
    dtype = format.auto(n_tokens) if dtype == "auto" else dtype
    if dtype not in format.dtypes:
        raise InvalidValueError(
            Wording(
                f"Megatron's datasets have no {dtype}: use ",
                Argument("dtype", "'int32'"),
                ", or 'auto', which takes uint16 for vocabularies of fewer than 65,500 tokens",
            )
        )
    if dtype == "uint16" and n_tokens > 1 << 16:
        raise InvalidValueError(
            Wording(
                Argument("dtype", "'uint16'"),
                f" holds ids below 65,536, and this vocabulary has {n_tokens} tokens",
            )
        )
    return format, dtype


def _grown(out: str) -> set[str]:
    """The files that a run for `out` may write, of whatever format."""
    names = {out, out + ".manifest.json", out + ".sources"}
    for format in FORMATS.values():
        names.update(format.names(out))
    names.add(Megatron.names(out)[1] + ".offsets")
    return names


def unfinished(out: str) -> list[str]:
    """Names of what a run for `out` leaves when it is stopped, besides its journal."""
    return sorted(map(partial_of, _grown(out)))


def companions(out: str) -> frozenset[str]:
    """Absolute paths of all files that a run for `out` may write."""
    names = [*_grown(out), *unfinished(out), out + ".journal", os.path.realpath(out)]
    return frozenset(map(os.path.abspath, names))


def clean(out: str) -> None:
    """Removes what an earlier run for `out` didn't finish, of whatever format."""
    for path in unfinished(out):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as e:
            raise file_error(e.errno or 0, e.strerror or str(e), path) from None
