"""Mutation testing: which tests notice that a line of cext/ or ggtok/ is wrong, and what they cost.

`python -m tests.mutants` runs it; docs/design/testing.md has its table.
"""
