"""Nodes on which something changed, published or held, since one last looked."""

from __future__ import annotations

from controller.allocator.holdings import Holdings
from controller.allocator.inventory import Inventory


class Changes:
    def __init__(self, inventory: Inventory, holdings: Holdings) -> None:
        self._inventory = inventory
        self._nodes: set[str] = set()
        self._pools: set[str] = set()
        inventory.watch(self._nodes)
        holdings.watch(self._pools)

    def take(self) -> set[str]:
        """Names of nodes; the empty name stands for all."""
        self._inventory.settle()
        nodes = set(self._nodes)
        self._nodes.clear()
        for pool in self._pools:
            nodes.update(self._inventory.nodes_of(pool))
        self._pools.clear()
        return nodes
