"""Whatever is late, no pod is sent where the kubelet has no room for it."""

from __future__ import annotations

from typing import Final

import pytest

from tests.property.extender_history import History
from tests.seed import Sample, told

HISTORIES: Final = Sample(always=40, of_the_day=80, soak=10_000)
_BLOCK: Final = 50
_STEPS: Final = 80


@pytest.mark.parametrize("seeds", HISTORIES.blocks(_BLOCK))
def test_no_pod_comes_in_vain(seeds: range) -> None:
    bound = refused = 0
    for seed in seeds:
        with told(seed):
            history = History(seed)
            history.run(_STEPS)
        bound, refused = bound + history.bound, refused + history.refused
    if len(seeds) == _BLOCK:
        assert bound > refused > 0
