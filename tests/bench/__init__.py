"""Benchmarks that compare ggtok with llama.cpp and the fastest other tokenizers.

    pip install -e ".[bench]"
    python -m tests.bench                       # about two minutes
    python -m tests.bench --full --corpus DIR --out DIR

__main__.py describes the method; groups.py and pre.py describe what is measured.
"""
