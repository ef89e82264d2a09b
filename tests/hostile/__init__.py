"""Hostile input: files, texts and surroundings that mean ggtok harm. See __main__.py."""
