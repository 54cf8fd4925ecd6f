"""Some hostile inputs to every parser; ``make fuzz`` has a million for each.

``GCU_FUZZ`` says how many, ``GCU_SEED`` of which seed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz.engine import Subject, play
from tests.fuzz.subjects import SUBJECTS
from tests.seed import SEED

INPUTS = int(os.environ.get("GCU_FUZZ", "300"))


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_every_parser_takes_or_refuses_whatever_comes(subject: Subject, fast_path: Path) -> None:
    tally = play(subject, range(INPUTS), seed=SEED, folder=fast_path)
    assert tally.inputs == INPUTS
    # What is always refused tries the first line of a parser only.
    assert tally.taken > INPUTS // 100
