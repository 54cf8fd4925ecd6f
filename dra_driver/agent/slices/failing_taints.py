"""Taints failing devices and cards with orphans, so that pods leave them and no new pod comes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.agent.sources import DesiredSource, LedgerSource
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import parse_device_name, taint
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FAILING, TAINT_FOREIGN
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import ClaimState, Ledger
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.orphans import cards_with_orphans

ORPHANED: Final = "orphaned"
"""The taint's value if it stays until the agent has destroyed the card's orphans."""


@dataclass(frozen=True, slots=True)
class FailingTaints:
    """The devices of `source`, with the taint ``failing`` on those that `failures` has tripped.

    The effect is NoExecute: Kubernetes deletes the pods whose claims have the device. It is
    NoSchedule while other claims than the waiting ones use the device, because the taint of a
    shared device concerns all its claims, and the other pods run well. Foreign instances count as
    such a use, because they may belong to pods whose records were lost.

    If a card has an orphan of an ended claim, all its devices have the taint, with the value
    `ORPHANED`, as long as the orphan is in the journal: the ledger would refuse a new claim.

    If not `evicting`, the effect is always NoSchedule.
    """

    source: DesiredSource
    failures: DeviceCircuitBreaker
    _: KW_ONLY
    ledger: LedgerSource
    evicting: bool = True

    def __call__(self) -> Mapping[PciAddress, Devices] | None:
        """Raises JournalError."""
        wanted = self.source()
        tripped = self.failures.tripped()
        ledger = self.ledger()
        orphaned = cards_with_orphans(ledger)
        if wanted is None or not (tripped or orphaned):
            return wanted
        in_use = _in_use(ledger, self.failures.waiting())
        return {
            card: [
                _tainted(
                    each,
                    ORPHANED if card in orphaned else "",
                    evicts=self.evicting
                    and each["name"] not in in_use
                    and not _has_foreign_instances(each),
                )
                if each["name"] in tripped or card in orphaned
                else each
                for each in devices
            ]
            for card, devices in wanted.items()
        }


def _in_use(ledger: Ledger, waiting: Collection[str]) -> frozenset[str]:
    return frozenset(
        device.device_name
        for uid, claim in ledger.claims.items()
        if claim.state is ClaimState.PREPARE_COMPLETED and uid not in waiting
        for device in claim.devices
    )


def _has_foreign_instances(device: Object) -> bool:
    mode, _ = parse_device_name(device["name"])
    return mode is Mode.DRS and any(each["key"] == TAINT_FOREIGN for each in device["taints"])


def _tainted(device: Object, value: str, *, evicts: bool) -> Object:
    others = [each for each in device["taints"] if each["key"] != TAINT_FAILING]
    return device | {"taints": [*others, taint(TAINT_FAILING, value, evicts=evicts)]}
