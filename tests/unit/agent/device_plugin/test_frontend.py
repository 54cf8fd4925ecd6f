"""What a node that publishes nothing says that it offers, and what ails it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from dra_driver.agent.context import AgentContext
from dra_driver.agent.device_plugin.frontend import unpublished_devices
from dra_driver.device_plugin.allocator import planned_devices
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_ALLOCATED_BY
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice, record
from dra_driver.node.claims.belongings import orphan_records
from dra_driver.node.claims.failures import TRIES
from tests.unit.agent.slices.test_desired_devices import FIRST, Offering
from tests.unit.node.claims.counted import Counted, ref
from tests.unit.node.world import CARDS, POOL, hold

Told = dict[str, list[tuple[str, str, str]]]
GONE = 3


class Rig:
    """Two cards, and what is held of these and of others."""

    def __init__(self, root: Path) -> None:
        offering = Offering(root)
        self.machine, self.cards = offering.machine, offering.cards
        self.ledger = Ledger()
        self.counted = Counted()
        context = offering.context
        context.journal.snapshot = lambda: self.ledger
        context.failures = self.counted.failures
        self.context = cast("AgentContext", context)

    def grant(self, card: int) -> None:
        grant = ContainerAllocation((PluginDevice(CARDS[card], Mode.SHARED, 0),), 6, "")
        self.ledger = self.ledger.apply(
            record(ClaimStep.PREPARE_COMPLETED, grant, planned_devices(grant, POOL))
        )

    def claim(self, name: str, held: PreparedDevice) -> None:
        self.ledger = self.ledger.apply(record(ClaimStep.PREPARE_COMPLETED, ref(name), (held,)))

    def told(self) -> Told:
        """By device, its taints but for the one that all have."""
        return {
            str(device["name"]): [
                (each["key"].rpartition("/")[2], each.get("value", ""), each["effect"])
                for each in cast("list[dict[str, Any]]", device["taints"])
                if each["key"] != TAINT_ALLOCATED_BY
            ]
            for device in unpublished_devices(self.context)
        }


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = Rig(tmp_path)
    made.cards.refresh()
    return made


def on(card: int, *taints: tuple[str, str, str]) -> Told:
    """No profiles are known, so no card is offered in DRS mode."""
    address = str(CARDS[card]).replace(":", "-").replace(".", "-")
    return {f"{mode}-{address}": list(taints) for mode in ("shared", "whole")}


def test_what_is_held_is_offered_as_what_is_free(rig: Rig) -> None:
    rig.grant(0)
    assert rig.told() == on(0) | on(1)


def test_a_sick_card(rig: Rig) -> None:
    rig.machine.set_card(FIRST, health=False)
    rig.cards.refresh()
    assert rig.told() == on(0, ("unhealthy", "health", "NoSchedule")) | on(1)


def test_a_card_of_a_claim_is_not_given_out(rig: Rig) -> None:
    rig.claim("a", hold(1))
    assert rig.told() == on(0) | on(1, ("changing", "", "NoSchedule"))


def test_a_held_card_that_was_never_found_is_lost(rig: Rig) -> None:
    rig.grant(GONE)
    [gone] = on(GONE).keys() & rig.told().keys()
    assert gone.startswith("shared-")
    assert rig.told() == on(0) | on(1) | {gone: [("unhealthy", "lost", "NoSchedule")]}


def test_a_device_on_which_nothing_can_be_made_makes_nobody_leave(rig: Rig) -> None:
    rig.counted.fail("a", TRIES, device=hold(0).device_name)
    whole = {hold(0).device_name: [("failing", "", "NoSchedule")]}
    assert rig.told() == on(0) | on(1) | whole


def test_what_a_claim_left(rig: Rig) -> None:
    [left] = orphan_records(rig.ledger, ref("a"), (hold(0),))
    rig.ledger = rig.ledger.apply(left)
    taints = (("changing", "", "NoSchedule"), ("failing", "orphaned", "NoSchedule"))
    assert rig.told() == on(0, *taints) | on(1)


def test_nothing_before_the_cards_were_read(tmp_path: Path) -> None:
    assert Rig(tmp_path).told() == {}
