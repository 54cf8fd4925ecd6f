"""Who has GCUs: claims, and pods by their limits, as the Nodes' annotations say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dra_driver.model.claims.claim import ClaimRef, reserved_for, results
from dra_driver.model.devices.node_cards import parse_cards
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS, DRIVER
from dra_driver.model.pci import PciAddress


class AllocatedClaim(msgspec.Struct, frozen=True, order=True):
    """A claim with `devices` devices of this driver, from `pools`.

    `consumers` are texts such as ``pod default/train-0``; empty if the claim is not reserved.
    """

    claim: ClaimRef
    devices: int
    pools: tuple[str, ...]
    consumers: tuple[str, ...]

    def __str__(self) -> str:
        devices = f"{self.devices} device{'s' if self.devices > 1 else ''}"
        nodes = ", ".join(pool.removeprefix(f"{DRIVER}/") for pool in self.pools)
        return f"claim {self.claim}: {devices} of {nodes}, {_used(self.consumers)}"


def holders(claims: Iterable[Mapping[str, Any]]) -> list[AllocatedClaim]:
    """The holders among ResourceClaims (resource.k8s.io/v1), by namespace and name.

    A prepared claim is an allocated one, except for a moment after its pod was deleted by force.
    """
    found = []
    for claim in claims:
        given = results(claim)
        if given:
            ref = ClaimRef.of(claim)
            pools = tuple(sorted({result.pool for result in given}))
            consumers = tuple(
                f"{entry['resource'].removesuffix('s')} {ref.namespace}/{entry['name']}"
                for entry in reserved_for(claim)
            )
            found.append(AllocatedClaim(ref, len(given), pools, consumers))
    return sorted(found)


def _used(consumers: Sequence[str]) -> str:
    return f"used by {', '.join(consumers)}" if consumers else "used by no pod yet"


class CardInUse(msgspec.Struct, frozen=True, order=True):
    """`pods` are the UIDs of the containers' pods, each once. A UID is empty until the kubelet has
    recorded the container. There are none if the agent has not released the card yet."""

    node: str
    card: PciAddress
    mode: Mode
    pods: tuple[str, ...]

    def line(self, names: Mapping[str, str]) -> str:
        """For people; `names` has ``namespace/name`` of pods by UID."""
        users = sorted(
            {names.get(uid, "a pod that has just started or ended") for uid in self.pods}
        )
        used = f"used by {', '.join(users)}" if users else "used by no pod any more"
        return f"node {self.node}: card {self.card}, {self.mode}, {used}"


def cards_in_use(nodes: Iterable[Mapping[str, Any]]) -> list[CardInUse]:
    """By node and card, from Nodes (core/v1). Raises InvalidValue where an agent's annotation
    cannot be read."""
    found = []
    for node in nodes:
        text = (node["metadata"].get("annotations") or {}).get(ANNOTATION_CARDS)
        for card in parse_cards(text) if text else ():
            if card.mode is not None:
                name = str(node["metadata"]["name"])
                pods = tuple(sorted({hold.pod for hold in card.held}))
                found.append(CardInUse(name, card.address, card.mode, pods))
    return sorted(found)
