"""A card's form while claims hold it, and what it is offered as changes."""

from __future__ import annotations

import pytest

from tests.unit.agent.form_orders import CHANGES, Event, changes_named, play_every_order


@pytest.mark.parametrize("changes", CHANGES, ids=changes_named)
def test_every_order_of_two_events(changes: list[Event]) -> None:
    """tests/property plays those of four."""
    assert play_every_order(changes, 2) > 0, "forms did wait for claims"
