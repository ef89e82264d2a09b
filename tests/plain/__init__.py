"""A second tokenizer, in plain Python, that records its steps: the tests compare the library with
it.

The implementation is as simple as possible, without caches, cuts or tables, and covers every type
of vocabulary. Text flows as follows: ``explain.py`` finds special tokens; the module for the
vocabulary's type normalizes and tokenizes the text between them (see the tables in
:mod:`tests.plain.explain`).
"""
