"""Who has GCUs: claims, and pods by their limits, as the Nodes' annotations say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dra_driver.model.claims.claim import ClaimRef, reserved_for, results
from dra_driver.model.devices.node_cards import NodeCard, parse_cards
from dra_driver.model.names import ANNOTATION_CARDS, DRIVER


def claims_with_gcus(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each ResourceClaim (resource.k8s.io/v1) with devices of this driver, by namespace
    and name.

    A prepared claim is an allocated one, except for a moment after its pod was deleted by force.
    """
    return [_claim_line(claim) for claim in sorted(filter(results, claims), key=ClaimRef.of)]


def _claim_line(claim: Mapping[str, Any]) -> str:
    ref, given = ClaimRef.of(claim), results(claim)
    devices = f"{len(given)} device{'s' if len(given) > 1 else ''}"
    nodes = ", ".join(sorted({result.pool.removeprefix(f"{DRIVER}/") for result in given}))
    consumers = ", ".join(
        f"{entry['resource'].removesuffix('s')} {ref.namespace}/{entry['name']}"
        for entry in reserved_for(claim)
    )
    return f"claim {ref}: {devices} of {nodes}, used by {consumers or 'no pod yet'}"


def cards_in_use(nodes: Iterable[Mapping[str, Any]]) -> list[tuple[str, NodeCard]]:
    """By the node's name and the card, from Nodes (core/v1). Raises InvalidValue where an agent's
    annotation cannot be read."""
    texts = {
        node["metadata"]["name"]: (node["metadata"].get("annotations") or {}).get(ANNOTATION_CARDS)
        for node in nodes
    }
    return [
        (name, card)
        for name, text in sorted(texts.items())
        for card in (parse_cards(text) if text else ())
        if card.mode is not None
    ]


def card_line(node: str, card: NodeCard, names: Mapping[str, str]) -> str:
    """`names` are those of pods by UID. A hold has no UID until the kubelet has recorded the
    container; the card has no hold if the agent has not released it yet."""
    users = {names.get(hold.pod, "a pod that has just started or ended") for hold in card.held}
    used = ", ".join(sorted(users)) or "no pod any more"
    return f"node {node}: card {card.address}, {card.mode}, used by {used}"
