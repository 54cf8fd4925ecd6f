"""The devices to publish: those of the cards, with a taint for each problem of the card."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.slices.device_layout import Devices, as_published, card_devices
from dra_driver.agent.sources import DevicesSource
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.card import Card, Problem
from dra_driver.model.names import ALLOCATOR_CONTROLLER, TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress

SelectCards = Callable[[Iterable[Card]], Iterable[Card]]
"""The cards to publish, some of them with another problem; raises JournalError."""


@dataclass(frozen=True, slots=True)
class DesiredDevices:
    """The devices to publish, by card; None while they are unknown.

    While inventories fail, all devices have the taint ``unhealthy=efsmi``. If the agent has never
    read the cards, the devices of `published` get that taint. `evict` has the values of the taint
    ``unhealthy`` for which pods must leave a card. `allocator` returns the one for which free cards
    are published.
    """

    cards: CardCache
    card_configs: CardConfigSource
    tables: ProfileTables
    _: KW_ONLY
    published: DevicesSource
    select: SelectCards
    evict: Collection[str]
    allocator: Callable[[], str] = lambda: ALLOCATOR_CONTROLLER

    def __call__(self) -> Mapping[PciAddress, Devices] | None:
        cards, failing = self.cards.latest, self.cards.failing
        if cards is None and failing is not None:
            return as_published(self.published(), self._with_effect(failing)) or None
        if cards is None or not self.card_configs.known:
            return None
        allocator = self.allocator()
        return {
            card.address: card_devices(
                self._with_problems(card, failing),
                self.card_configs.of(card.address),
                self.tables.table(card),
                allocator,
            )
            for card in self.select(cards)
        }

    def _with_problems(self, card: Card, failing: Problem | None) -> Card:
        problems = card.problems if failing is None else (*card.problems, failing)
        return replace(card, problems=tuple(map(self._with_effect, problems)))

    def _with_effect(self, problem: Problem) -> Problem:
        evicts = problem.taint == TAINT_UNHEALTHY and problem.value in self.evict
        return replace(problem, evicts=evicts)
