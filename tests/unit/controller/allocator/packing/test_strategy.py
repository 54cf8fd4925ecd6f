"""What can be said in a setting or a claim has a strategy."""

from __future__ import annotations

from controller.allocator.packing.strategy import STRATEGIES
from dra_driver.model.claims.packing import Packing


def test_each_packing_has_a_strategy() -> None:
    assert set(STRATEGIES) == set(Packing)
