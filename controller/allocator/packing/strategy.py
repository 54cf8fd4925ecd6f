"""The ways to pack: which nodes and which cards are preferred. Nothing else chooses one by its
name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from controller.allocator.device_request import WHOLE
from controller.allocator.nodes.node_set import Level
from controller.allocator.nodes.signature import Fill
from dra_driver.model.claims.packing import Packing

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


class AsPublished(Binpack):
    """The first device of the node's slices that fits, whatever is allocated of its card. Nodes
    come as with binpack."""

    card_first = False

    def card_key(self, fill: Fill) -> SortKey:
        del fill
        return ()


STRATEGIES: Final[Mapping[Packing, Strategy]] = MappingProxyType(
    {Packing.BINPACK: Binpack(), Packing.SPREAD: Spread()}
)
AS_PUBLISHED: Final[Strategy] = AsPublished()
"""Nobody chooses it: it is how kube-scheduler chooses devices."""
