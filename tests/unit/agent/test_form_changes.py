"""A card's form while claims hold it, and what it is offered as changes."""

from __future__ import annotations

import pytest

from dra_driver.agent.slices.device_layout import card_devices
from dra_driver.config.card_rules import CardConfig
from tests.unit.agent.form_orders import (
    CARD,
    CHANGES,
    WITH_ECC,
    Event,
    Node,
    changes_named,
    claim_comes,
    claim_ends,
    counted,
    ecc_switched,
    four_slices,
    play_every_order,
)


@pytest.mark.parametrize("changes", CHANGES, ids=changes_named)
def test_every_order_of_two_events(changes: list[Event]) -> None:
    """tests/property plays those of four."""
    assert play_every_order(changes, 2) > 0, "forms did wait for claims"


def test_the_last_claim_lets_the_new_form_in() -> None:
    node = Node()
    for event in (claim_comes, claim_comes, four_slices, ecc_switched, claim_ends):
        node.publish()
        event(node)
    node.publish()
    assert counted(node.published) == counted(
        card_devices(CARD, CardConfig(), WITH_ECC, "controller")
    )
    claim_ends(node)
    node.publish()
    shared = next(each for each in node.published if each["name"].startswith("shared"))
    assert shared["capacity"]["slices"]["value"] == "4"
    assert counted(node.published) == counted(node.wanted())
