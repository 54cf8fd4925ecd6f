"""All that an allocation is decided on, and what it says of one device for one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from controller.allocator.changes import Changes
from controller.allocator.demand import Demand, Offer
from controller.allocator.device import Device
from controller.allocator.holdings import Holdings, Use
from controller.allocator.inventory import Inventory
from controller.allocator.openings import NodeOpenings, Openings
from controller.allocator.ranking import Rankings
from controller.allocator.selection import Selected, Selection
from controller.allocator.summary import NodeSummary, Summaries
from controller.allocator.tally import Tallies
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors


class Verdict(StrEnum):
    """How a device stands to a demand beside what is held; the first after FREE that applies."""

    FREE = "free"
    TOO_SMALL = "too small"
    FULL = "full"
    HELD = "held"
    EXCLUDED = "excluded"
    TAINTED = "tainted"


@dataclass(frozen=True, slots=True)
class State:
    """The cluster as the allocator sees it. `classes` maps a name to the DeviceClass, `nodes` a
    name to the Node, of which only labels are read, for devices that a selector offers.

    All of it may change between two decisions; one State serves them all, and what it found out
    is kept as long as it is true.
    """

    inventory: Inventory
    holdings: Holdings
    classes: Mapping[str, Object]
    selectors: Selectors
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    selection: Selection = field(init=False)
    openings: Openings = field(init=False)
    summaries: Summaries = field(init=False)
    rankings: Rankings = field(init=False)
    tallies: Tallies = field(init=False)
    _changes: Changes = field(init=False)

    def __post_init__(self) -> None:
        # What is derived stands in fields of its own, which a frozen class sets only like this.
        for name, derived in (
            ("selection", Selection(self.inventory, self.selectors)),
            ("openings", Openings(self.inventory, self.holdings)),
            ("summaries", Summaries(self.holdings)),
            ("rankings", Rankings(self.inventory)),
            ("tallies", Tallies(self.inventory)),
            ("_changes", Changes(self.inventory, self.holdings)),
        ):
            object.__setattr__(self, name, derived)

    def settle(self) -> None:
        """Forget what is no longer true; to be called before each decision."""
        changed = self._changes.take()
        if changed is not None:
            self.selection.forget(changed)
            self.openings.forget(changed)
            self.summaries.forget(changed)
            self.rankings.forget(changed)
            self.tallies.forget(changed)

    def selected(self, demand: Demand, node: str) -> Selected:
        """The devices of `node` that the demand's selectors allow."""
        return self.selection.selected(demand.selectors, node, self.nodes.get(node))

    def summary(self, node: str) -> NodeSummary:
        """How full the node is."""
        devices = self.inventory.devices_of(node, self.nodes.get(node))
        if self.inventory.roams:
            return self.summaries.fresh(devices)
        return self.summaries.of(node, devices)

    def opened(self, demand: Demand, node: str) -> NodeOpenings:
        """The devices that `selected` gives and that nothing held excludes."""
        if self.inventory.roams:
            return self.openings.find(self.selected(demand, node).devices, self.summary(node))
        known = self.openings.known(demand.selectors)
        found = known.get(node)
        if found is None:
            devices = self.selected(demand, node).devices
            found = known[node] = self.openings.find(devices, self.summary(node))
        return found

    def verdict(self, demand: Demand, device: Device) -> Verdict:
        """Of a device that is selected. Counters are left to the search."""
        offer = demand.offer(device.kind)
        if offer is None:
            return Verdict.TOO_SMALL
        use = self.holdings.use(device.id)
        if use is not None and device.multiple and not has_room(offer, use):
            return Verdict.FULL
        if not demand.admin_access:
            if use is not None and (use.whole or not device.multiple):
                return Verdict.HELD
            if self.openings.holder_of_card(device) is not None:
                return Verdict.EXCLUDED
        return Verdict.TAINTED if offer.taints else Verdict.FREE


def has_room(offer: Offer, use: Use) -> bool:
    """Whether the offer fits beside what is consumed of the device."""
    consumed = use.consumed
    return all(consumed.get(name, 0) + amount <= total for name, amount, total in offer.amounts)
