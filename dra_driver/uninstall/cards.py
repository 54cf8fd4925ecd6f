"""Which cards pods have that asked for them by limits, as the Nodes tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.node_cards import parse_cards
from dra_driver.model.pci import PciAddress


@dataclass(frozen=True, slots=True, order=True)
class CardInUse:
    """`containers` is 0 where the agent has still to clear up after the last one."""

    node: str
    card: PciAddress
    mode: Mode
    containers: int

    def __str__(self) -> str:
        plural = "" if self.containers == 1 else "s"
        return (
            f"node {self.node}: card {self.card}, {self.mode}, {self.containers} container{plural}"
        )


def cards_in_use(nodes: Iterable[Mapping[str, Any]]) -> list[CardInUse]:
    """By node and card, of Nodes (core/v1) that agents tell of. Raises InvalidValue where what an
    agent wrote cannot be read."""
    found = []
    for node in nodes:
        text = (node["metadata"].get("annotations") or {}).get(ANNOTATION_CARDS)
        for card in parse_cards(text) if text else ():
            if card.mode is not None:
                name = str(node["metadata"]["name"])
                found.append(CardInUse(name, card.address, card.mode, len(card.held)))
    return sorted(found)
