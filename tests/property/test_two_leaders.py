"""Whatever writes an old leader has in flight, and however late watches are: no card twice."""

from __future__ import annotations

import pytest

from tests.seed import SEED
from tests.unit.controller.two_leaders import play


@pytest.mark.parametrize("seed", range(SEED, SEED + 300))
def test_no_card_is_given_twice_and_none_stays_idle(seed: int) -> None:
    play(seed)
