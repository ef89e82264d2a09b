"""ggtok against the llama.cpp that is installed: the command ``parity``, and the tests' base.

:mod:`~ggtok.inspect.parity.texts` makes texts that a tokenizer can get wrong; :mod:`~ggtok.inspect.parity.process`
drives llama.cpp in a child process, whose side is :mod:`~ggtok.inspect.parity.worker`;
:mod:`~ggtok.inspect.parity.compare` compares the ids.
"""
