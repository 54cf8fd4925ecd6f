"""Random histories of one node: nothing is given twice, nothing leaks, whatever happens.

``GCU_HISTORIES`` says how many, ``GCU_SEED`` from which seed on: one history with the seed of a
failure is that failure again.
"""

from __future__ import annotations

import os

import pytest

from tests.seed import SEED
from tests.unit.node.histories import play

HISTORIES = int(os.environ.get("GCU_HISTORIES", "10000"))
BLOCK = 200


@pytest.mark.parametrize("first", range(SEED, SEED + HISTORIES, BLOCK))
def test_random_histories(first: int) -> None:
    play(range(first, min(first + BLOCK, SEED + HISTORIES)))
