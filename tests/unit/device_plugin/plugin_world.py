"""A node whose cards are served as a device plugin, on the simulator's cards in memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.allocator import Allocator
from dra_driver.device_plugin.garbage_collector import GarbageCollector
from dra_driver.device_plugin.inventory import NodeDevices, granted_total
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.device_ops import SliceCount
from tests.unit.node.drs_world import DrsWorld
from tests.unit.node.world import CARDS, POOL, Agent


def ids(card: int, mode: Mode, *ordinals: int) -> list[str]:
    """IDs of a card, by its place among `CARDS`."""
    return [f"{CARDS[card]}/{mode.value}/{ordinal}" for ordinal in ordinals]


def waiting_pod(
    name: str, cards: str, *limits: int | str, resource: str, **more: Any
) -> dict[str, Any]:
    """A pod that was placed on the cards; its containers c0, c1, … have that limit each."""
    annotations = {ANNOTATION_ASSIGNED: cards}
    metadata = {"namespace": "team", "name": name, "uid": f"uid-{name}", "annotations": annotations}
    containers = [
        {"name": f"c{at}", "resources": {"limits": {resource: limit}}}
        for at, limit in enumerate(limits)
    ]
    return {"metadata": metadata, "spec": {"containers": containers, **more}}


@dataclass
class PluginWorld(DrsWorld):
    """`offers` are what cards are offered as, `recorded` what the kubelet has on record; None where
    it does not answer."""

    offers: dict[PciAddress, CardConfig] = field(default_factory=dict)
    active: bool = True
    are_cards_known: bool = True
    takes_cdi_names: bool = True
    recorded: Collection[frozenset[str]] | None = ()

    def slice_count(self, journal: Journal) -> SliceCount:
        return lambda card: (
            granted_total(journal.snapshot(), card, Mode.SHARED) or self.offer(card).slice_count
        )

    def offer(self, card: PciAddress) -> CardConfig:
        return self.offers.get(card, CardConfig())

    def view(self, agent: Agent) -> NodeDevices:
        return NodeDevices(
            cards={card.address: card for card in self.cards.all()}
            if self.are_cards_known
            else None,
            ledger=agent.journal.snapshot(),
            offer=self.offer,
            table=self.tables.table,
            active=self.active,
        )

    def allocator(self, agent: Agent) -> Allocator:
        return Allocator(
            view=lambda: self.view(agent),
            claim_manager=agent.preparer.claim_manager,
            hardware=self.cards,
            recorded=self.record,
            pool=POOL,
            takes_cdi_names=lambda: self.takes_cdi_names,
        )

    def garbage_collector(self, agent: Agent) -> GarbageCollector:
        return GarbageCollector(
            view=lambda: self.view(agent),
            claim_manager=agent.preparer.claim_manager,
            still_in_use=lambda _asked: self.record(),
            on_change=lambda: None,
        )

    def record(self) -> Collection[frozenset[str]]:
        if self.recorded is None:
            raise GcuError("the kubelet does not answer")
        return self.recorded

    def learn(self, agent: Agent) -> None:
        """Find out the cards' profiles, as the agent does when it looks after the node."""
        assert self.profile_prober(agent).run(self.cards.all())
        self.tool.calls.clear()
