"""What is wrong or surprising in a file's tokenizer: :func:`ggtok.doctor`.

One module for each group of findings; :mod:`~ggtok.inspect.doctor.codes` has their table.
"""
