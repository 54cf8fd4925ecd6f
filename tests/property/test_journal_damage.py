"""A journal that is damaged at any place, or ends anywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.node.damage import SMALL, open_cut, open_flipped, open_torn

Damage = Callable[[Path, int], None]


def test_any_flipped_byte_costs_at_most_its_record(fast_path: Path) -> None:
    everywhere(fast_path, open_flipped, len(SMALL) + 1)


@pytest.mark.parametrize("damage", [open_cut, open_torn])
def test_what_is_before_a_cut_anywhere_is_kept(fast_path: Path, damage: Damage) -> None:
    """`open_cut`: the file ends there; `open_torn`: the record does."""
    everywhere(fast_path, damage, len(SMALL))


def everywhere(root: Path, damage: Damage, count: int) -> None:
    """The damage at each of so many places, each in a folder of its own."""
    for place in range(count):
        folder = root / str(place)
        folder.mkdir()
        try:
            damage(folder, place)
        except AssertionError as error:
            error.add_note(f"at byte {place}")
            raise
