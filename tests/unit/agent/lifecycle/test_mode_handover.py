"""Which cards each way offers, where some are held in the other one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from dra_driver.agent.lifecycle.mode_handover import (
    claimed_cards,
    dra_cards,
    plugin_cards,
)
from dra_driver.device_plugin.allocator import planned_devices
from dra_driver.model.card import Card
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import ContainerAllocation, Orphan
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_CHANGING
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, record
from tests.unit.node.world import CARDS, POOL, card, hold

FREE, CLAIMED, GRANTED = 0, 1, 2
NODE = [card(CARDS[at], at) for at in (FREE, CLAIMED, GRANTED)]


def taints(cards: Iterable[Card]) -> dict[int, list[str]]:
    """By the card's place."""
    return {
        CARDS.index(each.address): [problem.taint for problem in each.problems] for each in cards
    }


def ledger() -> Ledger:
    """A claim has a card, a container has slices of another."""
    grant = ContainerAllocation((PluginDevice(CARDS[GRANTED], Mode.SHARED, 0),), 6, "")
    claim = ClaimRef("team", "claim", "uid-claim")
    found = Ledger().apply(record(ClaimStep.PREPARE_COMPLETED, claim, (hold(CLAIMED),)))
    return found.apply(record(ClaimStep.PREPARE_COMPLETED, grant, planned_devices(grant, POOL)))


@pytest.mark.parametrize(
    ("active", "published"),
    [
        (True, {FREE: [], CLAIMED: [], GRANTED: [TAINT_CHANGING]}),
        (False, {CLAIMED: [TAINT_CHANGING]}),
    ],
    ids=["DRA", "the device plugin"],
)
def test_no_card_is_offered_by_both_front_ends(
    active: bool, published: dict[int, list[str]]
) -> None:
    assert taints(dra_cards(NODE, ledger(), active=active)) == published


def test_a_card_that_kube_scheduler_may_still_allocate_stays_for_a_while() -> None:
    found = dra_cards(NODE, Ledger(), active=False, retained={CARDS[FREE]})
    assert taints(found) == {FREE: [TAINT_CHANGING]}


def test_the_device_plugin_gives_out_no_card_of_claims() -> None:
    expected = {FREE: [], CLAIMED: [TAINT_CHANGING], GRANTED: []}
    assert taints(plugin_cards(NODE, ledger())) == expected


def test_what_a_claim_left_is_served_in_its_way() -> None:
    left = Orphan("team", "gone", "left-1")
    found = ledger().apply(record(ClaimStep.UNPREPARE_STARTED, left, (hold(FREE),)))
    assert claimed_cards(found) == {CARDS[CLAIMED], CARDS[FREE]}
    published = dra_cards(NODE[:1], found, active=False)
    assert taints(published) == {FREE: [TAINT_CHANGING]}


def test_a_claim_that_only_looks_at_a_card_has_none() -> None:
    overseer = record(
        ClaimStep.PREPARE_COMPLETED, ClaimRef("team", "a", "uid"), (hold(FREE, admin_access=True),)
    )
    assert claimed_cards(Ledger().apply(overseer)) == frozenset()
