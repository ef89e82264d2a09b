"""Corpora to token ids: files in, files out.

The way of the data, one module for each step:

======================  =========================================================
:mod:`.patterns`        globs
:mod:`.sources`         paths, folders and globs to files, each with its kind
:mod:`.compressions`    compressed files, in a bounded amount of memory
:mod:`.streams`         a file's bytes, decompressed, from any offset on
:mod:`.fields`          which fields of a record are its document
:mod:`.kinds`           whether a .json file is JSON lines
:mod:`.text`, :mod:`.jsonl`, :mod:`.tables`
                        bytes to documents
:mod:`.documents`       what they yield; what ``errors=`` does about faulty ones
:mod:`.batches`         documents to batches of a bounded size
:mod:`.ahead`           two threads: what is read ahead of, and written after, encoding
:mod:`.encode`          a batch to ids, with EOS
:mod:`.partial_file`    files that are appended to, and can be cut back
:mod:`.formats`         the table of formats: :mod:`.layouts`, :mod:`.arrow`
:mod:`.vocabulary`      what tells one vocabulary from another
:mod:`.entries`         what journals and manifests hold, checked
:mod:`.journal`         checkpoints; what a run that goes on must have in common
:mod:`.finished`        what is in the output's place already
:mod:`.verify`          whether a finished output is what its manifest says
:mod:`.run`             all of it, for one output
:mod:`.shards`          ``Tokenizer.encode_files``: one output, or several
======================  =========================================================

:mod:`.iterate` is ``Tokenizer.encode_batches``, for texts that are in memory or come from a
generator. All are imported when first used.
"""
