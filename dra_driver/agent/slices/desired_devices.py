"""The devices to publish: those of the cards, with a taint for each problem of the card."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final

from msgspec import structs

from dra_driver.agent.context import AgentContext
from dra_driver.agent.slices.added_taints import with_added_taints
from dra_driver.agent.slices.device_layout import (
    Devices,
    as_published,
    by_name,
    card_devices,
    with_layouts_in_use,
)
from dra_driver.config.card_rules import CardConfig
from dra_driver.model.card import Card, Problem
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.mode import Mode
from dra_driver.model.names import ALLOCATOR_CONTROLLER, TAINT_CHANGING, TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger

SelectCards = Callable[[Iterable[Card]], Iterable[Card]]
"""The cards to publish, some of them with another problem; raises JournalError."""

_CHANGING: Final = Problem(TAINT_CHANGING, "", "another configuration waits for its last claim")


@dataclass(frozen=True, slots=True)
class DesiredDevices:
    """The devices to publish where the server has those that are `published`; None while they are
    unknown.

    While inventories fail, all devices have the taint ``unhealthy=efsmi``. If the agent has never
    read the cards, the published devices get that taint. `in_use` returns the cards that keep their
    published layout; it raises JournalError. `evict` has the values of the taint
    ``unhealthy`` for which pods must leave a card. `allocator` returns the one for which free cards
    are published, or raises KubeError. `held` returns the cards that deleted claims hold; it raises
    JournalError. If not `evicting`, no pod must leave a device that fails.

    A card in use keeps its published layout (`with_layouts_in_use`). But kubelets delete the slices
    of their node, when they start or while no agent is registered, so the layout of a card that is
    not published is by the configuration by which its claims were counted.
    """

    context: AgentContext
    _: KW_ONLY
    select: SelectCards
    in_use: Callable[[], frozenset[PciAddress]]
    evict: Collection[str]
    allocator: Callable[[], str] = lambda: ALLOCATOR_CONTROLLER
    held: Callable[[], Collection[PciAddress]] = frozenset
    evicting: bool = True

    def __call__(self, published: Devices) -> list[Object] | None:
        """Raises JournalError, and KubeError."""
        wanted = self._of_cards(published)
        if wanted is None:
            return None
        ledger, failures = self.context.journal.snapshot(), self.context.failures
        return with_layouts_in_use(
            with_added_taints(wanted, ledger, failures, self.held(), evicting=self.evicting),
            published,
            self.in_use(),
            evict=self.evict,
            unread=self.context.cards.unread,
        )

    def _of_cards(self, published: Devices) -> Mapping[PciAddress, Devices] | None:
        context = self.context
        cards, failing = context.cards.latest, context.cards.failing
        if cards is None and failing is not None:
            return as_published(published, self._with_effect(failing)) or None
        if cards is None or not context.card_configs.known:
            return None
        allocator, ledger = self.allocator(), context.journal.snapshot()
        shown_cards = {card for card, _, _ in by_name(published)}
        found: dict[PciAddress, Devices] = {}
        for card in self.select(cards.values()):
            address, shown = card.address, self._with_problems(card, failing)
            config = rule = context.card_configs.of(address)
            if address not in shown_cards:
                config = _config_in_use(ledger, address, rule)
            if config != rule:
                shown = shown.with_problem(_CHANGING)
            found[address] = card_devices(shown, config, context.tables.table(card), allocator)
        return found

    def _with_problems(self, card: Card, failing: Problem | None) -> Card:
        problems = card.problems if failing is None else (*card.problems, failing)
        return replace(card, problems=tuple(map(self._with_effect, problems)))

    def _with_effect(self, problem: Problem) -> Problem:
        evicts = problem.taint == TAINT_UNHEALTHY and problem.value in self.evict
        return structs.replace(problem, evicts=evicts)


def _config_in_use(ledger: Ledger, card: PciAddress, rule: CardConfig) -> CardConfig:
    """The configuration by which the claims of the card were counted, as far as the ledger has it;
    the `rule` if no claim uses the card."""
    modes = {
        device.mode
        for held, device in ledger.holders_of(card)
        if not isinstance(held.owner, ContainerAllocation)
    }
    promised = ledger.promised_slices(card) if Mode.SHARED in modes else None
    return CardConfig(promised or rule.slice_count, rule.modes | modes)
