"""A card's form stays while claims hold it, in whatever order things happen."""

from __future__ import annotations

import pytest

from tests.unit.agent.form_orders import CHANGES, Event, changes_named, play_every_order


@pytest.mark.parametrize("changes", CHANGES, ids=changes_named)
def test_every_order_of_four_events(changes: list[Event]) -> None:
    assert play_every_order(changes, 4) > 50, "forms did wait for claims"
