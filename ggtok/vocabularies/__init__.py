"""Vocabularies made rather than loaded: trained on text, or taken from a file to be written again.

What is public here is exported by ``ggtok`` itself: :func:`ggtok.train`,
:func:`ggtok.count_words`, :func:`ggtok.vocabulary`, :class:`ggtok.Vocabulary`.
"""
