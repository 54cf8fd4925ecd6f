"""Takes devices as kube-scheduler does."""

from __future__ import annotations

from controller.allocator.nodes.node_set import Level
from controller.allocator.nodes.signature import Fill
from controller.allocator.packing.strategy import Key, Strategy


class AsPublished(Strategy):
    """The first device of the node's slices that fits, whatever is allocated of its card. Nodes
    have no such order."""

    keeps_apart = False
    card_first = False
    as_published = True
    level_width = 1

    def level(self, free: int, load: int) -> Level:
        raise NotImplementedError("nodes have no order of devices")

    def card_key(self, fill: Fill) -> Key:
        del fill
        return ()
