"""Fills what is in use first."""

from __future__ import annotations

from controller.allocator.nodes.node_set import Level
from controller.allocator.nodes.signature import Fill
from controller.allocator.packing.strategy import SortKey, Strategy


class Binpack(Strategy):
    """The node with the fewest free cards; the card with the least left, then the one with most
    shares of the same size."""

    keeps_apart = False
    card_first = True
    level_width = 1

    def level(self, free: int, load: int) -> Level:
        return free, -load

    def card_key(self, fill: Fill) -> SortKey:
        return fill
