"""Random histories of one node: nothing is given twice, nothing leaks, whatever happens."""

from __future__ import annotations

from typing import Final

import pytest

from tests.seed import Sample
from tests.unit.node.histories import play

HISTORIES: Final = Sample(always=150, of_the_day=250, soak=200_000)


@pytest.mark.parametrize("seeds", HISTORIES.blocks(100))
def test_random_histories(seeds: range) -> None:
    play(seeds)
