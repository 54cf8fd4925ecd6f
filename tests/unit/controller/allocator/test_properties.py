"""A few of the states on which `tests/property` holds the allocator against trying everything."""

from __future__ import annotations

from tests.property.verdicts import check


def test_same_verdict_as_trying_everything() -> None:
    assert check(range(-200, 0)) > 40
