"""What the controller grants for memory and compute, on any card, the node takes for enough; the
next smaller part it refuses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.claim_request import parse_claim
from controller.allocator.results import allocation_status
from dra_driver.config.device_config import API_VERSION, ISOLATION, KIND
from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.card import Card
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.devices.device_shares import drs_device, shared_device
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ALLOCATOR_CONTROLLER, CLASS_PART, DRIVER
from dra_driver.model.profile import Profile, ProfileTable
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import PreparedDevice, PreparedDevices
from dra_driver.node.claims.device_ops import DeviceOps
from dra_driver.node.claims.drs_card import DrsCard
from dra_driver.node.plan import planned_devices
from dra_driver.node.ports import Hardware
from tests.seed import Sample, told
from tests.unit.controller.allocator.build import claim, pool, request, state, stripped
from tests.unit.node.drs_world import tool
from tests.unit.node.world import CARDS, NODE, POOL
from tests.unit.node.world import card as plain_card

CASES: Final = Sample(always=100, of_the_day=200, soak=20_000)
_BLOCK: Final = 100


def drawn_table(chance: random.Random) -> ProfileTable:
    """Profiles whose names say any memory, as long as a larger one has more."""
    sizes = sorted(chance.sample(range(1, 9), chance.randint(1, 4)))
    per_size = chance.randint(2, 30)
    return ProfileTable.of(
        Profile(f"{size}g.{size * per_size + chance.randint(0, 1)}gb", at, 8 // size, 1024, size)
        for at, size in enumerate(sizes)
    )


class Node:
    """One card, in shared and in DRS mode; some API servers drop what allocations say of shares."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.card = replace(plain_card(CARDS[0], 0), memory_mib=chance.randint(1000, 100_000))
        self._slices, self._table = chance.randint(1, 16), drawn_table(chance)
        tables = ProfileTables(folder)
        tables.learn(self.card, self._table)
        drs = Drs(tool(), folder, breaker=HungCardBreaker(0))
        hardware = cast("Hardware", SimpleNamespace(card=lambda _: self.card))
        drs_card = DrsCard(drs, tables, Ledger)
        self._ops = DeviceOps(hardware, Journal(folder), drs_card, lambda _: self._slices)
        published = [
            shared_device(self.card, self._slices, allocator=ALLOCATOR_CONTROLLER),
            drs_device(self.card, self._table, allocator=ALLOCATOR_CONTROLLER),
        ]
        self.devices = [*map(stripped, published)] if chance.random() < 0.3 else published

    def plan(self, found: Object) -> PreparedDevices:
        return planned_devices(found, ClaimRef.of(found), pool=POOL, share=self._ops.share)

    def smaller(self, device: PreparedDevice) -> list[int]:
        """The smaller parts of the card in the device's mode, ascending."""
        sizes = [profile.size for profile in self._table]
        parts = sizes if device.mode is Mode.DRS else range(1, self._slices)
        return [part for part in parts if part < (device.amount or 0)]


def drawn_config(chance: random.Random, card: Card) -> Object:
    measures = {
        "memory": f"{chance.randint(1, card.memory_mib)}Mi",
        "cores": chance.randint(1, 99),
    }
    kept = chance.sample(sorted(measures), chance.randint(1, 2))
    isolation = chance.choice([{}, *({"isolation": word} for word in ISOLATION)])
    asked = {name: measures[name] for name in kept}
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **asked, **isolation}
    return {"opaque": {"driver": DRIVER, "parameters": parameters}}


def granted(devices: Sequence[Object], config: Object) -> Object | None:
    """A claim as the controller allocates it; None where no part of the card is enough."""
    wanted = claim("c", [request(cls=CLASS_PART)], config=[config])
    found = state(pool(NODE, devices))
    parsed = parse_claim(wanted, found.classes)
    outcome = allocate(found, [parsed], found.numbers.set_of([NODE]))
    if not isinstance(outcome, Allocation):
        return None
    [assignments] = outcome.assignments
    status = allocation_status(
        parsed,
        assignments,
        NODE,
        found.classes,
        timestamp="2026-01-01T00:00:00Z",
        new_share_id=lambda: "a",
    )
    return wanted | {"status": {"allocation": status}}


def with_amount(found: Object, amount: int) -> Object:
    status = found["status"]["allocation"]
    [result] = status["devices"]["results"]
    mode, _ = parse_device_name(result["device"])
    less = result | {"consumedCapacity": {CAPACITY_OF_MODE[mode]: str(amount)}}
    devices = status["devices"] | {"results": [less]}
    return found | {"status": {"allocation": status | {"devices": devices}}}


@pytest.mark.parametrize("seeds", CASES.blocks(_BLOCK))
def test_the_node_and_the_controller_agree(fast_path: Path, seeds: range) -> None:
    served = refused = 0
    for seed in seeds:
        with told(seed):
            chance = random.Random(seed)
            node = Node(chance, fast_path / str(seed))
            found = granted(node.devices, drawn_config(chance, node.card))
            if found is None:
                continue
            [device] = node.plan(found)
            served += 1
            if smaller := node.smaller(device):
                with pytest.raises(Refused, match="its GcuConfig asks for"):
                    node.plan(with_amount(found, smaller[-1]))
                refused += 1
    if len(seeds) == _BLOCK:
        assert served > refused > _BLOCK // 5
