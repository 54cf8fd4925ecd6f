"""The cards that pods have by their limits, from the Nodes' annotations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dra_driver.model.devices.node_cards import parse_cards
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.pci import PciAddress


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
