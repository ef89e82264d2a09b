"""The version, which is also in pyproject.toml and cext/ggtok.h (a test compares them)."""

__version__ = "0.1.0"
