"""Random histories of one node: nothing is given twice, nothing leaks, whatever happens.

``GCU_HISTORIES`` says how many, ``GCU_SEED`` from which seed on: one history with the seed of a
failure is that failure again.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.seed import CASES, Sample
from tests.unit.node.histories import play

HISTORIES: Final = Sample(
    always=500, of_the_day=1_000, soak=200_000, asked=os.environ.get("GCU_HISTORIES", CASES)
)


@pytest.mark.parametrize("seeds", HISTORIES.blocks(100))
def test_random_histories(seeds: range) -> None:
    play(seeds)
