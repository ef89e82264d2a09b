"""Fuzz targets for libFuzzer, their seeds and their saved corpora."""
