"""The number of tokens, and what else the file says about it."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.base.reading import read_regular
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import File
from ggtok.loading.gguf_reader import Reader

_EMBEDDING = b"token_embd.weight"
_MORE = 4 << 20  # bytes of the descriptions of tensors that are read at most


def check(file: File) -> Iterator[Finding]:
    n = file.tok.n_tokens
    rows = embedding_rows(file)
    if rows is not None and rows != n:
        yield finding("GGT601", f"{rows} rows, {n} tokens")
    arch = file.values.get("general.architecture", b"").decode("utf-8", "surrogateescape")
    size = file.values.get(f"{arch}.vocab_size")
    if isinstance(size, int) and size != n:
        yield finding("GGT602", f"'{arch}.vocab_size' is {size}, and there are {n} tokens")


def embedding_rows(file: File) -> int | None:
    """The embedding's rows; None: nothing tells, as where less of the file was fetched."""
    data = file.data
    if file.path is not None:
        data = read_regular(file.path, file.end + _MORE)
    return _Tensors(data).rows(file.end) if len(data) > file.end else None


class _Tensors(Reader):
    """Reads the descriptions of tensors, which come after the key/values."""

    def rows(self, begin: int) -> int | None:
        self.scalars("I", 1)
        n: int = self.scalars("Q", 2)[0]
        self.at = begin
        for _ in range(n):
            if self._left() < 8:
                return None
            (length,) = self.scalars("Q", 1)
            if self._left() < length + 4:
                return None
            name = self._data[self.at : self.at + length]
            self.at += length
            (n_dims,) = self.scalars("I", 1)
            if n_dims > 4 or self._left() < 8 * n_dims + 12:  # malformed, or cut off
                return None
            dims = self.scalars("Q", n_dims)
            self.at += 12  # type, offset
            if name == _EMBEDDING:
                return int(dims[1]) if n_dims > 1 else None
        return None

    def _left(self) -> int:
        return len(self._data) - self.at
