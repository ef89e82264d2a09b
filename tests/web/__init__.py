"""Tests of ggtok.wasm and its JavaScript package, in Node and in Chromium."""
