"""The journal of a run: its plan and its checkpoints.

Each line of ``OUT.journal`` is a CRC-32 and an entry in JSON. The entries are the sources (several
per entry), the rest of the plan, the checkpoints, and finally a statement that the files are
complete and only need to be renamed. A checkpoint is written after all data up to it has been
synced to the disk. If the process is killed, the last line may be incomplete, and is then ignored.
A run locks its journal.

Since a journal may be forged, it must not be a symbolic link, and its entries are checked. The
names of the output files aren't in the journal, but are derived from the output's name.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from ggtok.base.files import open_own, sync_folder
from ggtok.corpora.documents import DROPPING, SourcePosition
from ggtok.corpora.summary import RunCounts
from ggtok.errors import FileError, InvalidValueError, file_error

# A source's path, size, modification time and sample.
SourceState = tuple[str, int, int, int]
_AT_ONCE = 1000  # the maximum number of sources in a line
_LINE = 32 << 20  # the maximum length of a line, in bytes; _AT_ONCE sources take less
_BEGINS = re.compile(rb'[0-9a-f]{8} \{"(sources|plan)":')


class Journal:
    """An open, locked journal.

    Attributes:
        plan: the plan in an existing journal, or None if the journal is new.
        last: the journal's last checkpoint, or None.
        complete: whether the files only need to be renamed.
    """

    def __init__(self, path: str, *, private: bool = False) -> None:
        """Opens or creates a journal. If it is `private`, only its owner can read a new one."""
        self.path = path
        self.plan: dict[str, Any] | None = None
        self.last: dict[str, Any] | None = None
        self.complete = False
        try:
            self._file, self._is_locked = _open_locked(path, private)
            try:
                self._read()
            except BaseException:
                self._file.close()
                raise
        except OSError as e:
            if isinstance(e, FileError):
                raise
            raise file_error(e.errno or 0, e.strerror or str(e), path) from None

    def begin(self, plan: dict[str, Any], sources: Iterator[SourceState]) -> None:
        """Starts a new journal. The plan doesn't include the sources, of which there may be
        many."""
        self._file.seek(0)
        self._file.truncate()
        self.plan, self.last, self.complete = None, None, False
        while some := list(islice(sources, _AT_ONCE)):
            self._append({"sources": some}, sync=False)
        self._append({"plan": plan})  # written last, since a journal without a plan is ignored
        sync_folder(self.path)

    def amend(self, plan: dict[str, Any]) -> None:
        """Replaces the plan for the rest of the run."""
        self._append({"plan": plan})

    def checkpoint(self, state: dict[str, Any]) -> None:
        self.last = state
        self._append({"checkpoint": state})

    def finish(self) -> None:
        """Records that the files only need to be renamed."""
        self._append({"complete": True})
        self.complete = True

    def remove(self) -> None:
        if not self._is_locked:
            self.close()  # Windows can't remove open files
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
        while line := self._file.readline(_LINE):
            if not good and not _BEGINS.match(line):
                raise FileError(
                    f"{self.path}: is not a journal of encode_files; move it, or choose another "
                    "name for the output"
                )
            text = _entry_json(line)
            if text is None:
                break
            try:
                entry = json.loads(text)
                kind, value = _parse_entry(entry)
            except (ValueError, KeyError, TypeError, RecursionError):
                raise FileError(
                    f"{self.path}: the entry at byte {good} is malformed; remove the file to "
                    "begin again"
                ) from None
            good += len(line)
            if kind == "sources":
                sources += value
            elif kind == "plan":
                self.plan = {**value, "sources": sources}
            elif kind == "checkpoint":
                self.last = value
            else:
                self.complete = True
        if self.plan is None:
            self.last, self.complete = None, False
        if self.last is not None and self.last["position"][0] > len(sources):
            raise FileError(f"{self.path}: is malformed; remove the file to begin again")
        self._file.seek(good)
        self._file.truncate()


def _entry_json(line: bytes) -> bytes | None:
    """Returns an entry's JSON, or None if the line is incomplete."""
    crc, _, text = line.rstrip(b"\n").partition(b" ")
    return text if line.endswith(b"\n") and crc == b"%08x" % zlib.crc32(text) else None


