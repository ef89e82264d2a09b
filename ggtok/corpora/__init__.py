"""Converts files of text to files of token ids.

The modules, in the order of the data flow:

============================  ===================================================
:mod:`.sources`               finds the files that paths, folders and globs name
:mod:`.streams`               reads and decompresses a file, starting at an offset
:mod:`.text`, :mod:`.jsonl`, :mod:`.tables`
                              read documents from text, JSON lines, Parquet and Arrow
:mod:`.conversations`         conversations in JSON lines, as requests
:mod:`.documents`             documents, the fields of records, the ``errors=`` rule
:mod:`.document_batches`      groups documents into batches of a bounded size
:mod:`.encode_documents`      encodes a batch, and adds EOS
:mod:`.encode_conversations`  encodes a batch of conversations, with masks
:mod:`.partial_file`          growing files that can be truncated
:mod:`.id_formats`            the file formats for ids
:mod:`.vocabulary_hash`       identifies a vocabulary
:mod:`.journal`               checkpoints, and the checks before a run is resumed
:mod:`.finished`              manifests, and the verification of finished outputs
:mod:`.summary`               progress and the summary of a run
:mod:`.run`                   writes one output
:mod:`.shards`                ``Tokenizer.encode_files``: writes one output or several
============================  ===================================================

:mod:`.iterate` implements ``Tokenizer.encode_batches``, for texts in memory or from a generator.
All modules are imported when first used.
"""
