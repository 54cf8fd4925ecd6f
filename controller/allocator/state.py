"""All that a decision reads, and what was found out until now, as long as it is true."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.fleet import Fleet
from controller.allocator.inventory import Inventory
from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.allocator.order import Score
from controller.allocator.plain import PlainRequests
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors

_REMEMBERED: Final = 1024  # shapes that need a search; each knows the nodes that it was searched on


@dataclass(slots=True)
class Shape:
    """Nodes on which claims of one shape were searched for: those that serve them with the score,
    those that have `failed`, and those that are `limited`, as the search was stopped there. It
    holds for this `generation` of the fleet."""

    generation: int
    scores: dict[int, Score] = field(default_factory=dict)
    failed: NodeSet = 0
    limited: NodeSet = 0


class Shapes:
    """Those that were asked for lately."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._epoch = fleet.numbers.epoch
        self._known: OrderedDict[Hashable, Shape] = OrderedDict()

    def of(self, key: Hashable) -> Shape:
        """What is known, without the nodes that have changed since."""
        fleet = self._fleet
        if self._epoch != fleet.numbers.epoch:
            self._epoch = fleet.numbers.epoch
            self._known.clear()
        shape = self._known.setdefault(key, Shape(fleet.generation))
        self._known.move_to_end(key)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        changed = 0
        for node in fleet.changed_since(shape.generation):
            changed |= 1 << node.number
            shape.scores.pop(node.number, None)
        shape.failed &= ~changed
        shape.limited &= ~changed
        shape.generation = fleet.generation
        return shape


class Answers:
    """Answers to questions that hold as long as nothing of the fleet changes."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._generation = fleet.generation
        self._known: dict[Hashable, Any] = {}

    def of(self, question: Hashable, find: Callable[[], Any]) -> Any:
        """What `find` gives, or gave the last time."""
        if self._generation != self._fleet.generation or len(self._known) >= _REMEMBERED:
            self._generation = self._fleet.generation
            self._known.clear()
        if question not in self._known:
            self._known[question] = find()
        return self._known[question]


class State:
    """`classes` maps a name to the DeviceClass. `numbers` may be shared by all who make sets of
    nodes. All of it may change between two decisions; `fleet.refresh` takes in what changed."""

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
        self.plain = PlainRequests(self.fleet, selectors)
        self.shapes = Shapes(self.fleet)
        self.diagnoses = Answers(self.fleet)

    def emptied(self) -> State:
        """The same cluster with nothing held; it follows what is published."""
        return State(self.inventory, AllocatedDevices(), self.classes, self.selectors, self.numbers)
