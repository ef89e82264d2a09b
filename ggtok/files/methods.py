"""The calls of :class:`ggtok.Tokenizer` for texts without end and for files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from ggtok import _types as types
from ggtok._native.arguments import index, truth
from ggtok.chat.methods import Chatting

TYPE_CHECKING = False  # as in _native/library.py


class Corpora(Chatting):
    """The part of :class:`ggtok.Tokenizer` that reads more than memory holds."""

    if TYPE_CHECKING:

        def _threads(self, threads: int) -> int: ...

    def encode_batches(
        self,
        texts: Iterable[types.Text] | types.ArrowStream | os.PathLike[str],
        *,
        batch_bytes: int = 8 << 20,
        threads: int = 0,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        progress: Callable[[types.EncodeProgress], object] | None = None,
    ) -> Iterator[tuple[types.Int32Array, types.Int64Array]]:
        """The ids of texts without end, batch by batch.

        A thread collects the next batch while one is encoded; at most three exist at a time, so
        memory is bounded, but for single texts that are larger. Order is kept. Other than that it
        is :meth:`encode_batch_arrays` of consecutive texts.

        Args:
            texts: any iterable of ``str`` or bytes-like texts, a generator too, which is asked
                from a thread of its own; an open file, whose lines are the texts, or a
                ``pathlib.Path`` of one (lines keep their newlines, as in Python); an object with
                ``__arrow_c_stream__``, of strings or of one column of strings, without nulls
                (by pyarrow).
            batch_bytes: a batch ends with the text that reaches so many bytes of UTF-8.
            threads: how many threads encode; 0: one for each processor core.
            add_special, parse_special: as for :meth:`encode`.
            progress: called with an :class:`EncodeProgress` after each batch, on the caller's
                thread.

        Yields:
            ``(ids, offsets)`` as :meth:`encode_batch_arrays` returns them, for each batch.

        Raises:
            InvalidTypeError, TextEncodeError, VocabError: as for :meth:`encode`; the message says
                which text, counted from the first of all (``texts[3]``), and the texts before it
                have been yielded.
            MissingExtraError: an Arrow stream, without pyarrow.
            FileError: a file can't be read.

        What the iterable raises, the iterator raises. Threads may use a tokenizer's iterators at
        the same time, each its own.
        """
        from ggtok.files import iterate

        batch_bytes = index(batch_bytes, "batch_bytes")
        iterate.check(texts, batch_bytes)
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._native.parsed(parse)
        return iterate.encode_batches(
            self,
            texts,
            batch_bytes=batch_bytes,
            threads=self._threads(threads),
            add_special=truth(add_special, "add_special"),
            parse_special=parse,
            progress=progress,
        )

    def encode_files(
        self,
        sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        out: str | os.PathLike[str],
        *,
        format: types.IdFormat | None = None,
        dtype: types.IdType = "auto",
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        kind: types.SourceKind | None = None,
        separator: str | bytes | None = None,
        field: str | Sequence[str] | None = None,
        add_special: bool = True,
        eos: bool = True,
        errors: types.FaultRule = "raise",
        threads: int = 0,
        shards: int | None = None,
        resume: bool = True,
        force: bool = False,
        progress: Callable[[types.EncodeProgress], object] | None = None,
    ) -> types.Summary:
        """Encode files to a file of ids, for training: docs/files.md has examples.

        Reading, encoding and writing overlap. Memory is bounded, whatever the files' size: a
        document in a text file comes in parts if it is long. In memory in one piece must lie a
        JSON line, a table's row, a document for ``format="arrow"``, and one of a vocabulary that
        can't cut; they may have 1 GiB.

        Each 64 MB of ids is a checkpoint: what was written is on the disk, and ``OUT.journal``
        says how far it goes. A call with the same arguments goes on from the last checkpoint, and
        the output is the same to the bit as that of a run without interruption; if the output is
        finished already, nothing is done. ``OUT`` gets its name when it is complete.

        Args:
            sources: a path or several: files, folders (with what is below, sorted, without hidden
                files), globs (``**`` too). Each file is read once, by its real path.
            out: the file to write.
            format: None: by the extension of `out` (``.npy``, ``.arrow``), else ``"raw"``, which is
                ids, and ``OUT.offsets`` (int64), where documents begin and the
                last ends; ``"npy"``: the same as NumPy files, ``NAME.npy`` and
                ``NAME.offsets.npy``; ``"megatron"``: Megatron's ``NAME.bin`` and ``NAME.idx``;
                ``"arrow"``: an Arrow IPC file with a column ``ids`` of lists (needs pyarrow). All
                are little-endian. ``OUT.manifest.json`` names sources, counts, vocabulary and
                versions.
            dtype: of the ids. ``"auto"``: uint16 if the vocabulary fits, else uint32; as Megatron
                chooses (uint16, int32) for its format, which has no uint32.
            include, exclude: globs of files that are meant, and of files and folders that aren't,
                among those that no path names itself. A glob without ``/`` is matched with names,
                else with paths from the folder that is a source.
            kind: of all sources: ``"text"``, ``"jsonl"``, ``"parquet"`` or ``"arrow"``. None: by
                the extension, before ``.gz``, ``.bz2``, ``.xz`` or ``.zst``: JSON lines
                (``.jsonl``, ``.ndjson``, and ``.json`` if its beginning is), a table
                (``.parquet``, ``.arrow``, ``.feather``, ``.ipc``) or, with any other, text.
            separator: what stands between two documents of a text file; None: each file is one.
                After the last separator there is no document if nothing follows.
            field: what holds the document in a JSON object or a table; ``"text"`` by default.
                ``"meta.text"`` is a field of an object in a field; the texts of several fields are
                joined by a blank line.
            add_special: as for :meth:`encode`; ``parse_special`` is off.
            eos: end each document with EOS, once, also if the vocabulary adds it.
            errors: what to do about documents that aren't valid UTF-8 or are empty, and records
                that lack the field or are malformed. ``"raise"``; ``"replace"``: put U+FFFD in
                place of what is invalid, as ``bytes.decode`` does, and keep what is empty or
                lacking as empty documents; ``"skip"``: drop them. The Summary has their counts.
            threads: how many encode; 0: one for each processor core.
            shards: so many outputs instead of one, ``NAME-00000-of-00004.bin`` and so on, each with
                its own manifest, of consecutive sources of about the same size.
            resume: go on with an interrupted run. False: begin again, and replace what a run for
                the same `out` has written.
            force: also replace files that no such run has written, but never a source.
            progress: called with an :class:`EncodeProgress` after each batch.

        Raises:
            DocumentError: a document is faulty, with ``errors="raise"``.
            FileError: a file can't be read or written, or changed meanwhile; another run writes
                the same output.
            InvalidValueError: an argument has a wrong value; the vocabulary has no EOS; the
                output exists or was begun with other sources, options or another model.
            MissingExtraError: a kind of file needs a package that isn't installed.

        Ctrl-C stops at once; the next call goes on from the last checkpoint. Threads may call it
        at the same time, with different outputs.
        """
        from ggtok.files.shards import encode_files

        return encode_files(
            self,
            sources,
            out,
            format=format,
            dtype=dtype,
            include=include,
            exclude=exclude,
            kind=kind,
            separator=separator,
            field=field,
            add_special=truth(add_special, "add_special"),
            eos=truth(eos, "eos"),
            errors=errors,
            threads=self._threads(threads),
            resume=truth(resume, "resume"),
            force=truth(force, "force"),
            progress=progress,
            shards=None if shards is None else index(shards, "shards"),
        )
