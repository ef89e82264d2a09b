"""From what :func:`ggtok.load` is given to a loaded vocabulary."""
