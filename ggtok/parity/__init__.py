"""ggtok against the llama.cpp that is installed: the command ``parity``, and the tests' base.

:mod:`~ggtok.parity.texts` makes texts that a tokenizer can get wrong; :mod:`~ggtok.parity.process`
drives llama.cpp in a child process, whose side is :mod:`~ggtok.parity.worker`;
:mod:`~ggtok.parity.compare` compares the ids.
"""
