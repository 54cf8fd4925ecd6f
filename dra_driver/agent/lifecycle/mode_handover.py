"""Which cards DRA and the device plugin each offer while the other one's are in use. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dra_driver.model.card import Card, Problem
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.names import TAINT_CHANGING
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger


def dra_cards(
    cards: Iterable[Card],
    ledger: Ledger,
    *,
    active: bool,
    retained: Collection[PciAddress] = (),
) -> list[Card]:
    """The cards to publish in slices.

    If DRA is `active`, all cards; a card that a container of the device plugin uses has a problem
    that keeps new claims away. Otherwise only the cards that claims use, and those that are
    `retained` as kube-scheduler may not have seen yet that they are gone; each with such a problem.
    """
    published = []
    for card in cards:
        owners = [claim.owner for claim, _ in ledger.holders_of(card.address)]
        containers = [owner for owner in owners if isinstance(owner, ContainerAllocation)]
        if active and containers:
            text = f"{containers[0].title} uses it, through the device plugin"
            published.append(_changing(card, text))
        elif active:
            published.append(card)
        elif len(owners) > len(containers) or card.address in retained:
            published.append(_changing(card, "new pods are served by the device plugin"))
    return published


def plugin_cards(cards: Iterable[Card], ledger: Ledger) -> list[Card]:
    """All cards, for the device plugin. A card that a claim uses, or that has an orphan, has a
    problem that keeps containers away."""
    claimed = claimed_cards(ledger)
    return [
        _changing(card, "it is served by DRA until its claims end")
        if card.address in claimed
        else card
        for card in cards
    ]


def claimed_cards(ledger: Ledger) -> frozenset[PciAddress]:
    """The cards that claims use, or that have orphans of claims."""
    return frozenset(
        card
        for claim in ledger.claims.values()
        if not isinstance(claim.owner, ContainerAllocation)
        for card in claim.cards
    )


def _changing(card: Card, text: str) -> Card:
    return card.with_problem(Problem(TAINT_CHANGING, "", text))
