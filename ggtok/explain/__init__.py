"""Explains the steps from a text to its ids, as the C library reports them (``ggtok_trace``)."""
