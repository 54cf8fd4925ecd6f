"""What both fronts of the agent stand on: the node's cards, and who holds what of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.kube.api import Api
from dra_driver.model.card import Card
from dra_driver.model.effects import Effects
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.preparer import Preparer


@dataclass(frozen=True, slots=True)
class AgentContext:
    """One of each for the whole agent."""

    api: Api
    cards: CardCache
    card_configs: CardConfigSource
    tables: ProfileTables
    journal: Journal
    preparer: Preparer
    failures: DeviceCircuitBreaker
    effects: Effects

    def by_address(self) -> Mapping[PciAddress, Card] | None:
        """The cards; None until they were read."""
        cards = self.cards.latest
        return None if cards is None else {card.address: card for card in cards}
