"""What a test learns of a request that the fake does not play."""

from __future__ import annotations


class Unplayed(Exception):
    """Our code sends what no test of the fake has held against a real server."""
