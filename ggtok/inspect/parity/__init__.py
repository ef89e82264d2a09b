"""ggtok against the llama.cpp that is installed: the command ``parity``, and the tests' base.

`texts` makes texts that a tokenizer can get wrong; `process` drives llama.cpp in a child
process, whose side is `worker`; `compare` compares the ids.
"""
