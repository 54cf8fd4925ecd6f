"""The allocator gives the verdict that trying everything gives, on 100,000 random states."""

from __future__ import annotations

import pytest

from tests.property.verdicts import check

STATES = 100_000
BLOCK = 2_000


@pytest.mark.parametrize("first", range(0, STATES, BLOCK))
def test_same_verdict_as_trying_everything(first: int) -> None:
    satisfiable = check(range(first, first + BLOCK))
    assert BLOCK // 5 < satisfiable < BLOCK * 4 // 5  # both verdicts are put to the test
