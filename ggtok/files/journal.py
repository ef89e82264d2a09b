"""The journal of a run: what it is about, and its checkpoints.

``OUT.journal`` has a line for each, after its CRC-32: the sources, the rest of the plan; a
checkpoint each time that the data up to there was on the disk; at last the names that the files
get. A kill may leave half a line, which doesn't count. While a run uses a journal it holds a
lock on it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ggtok.errors import FileError, InvalidValueError, file_error

# A source's path, size and time of change.
SourceState = tuple[str, int, int]
_AT_ONCE = 1000  # sources in a line


class Journal:
    """An open journal, locked.

    Attributes:
        plan: of the run that began it, as it was read, or None: it is new.
        last: its last checkpoint, or None.
        renames: (from, to) of each finished file, if it got as far, else None.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.plan: dict[str, Any] | None = None
        self.last: dict[str, Any] | None = None
        self.renames: list[tuple[str, str]] | None = None
        try:
            self._file = _locked(path)
            self._read()
        except OSError as e:
            if isinstance(e, FileError):
                raise
            raise file_error(e.errno or 0, e.strerror or str(e), path) from None

    def begin(self, plan: dict[str, Any], sources: Iterator[SourceState]) -> None:
        """Begins afresh, with a plan that lacks its sources, which may be many."""
        self._file.seek(0)
        self._file.truncate()
        self.plan, self.last, self.renames = None, None, None
        while some := list(islice(sources, _AT_ONCE)):
            self._append({"sources": some}, sync=False)
        self._append({"plan": plan})  # last: a journal without it is none
        sync_folder(self.path)

    def amend(self, plan: dict[str, Any]) -> None:
        """From here on, with other options."""
        self._append({"plan": plan})

    def checkpoint(self, state: dict[str, Any]) -> None:
        self.last = state
        self._append({"checkpoint": state})

    def finish(self, renames: list[tuple[str, str]]) -> None:
        """From here on, the files only get their names."""
        self._append({"renames": renames})
        self.renames = renames

    def rename(self) -> None:
        """Gives the files their names, as far as that wasn't done."""
        for partial, path in self.renames or ():
            try:
                os.replace(partial, path)
            except FileNotFoundError:
                if not os.path.exists(path):
                    raise file_error(2, "is missing, and so is " + path, partial) from None
            except OSError as e:
                raise file_error(e.errno or 0, e.strerror or str(e), path) from None
        sync_folder(self.path)

    def remove(self) -> None:
        os.unlink(self.path)

    def close(self) -> None:
        self._file.close()

    def _append(self, entry: dict[str, Any], sync: bool = True) -> None:
        line = json.dumps(entry).encode()
        try:
            self._file.write(b"%08x %s\n" % (zlib.crc32(line), line))
            if sync:
                self._file.flush()
                os.fsync(self._file.fileno())
        except OSError as e:
            raise file_error(e.errno or 0, e.strerror or str(e), self.path) from None

    def _read(self) -> None:
        good, sources = 0, []
        for line in self._file:
            entry = _entry(line)
            if entry is None:
                break
            good += len(line)
            if "sources" in entry:
                sources += entry["sources"]
            elif "plan" in entry:
                self.plan = {**entry["plan"], "sources": sources}
            elif "checkpoint" in entry:
                self.last = entry["checkpoint"]
            else:
                self.renames = [(partial, path) for partial, path in entry["renames"]]
        self._file.seek(good)
        self._file.truncate()


def _entry(line: bytes) -> dict[str, Any] | None:
    crc, _, text = line.rstrip(b"\n").partition(b" ")
    if crc != b"%08x" % zlib.crc32(text) or not line.endswith(b"\n"):
        return None
    entry: dict[str, Any] = json.loads(text)
    return entry


def _locked(path: str) -> Any:
    while True:
        file = open(path, "a+b")  # noqa: SIM115
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows, which doesn't delete files that are open
            pass
        except OSError:
            file.close()
            raise FileError(f"{path}: another run writes this output at the moment") from None
        # Whoever held it may have finished and removed it in between.
        if os.path.exists(path) and os.path.samestat(os.stat(path), os.fstat(file.fileno())):
            file.seek(0)
            return file
        file.close()


def sync_folder(path: str) -> None:
    """Waits until the names in a file's folder are on the disk, where the system can."""
    try:
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def compare(out: str, plan: dict[str, Any], before: dict[str, Any]) -> None:
    """Refuses to go on with a run of another plan: the message names what differs."""
    changes = list(_changes(plan, before))
    if changes:
        more = f" (and {len(changes) - 3} more)" if len(changes) > 3 else ""
        raise InvalidValueError(
            f"{out}: was begun with something else: {'; '.join(changes[:3])}{more}. "
            "resume=False begins again"
        )


def _changes(plan: dict[str, Any], before: dict[str, Any]) -> Any:
    for part in ("ggtok", "model", "options"):
        new, old = plan[part], before[part]
        if not isinstance(new, dict):
            new, old = {part: new}, {part: old}
        for name, value in new.items():
            if old.get(name) != value:
                what = f"the model's {name}" if part == "model" else name
                yield f"{what} was {_short(old.get(name))}, is {_short(value)}"
    old_sources = {path: state for path, *state in before["sources"]}
    for path, *state in plan["sources"]:
        old = old_sources.pop(path, None)
        if old is None:
            yield f"the source {path} is new"
        elif old[0] != state[0]:
            yield f"the source {path} had {old[0]} bytes, has {state[0]}"
        elif old != state:
            yield f"the source {path} was changed"
    for path in old_sources:
        yield f"the source {path} is missing"
    if [s[0] for s in plan["sources"]] != [s[0] for s in before["sources"]]:
        yield "the sources have another order"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:16] + '..."'
