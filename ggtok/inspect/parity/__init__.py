"""Compares ggtok with an installed llama.cpp, for the command ``parity`` and for the tests.

`texts` generates texts that tokenizers may get wrong. `process` runs llama.cpp in a child process,
which executes `worker`. `compare` compares the ids.
"""
