"""Tests of the JavaScript package in Node and Chromium, and of the page in Chromium and Firefox."""
