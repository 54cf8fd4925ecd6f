"""All that a decision reads, what earlier decisions found out, and what one may cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeVar, cast

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.inventory import Inventory
from controller.allocator.nodes.fleet import Fleet
from controller.allocator.nodes.node_set import NodeNumbers, NodeSet, set_of_numbers
from controller.allocator.nodes.signature import CardSignature
from controller.allocator.order import Score
from controller.allocator.others.drivers import OtherDrivers
from dra_driver.model.claims.claim import ReadOnlyObject
from dra_driver.selector.allowance import Allowance
from dra_driver.selector.selector import Selectors

_MOST_INDEXES: Final = 2048
MOST_EXAMINED: Final = 2**17  # signatures in all indexes together: some 15 MiB
_MOST_SHAPES: Final = 1024  # of claims that need a search; each has an entry for a node searched
_SHARE: Final = 10  # one node gets a tenth, so that a hard node leaves steps for the others


class SearchLimitReached(Exception):
    """The search was stopped before it had tried everything."""


class Budget:
    """How many choices may fail on all nodes of one decision; `allowance` bounds its time."""

    def __init__(self, steps: int, allowance: Allowance) -> None:
        self.left = steps
        self.per_node = max(1, steps // _SHARE)
        self.allowance = allowance
        self._left_for_node = 0

    def begin_node(self) -> None:
        """The following steps are spent on another node. Raises AllowanceSpent."""
        self.allowance.check()
        self._left_for_node = min(self.left, self.per_node)

    def spend(self) -> None:
        """Raises SearchLimitReached if nothing is left for the node, AllowanceSpent if the
        decision has taken too long."""
        if not self._left_for_node:
            raise SearchLimitReached
        self.left -= 1
        self._left_for_node -= 1
        self.allowance.check()


class SignatureIndex(ABC):
    """What is found out once for each signature of the fleet."""

    def __init__(self) -> None:
        self._examined = 0

    def update(self, fleet: Fleet, selectors: Selectors) -> None:
        """Examine the signatures that are new. Raises AllowanceSpent; the next call goes on."""
        if self._examined < len(fleet.with_cards):
            for signature in islice(fleet.with_cards, self._examined, None):
                selectors.allowance.check()
                self._examine(signature, selectors)
                self._examined += 1

    @abstractmethod
    def _examine(self, signature: CardSignature, selectors: Selectors) -> None: ...


_Index = TypeVar("_Index", bound=SignatureIndex)
_Query = TypeVar("_Query", bound=Hashable)


class NoScore(Enum):
    """Why a node has no score for the claims of a pod."""

    FAILED = auto()
    """It cannot serve them."""
    STOPPED = auto()
    """Whether it can serve them is not known, because the search was stopped."""
    UNKNOWN = auto()
    """Whether it can serve them is not known, because devices of other drivers are not."""


@dataclass(slots=True)
class SearchedNodes:
    """The results of searches for claims of one shape, as of a generation of the fleet: nodes that
    serve them with their score, nodes that do not, nodes on which the search was stopped, and nodes
    where devices of other drivers are not known."""

    generation: int
    scores: dict[int, Score] = field(default_factory=dict)
    failed: NodeSet = 0
    stopped: NodeSet = 0
    unknown: NodeSet = 0

    def record(self, number: int, result: Score | NoScore) -> None:
        """A search on the node with that number has ended."""
        if result is NoScore.FAILED:
            self.failed |= 1 << number
        elif result is NoScore.STOPPED:
            self.stopped |= 1 << number
        elif result is NoScore.UNKNOWN:
            self.unknown |= 1 << number
        else:
            self.scores[number] = result

    def refresh(self, fleet: Fleet) -> None:
        """Forget the nodes that have changed since."""
        if self.generation == fleet.generation:
            return
        changed = [node.number for node in fleet.changed_since(self.generation)]
        for number in changed:
            self.scores.pop(number, None)
        unchanged = ~set_of_numbers(changed)
        self.failed &= unchanged
        self.stopped &= unchanged
        self.unknown &= unchanged
        self.generation = fleet.generation


class State:
    """`classes` maps a name to the DeviceClass. `numbers` may be shared with others that make sets
    of nodes. `others` are read by requests that are of other drivers alone. All of it may change
    between two decisions; `refresh` takes in the changes."""

    def __init__(
        self,
        inventory: Inventory,
        allocated: AllocatedDevices,
        classes: Mapping[str, ReadOnlyObject],
        selectors: Selectors,
        numbers: NodeNumbers | None = None,
        *,
        others: OtherDrivers | None = None,
    ) -> None:
        self.inventory = inventory
        self.allocated = allocated
        self.classes = classes
        self.selectors = selectors
        self.numbers = numbers or NodeNumbers()
        self.others = others or OtherDrivers()
        self.fleet = Fleet(inventory, allocated, self.numbers)
        self._rebuilds = 0
        self._indexes: OrderedDict[Hashable, SignatureIndex] = OrderedDict()  # last used at the end
        self._searched: Any = lru_cache(_MOST_SHAPES)(
            lambda _: SearchedNodes(self.fleet.generation)
        )

    def emptied(self) -> State:
        """The same cluster with nothing allocated; it follows what is published."""
        return State(
            self.inventory,
            AllocatedDevices(),
            self.classes,
            self.selectors,
            self.numbers,
            others=self.others.emptied(),
        )

    def refresh(self) -> None:
        """Take in what has changed."""
        self.fleet.refresh()
        self.fleet.touch(self.others.take_changed())
        if self._rebuilds != self.fleet.rebuilds:
            self._rebuilds = self.fleet.rebuilds
            self._indexes.clear()
            self._searched.cache_clear()

    def index(self, kind: Callable[[_Query], _Index], query: _Query) -> _Index:
        """The one index `kind(query)`, up to date. Raises AllowanceSpent; the next call goes on."""
        known = self._indexes.pop((kind, query), None)
        index = kind(query) if known is None else cast("_Index", known)
        self._indexes[kind, query] = index
        most = min(_MOST_INDEXES, MOST_EXAMINED // (len(self.fleet.with_cards) or 1))
        while len(self._indexes) > max(1, most):
            self._indexes.popitem(last=False)
        index.update(self.fleet, self.selectors)
        return index

    def searched(self, shape: Hashable) -> SearchedNodes:
        """What is known of claims of the shape."""
        found: SearchedNodes = self._searched(shape)
        found.refresh(self.fleet)
        return found
