"""Nodes on which something changed, published or held, since one last looked."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from controller.allocator.holdings import Holdings
from controller.allocator.inventory import Inventory

ALL_NODES = ""  # stands for all nodes where a device belongs to several


@dataclass(frozen=True, slots=True)
class Changed:
    """Names of nodes. `published`: their devices are others; `nodes`: that, or what is held."""

    published: AbstractSet[str]
    nodes: AbstractSet[str]


class Changes:
    def __init__(self, inventory: Inventory, holdings: Holdings) -> None:
        self._inventory = inventory
        self._published: set[str] = set()
        self._pools: set[str] = set()
        inventory.watch(self._published)
        holdings.watch(self._pools)

    def take(self) -> Changed | None:
        """What changed; None if nothing did."""
        self._inventory.settle()
        if not self._published and not self._pools:
            return None
        published = frozenset(self._published)
        nodes = set(published)
        for pool in self._pools:
            nodes.update(self._inventory.nodes_of(pool))
        self._published.clear()
        self._pools.clear()
        return Changed(published, nodes)
