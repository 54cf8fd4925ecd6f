"""All that a decision reads, what earlier decisions found out, and what one may cost."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.card_words import CardsByWords
from controller.allocator.device_request import DeviceRequest
from controller.allocator.fleet import Fleet
from controller.allocator.inventory import Inventory
from controller.allocator.matching import CardQuery, MatchingCards
from controller.allocator.node_set import NodeNumbers, NodeSet, set_of_numbers
from controller.allocator.order import Score
from dra_driver.model.claim import Object
from dra_driver.selector.allowance import Allowance
from dra_driver.selector.selector import Selectors

_MOST_REQUESTS: Final = 4096
_MOST_SHAPES: Final = 1024  # of claims that need a search; each has an entry for a node searched
_SHARE: Final = 10  # one node gets a tenth, so that a hard node does not keep others from a try
_STRIDE: Final = 32  # choices between two checks of the allowance; less than a millisecond


class SearchLimitReached(Exception):
    """The search was stopped before it had tried everything."""


class Budget:
    """How many choices may fail on all nodes of one decision; `allowance` bounds its time."""

    def __init__(self, steps: int, allowance: Allowance) -> None:
        self.per_node = max(1, steps // _SHARE)
        self.allowance = allowance
        self._left = steps
        self._left_for_node = 0

    def begin_node(self) -> None:
        """The following steps are spent on another node. Raises AllowanceSpent."""
        self.allowance.check()
        self._left_for_node = min(self._left, self.per_node)

    def spend(self) -> None:
        """Raises SearchLimitReached if nothing is left for the node, AllowanceSpent if the
        decision has taken too long."""
        if not self._left_for_node:
            raise SearchLimitReached
        self._left -= 1
        self._left_for_node -= 1
        if not self._left % _STRIDE:
            self.allowance.check()

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left for other nodes either."""
        return not self._left


@dataclass(slots=True)
class SearchedNodes:
    """The results of searches for claims of one shape, as of a generation of the fleet: nodes that
    serve them with their score, nodes that do not, and nodes on which the search was stopped."""

    generation: int
    scores: dict[int, Score] = field(default_factory=dict)
    failed: NodeSet = 0
    stopped: NodeSet = 0

    def refresh(self, fleet: Fleet) -> None:
        """Forget the nodes that have changed since."""
        if self.generation == fleet.generation:
            return
        changed = [node.number for node in fleet.changed_since(self.generation)]
        for number in changed:
            self.scores.pop(number, None)
        kept = ~set_of_numbers(changed)
        self.failed &= kept
        self.stopped &= kept
        self.generation = fleet.generation


class State:
    """`classes` maps a name to the DeviceClass. `numbers` may be shared with others that make sets
    of nodes. All of it may change between two decisions; `refresh` takes in the changes."""

    def __init__(
        self,
        inventory: Inventory,
        holdings: AllocatedDevices,
        classes: Mapping[str, Object],
        selectors: Selectors,
        numbers: NodeNumbers | None = None,
    ) -> None:
        self.inventory = inventory
        self.holdings = holdings
        self.classes = classes
        self.selectors = selectors
        self.numbers = numbers or NodeNumbers()
        self.fleet = Fleet(inventory, holdings, self.numbers)
        self._rebuilds = 0
        self._matching: dict[CardQuery, MatchingCards] = {}
        self._words: dict[DeviceRequest, CardsByWords] = {}
        self._searched: dict[Hashable, SearchedNodes] = {}

    def emptied(self) -> State:
        """The same cluster with nothing allocated; it follows what is published."""
        return State(self.inventory, AllocatedDevices(), self.classes, self.selectors, self.numbers)

    def refresh(self) -> None:
        """Take in what has changed."""
        self.fleet.refresh()
        if self._rebuilds != self.fleet.rebuilds:
            self._rebuilds = self.fleet.rebuilds
            self._matching.clear()
            self._words.clear()
            self._searched.clear()

    def matching(self, query: CardQuery) -> MatchingCards:
        """Raises AllowanceSpent; the next call goes on from there."""
        found = self._matching.get(query)
        if found is None:
            _make_room(self._matching, _MOST_REQUESTS)
            found = self._matching[query] = MatchingCards(query)
        found.update(self.fleet, self.selectors)
        return found

    def words(self, demand: DeviceRequest) -> CardsByWords:
        """Raises AllowanceSpent; the next call goes on from there."""
        found = self._words.get(demand)
        if found is None:
            _make_room(self._words, _MOST_REQUESTS)
            found = self._words[demand] = CardsByWords(demand)
        found.update(self.fleet, self.selectors)
        return found

    def searched(self, shape: Hashable) -> SearchedNodes:
        """What is known of claims of the shape."""
        found = self._searched.get(shape)
        if found is None:
            _make_room(self._searched, _MOST_SHAPES)
            found = self._searched[shape] = SearchedNodes(self.fleet.generation)
        found.refresh(self.fleet)
        return found


def _make_room(known: dict[Any, Any], most: int) -> None:
    """Drop what was added first if there is too much."""
    if len(known) >= most:
        del known[next(iter(known))]