def _parse_entry(entry: Any) -> tuple[str, Any]:
    """Checks an entry, and returns its kind and value."""
    if not isinstance(entry, dict):
        raise ValueError("not an object")
    ((kind, value),) = entry.items()
    _CHECKS[kind](value)
    return kind, value


def _open_locked(path: str, private: bool) -> tuple[Any, bool]:
    """Opens and locks the journal. Returns the file, and whether it is locked, which is False if
    fcntl is missing, as on Windows."""
    while True:
        # Reads start at the beginning; writes always append.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        file = os.fdopen(open_own(path, flags, private=private), "a+b")
        is_locked = True
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            is_locked = False
        except OSError:
            file.close()
            raise FileError(f"{path}: another run is writing this output") from None
        # The run that held the lock may have finished and removed the file in the meantime.
        try:
            same = os.path.samestat(os.lstat(path), os.fstat(file.fileno()))
        except FileNotFoundError:
            same = False
        if same:
            file.seek(0)
            return file, is_locked
        file.close()


def compare(out: str, plan: dict[str, Any], before: dict[str, Any]) -> None:
    """Refuses to resume a run that has a different plan; the message names the differences."""
    changes = list(_changes(plan, before))
    if changes:
        more = f" (and {len(changes) - 3} more)" if len(changes) > 3 else ""
        raise InvalidValueError(
            f"{out}: was begun with other options or sources: {'; '.join(changes[:3])}{more}; "
            "resume=False (--restart) starts over"
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
        yield "the order of the sources changed"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:16] + '..."'


# Anyone may have written a journal or manifest, so entries are checked. These functions raise
# ValueError, KeyError or TypeError for an entry that ggtok.corpora.run never writes.
GROWING = ("data", "index", "sources", "mask")  # the last only in runs for conversations


def check_number(value: object) -> int:
    """Checks that a value is an integer from 0 to 2**63 - 1, and returns it."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("not a number of bytes or of anything else")
    return value


def check_plan(plan: Any) -> None:
    if not isinstance(plan["ggtok"], str):
        raise ValueError("not a version")
    for name in ("model", "options"):
        if not isinstance(plan[name], dict):
            raise ValueError(f"{name} is not an object")
    if not isinstance(plan["options"]["errors"], str):
        raise ValueError("not a rule")


def check_sources(sources: Any) -> None:
    for path, size, mtime, sample in sources:
        if not isinstance(path, str) or type(mtime) is not int:
            raise ValueError("not the state of a source")
        check_number(size)
        check_number(sample)


def counts(value: Any) -> RunCounts:
    checked = RunCounts(**value)
    for each in checked.as_dict().values():
        check_number(each)
    return checked


def check_checkpoint(state: Any) -> None:
    source, offset, skip, stage, faulty = state["position"]
    position = SourcePosition(
        check_number(source), check_number(offset), check_number(skip), check_number(stage), faulty
    )
    if position.state > DROPPING or type(faulty) is not bool:
        raise ValueError("not a position in the sources")
    counts(state["counts"])
    for name in GROWING:
        if name == "mask" and name not in state:
            continue
        size, crc, before, crc_before = map(check_number, state[name])
        if before > size or max(crc, crc_before) >= 1 << 32:
            raise ValueError("not the state of a file")
    if state["sources"][0] != 8 * position.source:
        raise ValueError("not as many sources as were read")
    if state["opened"] is not None:
        ids, size, crc = map(check_number, state["opened"])
        if ids > state["counts"]["ids"] or size > state["data"][0] or crc >= 1 << 32:
            raise ValueError("not the beginning of a document")


_CHECKS: dict[str, Callable[[Any], object]] = {
    "sources": check_sources,
    "plan": check_plan,
    "checkpoint": check_checkpoint,
    "complete": bool,
}
