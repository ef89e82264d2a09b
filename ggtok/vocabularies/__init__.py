"""Trains, converts, reads and writes vocabularies.

``ggtok`` itself exports the public names: :func:`ggtok.train`, :func:`ggtok.count_words`,
:func:`ggtok.convert`, :func:`ggtok.vocabulary`, :class:`ggtok.Vocabulary`.
"""
