"""Some random histories of one node; tests/property plays thousands."""

from __future__ import annotations

import pytest

from tests.unit.node.histories import play


@pytest.mark.parametrize("first", range(1_000_000, 1_000_030, 10))
def test_random_histories(first: int) -> None:
    play(range(first, first + 10))
