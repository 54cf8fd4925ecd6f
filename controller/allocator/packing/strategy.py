"""What one way to pack decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from controller.allocator.nodes.node_set import Level
from controller.allocator.nodes.signature import Fill

SortKey = tuple[int, ...]
"""Sorts what can be chosen; the smallest is the best."""


class Strategy(ABC):
    """The order of nodes, the order of a node's cards, and whether replicas are kept apart. Nodes
    and cards may have different strategies.

    A strategy has no state, and reads neither names nor attributes: nodes and cards that are
    equally full are in one set (ADR 23). Of nodes that are equally good, the one with the lowest
    number (`NodeNumbers`) comes first.

    `keeps_apart`: nodes and cards that replicas of the same workload use come last.
    `card_first`: how well a card fits decides before the levels of nodes do, if nodes and cards
    both have such a strategy.
    `level_width`: changes the time only. `Levels` skips that many values of a level's first number
    at once: 1 if it counts cards, `WHOLE` if it is in thousandths.
    """

    keeps_apart: ClassVar[bool]
    card_first: ClassVar[bool]
    level_width: ClassVar[int]

    @abstractmethod
    def level(self, free: int, load: int) -> Level:
        """Sorts a node by its number of free cards, and by what is allocated of it, in thousandths
        of a card."""

    @abstractmethod
    def card_key(self, fill: Fill) -> SortKey:
        """Sorts a card by what would be left of it."""
