"""Which cards each way offers, where some are held in the other one. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dra_driver.model.card import Card, Problem
from dra_driver.model.names import TAINT_CHANGING
from dra_driver.model.owner import ContainerAllocation
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger


def dra_cards(cards: Iterable[Card], ledger: Ledger, *, offering: bool) -> list[Card]:
    """The cards to publish: where DRA is `offering`, all, those that containers of the device
    plugin hold with a problem that keeps claims away; else those that claims hold, with one."""
    published = []
    for card in cards:
        owners = [holding.owner for holding, _ in ledger.holders_of(card.address)]
        granted = [owner for owner in owners if isinstance(owner, ContainerAllocation)]
        if offering and granted:
            text = f"{granted[0].title} has something of it"
            published.append(_changing(card, f"{text}, which the device plugin gave out"))
        elif offering:
            published.append(card)
        elif len(owners) > len(granted):
            published.append(_changing(card, "new pods are served by the device plugin"))
    return published


def plugin_cards(cards: Iterable[Card], ledger: Ledger) -> list[Card]:
    """The cards as the device plugin has them: all, those that claims hold something of, or left
    something on, with a problem that keeps containers away."""
    claimed = claimed_cards(ledger)
    return [
        _changing(card, "it is served by DRA until its claims end")
        if card.address in claimed
        else card
        for card in cards
    ]


def claimed_cards(ledger: Ledger) -> frozenset[PciAddress]:
    """The cards that claims hold something of, or left something on."""
    return frozenset(
        card
        for holding in ledger.claims.values()
        if not isinstance(holding.owner, ContainerAllocation)
        for card in holding.cards
    )


def has_claims(ledger: Ledger) -> bool:
    """Whether claims are prepared, or left something; one with administrative access, too."""
    return any(
        not isinstance(holding.owner, ContainerAllocation) for holding in ledger.claims.values()
    )


def has_grants(ledger: Ledger) -> bool:
    """Whether containers of the device plugin hold anything."""
    return any(isinstance(holding.owner, ContainerAllocation) for holding in ledger.claims.values())


def _changing(card: Card, text: str) -> Card:
    return replace(card, problems=(*card.problems, Problem(TAINT_CHANGING, "", text)))
