"""Helpers for all other packages: escaped text, reading and writing files, thread channels."""
