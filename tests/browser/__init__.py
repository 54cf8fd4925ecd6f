"""Headless Chromium, for the tests of `kubectl gcu view`."""
