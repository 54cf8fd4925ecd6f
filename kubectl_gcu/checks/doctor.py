"""``kubectl gcu doctor``: what is wrong with the driver and its cards, as the API server knows it.

Each check gives lines of one form: where, what, and the remedy. What only a node knows (its
journal, its CDI files, its instances) its agent compares by itself, and reports as events and
taints.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kubectl_gcu.checks import (
    cards,
    claims,
    gates,
    holders,
    nodes,
    other_allocator,
    policies,
    programs,
    rights,
    shares,
    unbound,
    versions,
)
from kubectl_gcu.checks.finding import Finding
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.inventory.views import NodeView


def findings(
    found: Installation, inventory: list[NodeView], now: datetime, *, allocator: str = ""
) -> Iterator[Finding]:
    """What is wrong, in the order of the docs page; with an `allocator` also what that one would
    refuse."""
    yield from programs.controllers(found, now)
    yield from gates.undecided(found, now)
    yield from programs.agents(found, inventory)
    yield from versions.versions(found, inventory)
    yield from shares.shares(found)
    yield from rights.rights(found, inventory)
    yield from policies.policies(found, inventory)
    yield from policies.webhook(found, inventory)
    yield from policies.altered(found)
    yield from nodes.reports(found)
    yield from nodes.starting_pods(found)
    yield from nodes.not_prepared(found, now)
    yield from cards.classes(found, inventory)
    yield from cards.cards(found, inventory)
    yield from cards.pools(found)
    yield from cards.other_plugins(found, inventory)
    yield from claims.claims(found)
    yield from claims.ended_users(found)
    yield from claims.unknown(found)
    yield from unbound.unbound(found, now)
    yield from holders.cards_without_claim(found, inventory)
    yield from holders.container_ended(inventory)
    yield from holders.extender_bypassed(found, inventory)
    if allocator:
        yield from other_allocator.refused(found, allocator)
