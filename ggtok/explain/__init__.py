"""How ids come about: tokenizing in plain Python, step by step.

The implementation is as plain as it can be, without caches, cuts or tables, and keeps what it
does on the way. The tests compare the library with it for every kind of vocabulary. The order of
the data: ``partition.py`` finds special tokens; the text between them goes to the module of the
vocabulary's type, which normalizes and tokenizes it (:mod:`ggtok.explain.explain` knows which).
"""
