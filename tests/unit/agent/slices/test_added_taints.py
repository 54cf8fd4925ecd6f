"""The taint on devices on which nothing can be made, and whose pods it makes leave."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dra_driver.agent.slices.added_taints import with_added_taints
from dra_driver.agent.slices.device_layout import Devices
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FAILING, TAINT_FOREIGN, TAINT_HELD
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice, record
from dra_driver.node.claims.belongings import orphan_records
from dra_driver.node.claims.failures import TRIES
from tests.unit.node.claims.counted import Counted
from tests.unit.node.world import CARDS, hold

DRS = hold(0, mode=Mode.DRS, share_id="s", consumed={"size": "1"})
OWN: Object = {"key": "gcu.enflame.com/allocated-by", "effect": "NoSchedule"}


def device(of: PreparedDevice, *taints: Object) -> Object:
    return {"name": of.device_name, "taints": [OWN, *taints]}


WANTED = {CARDS[0]: [device(hold(0)), device(DRS)], CARDS[1]: [device(hold(1))]}


class Rig:
    def __init__(self) -> None:
        self.wanted: Mapping[PciAddress, list[Object]] = WANTED
        self.counted = Counted()
        self.ledger = Ledger()
        self.held: set[PciAddress] = set()

    def hold(
        self, name: str, holds: PreparedDevice, kind: ClaimStep = ClaimStep.PREPARE_COMPLETED
    ) -> None:
        claim = ClaimRef("team", name, f"uid-{name}")
        self.ledger = self.ledger.apply(record(kind, claim, (holds,)))

    def devices(self) -> Mapping[PciAddress, Devices]:
        return with_added_taints(self.wanted, self.ledger, self.counted.failures, self.held)

    def effects(self) -> dict[str, list[str]]:
        """Of the taint, by device."""
        return {
            each["name"]: [t["effect"] for t in each["taints"] if t["key"] == TAINT_FAILING]
            for devices in self.devices().values()
            for each in devices
        }


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_only_the_device_that_fails_is_tainted(rig: Rig) -> None:
    assert rig.devices() == WANTED
    rig.counted.fail("a", TRIES)
    assert rig.effects() == {
        DRS.device_name: ["NoExecute"],
        hold(0).device_name: [],
        hold(1).device_name: [],
    }
    assert WANTED[CARDS[0]][1]["taints"] == [OWN]


@pytest.mark.parametrize(
    ("name", "held", "kind", "effect"),
    [
        ("neighbour", DRS, ClaimStep.PREPARE_COMPLETED, "NoSchedule"),
        ("neighbour", DRS, ClaimStep.UNPREPARE_STARTED, "NoExecute"),
        ("neighbour", hold(1), ClaimStep.PREPARE_COMPLETED, "NoExecute"),
        ("a", DRS, ClaimStep.PREPARE_COMPLETED, "NoExecute"),
    ],
    ids=[
        "a neighbour",
        "a neighbour that ends",
        "a neighbour on another card",
        "the claim itself, whose instance is gone",
    ],
)
def test_nobody_is_deleted_who_runs_well(
    rig: Rig, name: str, held: PreparedDevice, kind: ClaimStep, effect: str
) -> None:
    rig.hold(name, held, kind)
    rig.counted.fail("a", TRIES)
    assert rig.effects()[DRS.device_name] == [effect]


@pytest.mark.parametrize(
    ("mode", "effect"), [(Mode.DRS, "NoSchedule"), (Mode.WHOLE, "NoExecute")], ids=str
)
def test_instances_of_somebody_may_be_of_pods_whose_records_were_lost(
    rig: Rig, mode: Mode, effect: str
) -> None:
    """Such a pod has a part of the DRS device, as no pod has one of the whole card."""
    foreign: Object = {"key": TAINT_FOREIGN, "effect": "NoSchedule"}
    failing = hold(0, mode=mode)
    rig.wanted = {CARDS[0]: [device(hold(0), foreign), device(DRS, foreign)]}
    rig.counted.fail("a", TRIES, device=failing.device_name)
    assert rig.effects()[failing.device_name] == [effect]


def left_on(rig: Rig, *holds: PreparedDevice) -> None:
    for record_of in orphan_records(rig.ledger, ClaimRef("team", "gone", "uid-gone"), holds):
        rig.ledger = rig.ledger.apply(record_of)


def test_nothing_is_given_of_a_card_on_which_something_was_left(rig: Rig) -> None:
    """In no mode, and for as long as the journal says so; also by an agent that starts then."""
    left_on(rig, DRS)
    rig.counted.now = 1e6
    assert rig.effects() == {
        DRS.device_name: ["NoExecute"],
        hold(0).device_name: ["NoExecute"],
        hold(1).device_name: [],
    }
    wanted = rig.devices()
    assert {t.get("value") for each in wanted[CARDS[0]] for t in each["taints"]} == {
        None,
        "orphaned",
    }
    rig.hold("neighbour", DRS)
    assert rig.effects()[DRS.device_name] == ["NoSchedule"]
    assert rig.effects()[hold(0).device_name] == ["NoExecute"]
    rig.ledger = Ledger()
    assert rig.devices() == WANTED


HELD = {"key": TAINT_HELD, "value": "deleted-claim", "effect": "NoSchedule"}


def test_all_devices_of_a_card_that_deleted_claims_hold_are_tainted_and_no_other(rig: Rig) -> None:
    rig.held = {CARDS[0]}
    wanted = rig.devices()
    assert [each["taints"] for each in wanted[CARDS[0]]] == [[OWN, HELD], [OWN, HELD]]
    assert wanted[CARDS[1]] == WANTED[CARDS[1]]
