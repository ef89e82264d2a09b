"""Inspects vocabularies: ``ggtok doctor`` and ``ggtok parity``."""
