"""Folders in the shapes that repositories have, and what transformers makes of each."""
