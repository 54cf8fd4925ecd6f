"""A few of the states on which `tests/property` holds the allocator against trying everything."""

from __future__ import annotations

import pytest

from tests.property.verdicts import check


@pytest.mark.parametrize("first", [-1000, -500])
def test_same_verdict_as_trying_everything(first: int) -> None:
    assert check(range(first, first + 500)) > 100
