"""Compares ggtok with an installed llama.cpp, for the command ``parity`` and for the tests.

`texts` generates texts that tokenizers may get wrong. `process` runs llama.cpp in a child process,
whose code is in `worker`. `compare` compares the ids.
"""
