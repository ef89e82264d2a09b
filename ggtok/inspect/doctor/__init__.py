"""Finds errors and oddities in a file's tokenizer: :func:`ggtok.doctor`.

Each module has the checks for one group of findings. :mod:`~ggtok.inspect.doctor.codes` has the
table of findings.
"""
