"""Builds what browsers run: the WebAssembly module, and the page of `ggtok view`."""
