"""The taint on cards that deleted claims still hold."""

from __future__ import annotations

from dra_driver.agent.slices.held_taints import HeldTaints
from dra_driver.model.names import TAINT_HELD
from tests.unit.agent.slices.test_failing_taints import OWN, WANTED
from tests.unit.node.world import CARDS

HELD = {"key": TAINT_HELD, "value": "deleted-claim", "effect": "NoSchedule"}


def test_all_devices_of_the_card_are_tainted_and_no_other() -> None:
    devices = HeldTaints(lambda: WANTED, lambda: {CARDS[0]})()
    assert devices is not None
    assert [each["taints"] for each in devices[CARDS[0]]] == [[OWN, HELD], [OWN, HELD]]
    assert devices[CARDS[1]] == WANTED[CARDS[1]]


def test_without_such_a_card_nothing_changes() -> None:
    assert HeldTaints(lambda: WANTED, set)() is WANTED
    assert HeldTaints(lambda: None, lambda: {CARDS[0]})() is None
