"""Whatever writes an old leader has in flight, and however late watches are: no card twice."""

from __future__ import annotations

from typing import Final

import pytest

from tests.seed import Sample, told
from tests.unit.controller.allocating.two_leaders import play

HISTORIES: Final = Sample(always=20, of_the_day=40, soak=10_000)


@pytest.mark.parametrize("seeds", HISTORIES.blocks(25))
def test_no_card_is_given_twice_and_none_stays_idle(seeds: range) -> None:
    for seed in seeds:
        with told(seed):
            play(seed)
