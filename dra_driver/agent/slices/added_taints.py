"""Taints that devices to publish get beside those for the problems of their cards. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from dra_driver.agent.slices.device_layout import Devices, tainted
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import parse_device_name, taint
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FAILING, TAINT_FOREIGN, TAINT_HELD
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep
from dra_driver.node.claims.belongings import cards_with_orphans
from dra_driver.node.claims.failures import DeviceCircuitBreaker

ORPHANED: Final = "orphaned"
"""The value of the taint ``failing`` that stays until the agent has destroyed the orphans."""
DELETED_CLAIM: Final = "deleted-claim"
"""The value of the taint ``held``."""


def with_added_taints(
    wanted: Mapping[PciAddress, Devices],
    ledger: Ledger,
    failures: DeviceCircuitBreaker,
    held: Collection[PciAddress],
    *,
    evicting: bool = True,
) -> Mapping[PciAddress, Devices]:
    """The `wanted` devices, with the taint ``failing`` on those that `failures` has tripped, so
    that pods leave them and no new pod comes.

    The effect is NoExecute: Kubernetes deletes the pods whose claims have the device. It is
    NoSchedule while other claims than the waiting ones use the device, because the taint of a
    shared device concerns all its claims, and the other pods run well. Foreign instances count as
    such a use, because they may belong to pods whose records were lost.

    If a card has an orphan of an ended claim, all its devices have the taint, with the value
    `ORPHANED`, as long as the orphan is in the journal: the ledger would refuse a new claim.

    If not `evicting`, the effect is always NoSchedule.

    All devices of the cards `held` get the taint ``held``: deleted claims still have them, so new
    claims are to get others. Its effect is NoSchedule: pods that use the card otherwise stay.
    """
    tripped, orphaned = failures.tripped(), cards_with_orphans(ledger)
    in_use = _in_use(ledger, failures.waiting())

    def with_taints(card: PciAddress, device: Object) -> Object:
        name = device["name"]
        if name in tripped or card in orphaned:
            value = ORPHANED if card in orphaned else ""
            runs_well = name in in_use or _has_foreign_instances(device)
            evicts = evicting and not runs_well
            device = tainted(device, taint(TAINT_FAILING, value, evicts=evicts))
        return tainted(device, taint(TAINT_HELD, DELETED_CLAIM)) if card in held else device

    return {card: [with_taints(card, each) for each in devices] for card, devices in wanted.items()}


def _in_use(ledger: Ledger, waiting: Collection[str]) -> frozenset[str]:
    return frozenset(
        device.device_name
        for uid, claim in ledger.claims.items()
        if claim.state is ClaimStep.PREPARE_COMPLETED and uid not in waiting
        for device in claim.devices
    )


def _has_foreign_instances(device: Object) -> bool:
    mode, _ = parse_device_name(device["name"])
    return mode is Mode.DRS and any(each["key"] == TAINT_FOREIGN for each in device["taints"])
