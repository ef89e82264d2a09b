"""Exports vocabularies to other libraries' formats, with one module for each format.

A writer checks that its format can represent the vocabulary, so that the other library produces
llama.cpp's ids. Otherwise, it raises an error with the reason.
"""
