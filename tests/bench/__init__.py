"""Benchmarks against llama.cpp and the fastest other tokenizers.

    pip install -e ".[bench]"
    python -m tests.bench                       # about two minutes
    python -m tests.bench --full --corpus DIR --out DIR

How it measures is told in __main__.py, what it measures in groups.py and pre.py.
"""
