"""Plays random histories of a node, by seed."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.unit.node.folders import fast_folder
from tests.unit.node.history import History

_MOST_STEPS = 10


def play(seeds: Iterable[int]) -> None:
    """Play the history of each seed; raises AssertionError, with its past, for one that goes
    wrong."""
    with fast_folder() as folder, _quiet():
        for seed in seeds:
            history = History(folder / str(seed), seed)
            try:
                history.run(_MOST_STEPS)
            except Exception as error:
                past = "\n".join(history.told)
                raise AssertionError(
                    f"{error!r} after\n{past}\n"
                    f"again: GCU_SEED={seed} GCU_CASES=1 pytest tests/property/test_node.py"
                ) from error
            shutil.rmtree(folder / str(seed))


@contextmanager
def _quiet() -> Iterator[None]:
    """What the driver warns of is what is done to it here."""
    logger = logging.getLogger("dra_driver")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
