"""Some hostile inputs to every parser; ``make fuzz`` has a million for each.

``GCU_FUZZ`` says how many, ``GCU_SEED`` of which seed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.fuzz.engine import Subject, play
from tests.fuzz.subjects import SUBJECTS
from tests.seed import DAY

INPUTS: Final = int(os.environ.get("GCU_FUZZ", "200"))
"""Half of them are the same in every run, the others those of the day."""


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_every_parser_takes_or_refuses_whatever_comes(subject: Subject, fast_path: Path) -> None:
    half = INPUTS // 2
    always = play(subject, range(half), seed=0, folder=fast_path)
    today = play(subject, range(half, INPUTS), seed=DAY, folder=fast_path)
    assert always.inputs + today.inputs == INPUTS
    # What is always refused tries the first line of a parser only.
    assert always.taken > half // 100
