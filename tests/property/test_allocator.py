"""The allocator gives the verdict that trying everything gives, on random states."""

from __future__ import annotations

from typing import Final

import pytest

from tests.property.verdicts import check
from tests.seed import Sample

STATES: Final = Sample(always=1_000, of_the_day=2_000, soak=100_000)
_BLOCK: Final = 1_000


@pytest.mark.parametrize("seeds", STATES.blocks(_BLOCK))
def test_same_verdict_as_trying_everything(seeds: range) -> None:
    satisfiable = check(seeds)
    if len(seeds) == _BLOCK:  # both verdicts are put to the test
        assert _BLOCK // 5 < satisfiable < _BLOCK * 4 // 5
