"""Fuzz targets for libFuzzer, their seeds and what they found worth keeping."""
