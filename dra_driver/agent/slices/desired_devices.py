"""The devices that are to be published: those of the cards, tainted with what ails them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.slices.device_layout import Devices, as_published, card_devices
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.card import Card, Problem
from dra_driver.model.names import ALLOCATOR_CONTROLLER, TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress


class DesiredDevices:
    """By card; None while nothing is known that could be published.

    While the cards cannot be looked at, all of them carry the taint ``efsmi``; those of an agent
    that has not seen them at all stay as they were published (`published`), but for that taint.
    `served` picks the cards that are published at all, and may give some of them more problems.
    `evict` are the values of the taint ``unhealthy`` with which pods are to leave a card.
    """

    def __init__(
        self,
        cards: CardCache,
        card_configs: CardConfigSource,
        tables: ProfileTables,
        *,
        published: Callable[[], Devices],
        served: Callable[[Iterable[Card]], Iterable[Card]],
        evict: Collection[str],
    ) -> None:
        self._cards = cards
        self._card_configs = card_configs
        self._tables = tables
        self._published = published
        self._served = served
        self._evict = evict

    def __call__(self) -> Mapping[PciAddress, Devices] | None:
        cards, failing = self._cards.latest, self._cards.failing
        if cards is None and failing is not None:
            return as_published(self._published(), self._judged(failing)) or None
        if cards is None or not self._card_configs.known:
            return None
        return {
            card.address: card_devices(
                self._with_problems(card, failing),
                self._card_configs.of(card.address),
                self._tables.table(card),
                ALLOCATOR_CONTROLLER,
            )
            for card in self._served(cards)
        }

    def _with_problems(self, card: Card, failing: Problem | None) -> Card:
        problems = card.problems if failing is None else (*card.problems, failing)
        return replace(card, problems=tuple(map(self._judged, problems)))

    def _judged(self, problem: Problem) -> Problem:
        evicts = problem.taint == TAINT_UNHEALTHY and problem.value in self._evict
        return replace(problem, evicts=evicts)
