"""Loads a vocabulary from the arguments of :func:`ggtok.load`."""
