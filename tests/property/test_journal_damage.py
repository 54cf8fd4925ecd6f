"""A journal that is damaged at any place, or ends anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.node.damage import SMALL, open_cut, open_flipped, open_torn


@pytest.mark.parametrize("place", range(len(SMALL) + 1))
def test_any_flipped_byte_costs_at_most_its_record(fast_path: Path, place: int) -> None:
    open_flipped(fast_path, place)


@pytest.mark.parametrize("length", range(len(SMALL)))
def test_a_file_that_was_cut_anywhere_keeps_what_is_before(fast_path: Path, length: int) -> None:
    open_cut(fast_path, length)


@pytest.mark.parametrize("length", range(len(SMALL)))
def test_a_record_that_was_cut_anywhere_is_the_end(fast_path: Path, length: int) -> None:
    open_torn(fast_path, length)
