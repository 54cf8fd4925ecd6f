"""A node whose cards are served as a device plugin, on the simulator's cards in memory."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, field

from dra_driver.config.card_rules import Offer
from dra_driver.device_plugin.allocator import Granter, Handover
from dra_driver.device_plugin.garbage_collector import Releaser
from dra_driver.device_plugin.inventory import NodeView, granted_total
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.modes.all_modes import all_modes
from dra_driver.node.modes.driver import ModeSteps
from tests.unit.node.drs_world import DrsWorld
from tests.unit.node.world import CARDS, POOL, Agent


def ids(card: int, mode: Mode, *ordinals: int) -> list[str]:
    """IDs of a card, by its place among `CARDS`."""
    return [f"{CARDS[card]}/{mode.value}/{ordinal}" for ordinal in ordinals]


@dataclass
class PluginWorld(DrsWorld):
    """`offers` are what cards are offered as, `recorded` what the kubelet has on record; None where
    it does not answer."""

    offers: dict[PciAddress, Offer] = field(default_factory=dict)
    offering: bool = True
    handover: Handover = Handover.CDI_NAMES
    recorded: Collection[frozenset[str]] | None = ()
    answers: itertools.count[int] = field(default_factory=itertools.count)

    def modes(self, journal: Journal, effects: Effects | None) -> dict[Mode, ModeSteps]:
        super().modes(journal, effects)
        found = all_modes(
            drs=self.drs,
            tables=self.tables,
            journal=journal,
            slice_count=lambda card: (
                granted_total(journal.snapshot(), card, Mode.SHARED) or self.offer(card).slice_count
            ),
        )
        return dict(found)

    def offer(self, card: PciAddress) -> Offer:
        return self.offers.get(card, Offer())

    def view(self, agent: Agent) -> NodeView:
        return NodeView(
            cards={card.address: card for card in self.cards.all()},
            ledger=agent.journal.snapshot(),
            offer=self.offer,
            table=self.tables.table,
            offering=self.offering,
        )

    def granter(self, agent: Agent) -> Granter:
        return Granter(
            view=lambda: self.view(agent),
            keeper=agent.preparer.keeper,
            hardware=self.cards,
            recorded=self.record,
            pool=POOL,
            handover=lambda: self.handover,
            answers=lambda: str(next(self.answers)),
        )

    def releaser(self, agent: Agent) -> Releaser:
        return Releaser(
            ledger=agent.journal.snapshot,
            keeper=agent.preparer.keeper,
            recorded=lambda _asked: self.record(),
            changed=lambda: None,
        )

    def record(self) -> Collection[frozenset[str]]:
        if self.recorded is None:
            raise GcuError("the kubelet does not answer")
        return self.recorded

    def learn(self, agent: Agent) -> None:
        """Find out the cards' profiles, as the agent does when it looks after the node."""
        assert self.examiner(agent).run(self.cards.all())
        self.tool.calls.clear()
