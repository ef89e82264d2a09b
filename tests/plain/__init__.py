"""A second tokenizer in plain Python that records its steps, to judge the library.

The implementation is as simple as possible, without caches, cuts or tables. The tests compare the
library with it for every type of vocabulary. The flow of data: ``explain.py`` finds special tokens.
The text between them goes to the module of the vocabulary's type, which normalizes and tokenizes it
(see the tables in :mod:`tests.plain.explain`).
"""
