"""Thousands of random histories of one node (`history`).

``GCU_MODEL_HISTORIES`` says how many, ``GCU_MODEL_SEED`` from which seed on: one history with the
seed of a failure is that failure again.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

from tests.unit.node.history import History

HISTORIES = int(os.environ.get("GCU_MODEL_HISTORIES", "10000"))
SEED = int(os.environ.get("GCU_MODEL_SEED", "0"))
CHUNK = 500
MOST_STEPS = 10


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(SEED, SEED + HISTORIES, CHUNK))
def test_random_histories(fast_path: Path, first: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "dra_driver")
    for seed in range(first, min(first + CHUNK, SEED + HISTORIES)):
        history = History(fast_path / "node", seed)
        try:
            history.run(MOST_STEPS)
        except Exception as error:
            past = "\n".join(history.told)
            raise AssertionError(f"{error!r} after\n{past}") from error
        shutil.rmtree(fast_path / "node")
