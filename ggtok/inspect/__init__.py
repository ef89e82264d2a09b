"""Looking at a vocabulary: ``ggtok doctor`` and ``ggtok parity``."""
