"""Exports vocabularies to formats of other libraries: one module for each format.

A writer checks that its format can represent the vocabulary, so that the other library produces
llama.cpp's ids. If not, it raises an error with the reason.
"""
