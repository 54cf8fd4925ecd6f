"""Uses first what is emptiest."""

from __future__ import annotations

from controller.allocator.device_request import WHOLE
from controller.allocator.nodes.node_set import Level
from controller.allocator.nodes.signature import Fill
from controller.allocator.packing.strategy import SortKey, Strategy


class Spread(Strategy):
    """The node with the least allocated; the card with the most left."""

    keeps_apart = True
    card_first = False
    level_width = WHOLE

    def level(self, free: int, load: int) -> Level:
        return load, -free

    def card_key(self, fill: Fill) -> SortKey:
        is_free, left, _ = fill
        return -is_free, -left
