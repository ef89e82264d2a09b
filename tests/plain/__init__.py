"""A second tokenizer, in plain Python, that records its steps: the tests compare the library with
it.

The implementation covers every vocabulary type and is as simple as possible: it doesn't have the
library's caches and tables, and doesn't encode texts in blocks. ``explain.py`` finds the special
tokens. The module for the vocabulary's type normalizes and tokenizes the text between them (see the
tables in :mod:`tests.plain.explain`).
"""
