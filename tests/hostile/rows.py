"""The rows in the table: numbered inputs, how each is judged, and the allowed outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache

from tests.hostile.judge import GGUF_ERROR, LOADED, OTHER, VOCAB_ERROR, Verdict

ANY = frozenset((LOADED, GGUF_ERROR, VOCAB_ERROR))
MALFORMED = frozenset((GGUF_ERROR,))
NO_FILE = frozenset((OTHER,))


class Row(ABC):
    """A kind of hostile input.

    Attributes:
        allowed: the allowed outcomes (of judge.OUTCOMES).
        sample: the number of inputs that `pytest --full` tries.
        memory: how many bytes the child process may allocate; 0 means no limit.
        timeout: the seconds after which an input counts as hanging.
    """

    def __init__(
        self,
        name: str,
        *,
        allowed: frozenset[int],
        sample: int,
        memory: int = 1 << 29,
        timeout: float = 20.0,
    ) -> None:
        self.name = name
        self.allowed = allowed
        self.sample = sample
        self.memory = memory
        self.timeout = timeout

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def judge(self, i: int) -> Verdict: ...

    @abstractmethod
    def describe(self, i: int) -> str:
        """Returns a short description of the input."""

    @abstractmethod
    def keep(self, i: int) -> bytes:
        """Returns the bytes to save if an input kills its process."""


Trial = tuple[str, Callable[[], Verdict]]


class Trials(Row):
    """A row whose inputs are actions instead of files."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Sequence[Trial]],
        *,
        allowed: frozenset[int] = frozenset((LOADED,)),
        sample: int = 20,
        memory: int = 0,
        timeout: float = 60.0,
    ) -> None:
        super().__init__(name, allowed=allowed, sample=sample, memory=memory, timeout=timeout)
        self._make = cache(make)

    def __len__(self) -> int:
        return len(self._make())

    def judge(self, i: int) -> Verdict:
        return self._make()[i][1]()

    def describe(self, i: int) -> str:
        return self._make()[i][0]

    def keep(self, i: int) -> bytes:
        return self.describe(i).encode()
