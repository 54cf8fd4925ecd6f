"""Whatever is late, no pod is sent where the kubelet has no room for it."""

from __future__ import annotations

import pytest

from tests.property.extender_history import History
from tests.seed import SEED

_HISTORIES = 50
_BATCHES = 20


@pytest.mark.parametrize("batch", range(_BATCHES))
def test_no_pod_comes_in_vain(batch: int) -> None:
    first = SEED + batch * _HISTORIES
    bound = refused = 0
    for seed in range(first, first + _HISTORIES):
        history = History(seed)
        try:
            history.run(80)
        except AssertionError as error:
            error.add_note(f"GCU_SEED={seed} replays it")
            raise
        bound, refused = bound + history.bound, refused + history.refused
    assert bound > refused > 0
