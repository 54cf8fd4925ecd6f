"""Taints the devices on which nothing can be made, and the cards on which ended claims left what
cannot be taken away, so that pods leave them and none comes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.model.claim import Object
from dra_driver.model.device import parse_device_name, taint
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FAILING, TAINT_FOREIGN
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger, State
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.orphans import cards_with_orphans

LEFT: Final = "left"
"""The taint's value where it is not for a while, but until the agent has cleared up."""

Source = Callable[[], Mapping[PciAddress, Devices] | None]


class FailingTaints:
    """The devices of `source`; those that `failures` have closed with the taint `failing`.

    The taint's effect is NoExecute, with which Kubernetes deletes the pods whose claims have the
    device, and NoSchedule while others than those that wait have something of it: their pods run
    well and would be deleted too, since a device that many claims share has its taints for all.
    Instances that count as somebody else's may be of such pods, too, whose records were lost.

    Where an ended claim left something (`node.remnants`), all devices of the card have the taint,
    with the value `LEFT`, for as long as the journal says so: the ledger would refuse what is
    allocated of it.

    Where it is not `evicting`, the effect is always NoSchedule.
    """

    def __init__(
        self,
        source: Source,
        failures: DeviceCircuitBreaker,
        *,
        ledger: Callable[[], Ledger],
        evicting: bool = True,
    ) -> None:
        self._source = source
        self._failures = failures
        self._ledger = ledger
        self._evicting = evicting

    def __call__(self) -> Mapping[PciAddress, Devices] | None:
        """Raises JournalError."""
        wanted = self._source()
        closed = self._failures.tripped()
        ledger = self._ledger()
        left = cards_with_orphans(ledger)
        if wanted is None or not (closed or left):
            return wanted
        in_use = _in_use(ledger, self._failures.waiting())
        return {
            card: [
                _tainted(
                    each,
                    LEFT if card in left else "",
                    evicts=self._evicting
                    and each["name"] not in in_use
                    and not _has_strangers(each),
                )
                if each["name"] in closed or card in left
                else each
                for each in devices
            ]
            for card, devices in wanted.items()
        }


def _in_use(ledger: Ledger, waiting: Collection[str]) -> frozenset[str]:
    return frozenset(
        hold.device
        for uid, holding in ledger.claims.items()
        if holding.state is State.PREPARE_COMPLETED and uid not in waiting
        for hold in holding.devices
    )


def _has_strangers(device: Object) -> bool:
    mode, _ = parse_device_name(device["name"])
    return mode is Mode.DRS and any(each["key"] == TAINT_FOREIGN for each in device["taints"])


def _tainted(device: Object, value: str, *, evicts: bool) -> Object:
    others = [each for each in device["taints"] if each["key"] != TAINT_FAILING]
    return device | {"taints": [*others, taint(TAINT_FAILING, value, evicts=evicts)]}
