"""The version, which pyproject.toml and cext/ggtok.h have too (the tests compare)."""

__version__ = "0.1.0"
