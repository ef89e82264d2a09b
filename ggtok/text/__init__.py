"""Encodes and decodes texts, and cuts them at token boundaries."""
