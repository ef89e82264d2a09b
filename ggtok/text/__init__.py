"""Text to ids and back, and what is cut at tokens: what a tokenizer does with one text."""
