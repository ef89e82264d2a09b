"""Mutation testing: which tests detect faults in cext/ or ggtok/, and how long they take.

`python -m tests.mutants` runs it; docs/design/testing.md has a table of results.
"""
