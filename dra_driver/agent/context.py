"""What both front ends of the agent share: the node's cards, and the journal of prepared claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.lifecycle.serving_mode import ServingState
from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.kube.api import Api
from dra_driver.model.card import Card
from dra_driver.model.effects import Effects
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.preparer import Preparer
from dra_driver.util.hooks import OnChange


@dataclass(frozen=True, slots=True)
class AgentContext:
    """One of each for the whole agent. `on_change` is called when claims or containers were given
    devices, or gave them back."""

    api: Api
    cards: CardCache
    card_configs: CardConfigSource
    tables: ProfileTables
    journal: Journal
    preparer: Preparer
    failures: DeviceCircuitBreaker
    published: SliceCache
    serving: ServingState
    effects: Effects
    on_change: OnChange

    def by_address(self) -> Mapping[PciAddress, Card] | None:
        """The cards; None until they were read."""
        cards = self.cards.latest
        return None if cards is None else {card.address: card for card in cards}
