"""What was found out for claims of one shape, kept until the nodes change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

from controller.allocator.fleet import Fleet
from controller.allocator.node_set import NodeSet
from controller.allocator.order import Score

_REMEMBERED: Final = 1024  # shapes that need a search; each knows the nodes that it was searched on


class Shape:
    """Nodes on which claims of the shape were searched for: those that serve them with the score,
    those that have `failed`, and those that are `limited`, as the search was stopped there."""

    def __init__(self, fleet: Fleet) -> None:
        self.scores: dict[int, Score] = {}
        self.failed: NodeSet = 0
        self.limited: NodeSet = 0
        self._fleet = fleet
        self._generation = fleet.generation
        self._epoch = fleet.numbers.epoch

    def refresh(self) -> None:
        """Forget what was found out about nodes that have changed since."""
        if self._epoch != self._fleet.numbers.epoch:
            self.__init__(self._fleet)  # type: ignore[misc]
            return
        changed = 0
        for node in self._fleet.changed_since(self._generation):
            changed |= 1 << node.number
            self.scores.pop(node.number, None)
        self.failed &= ~changed
        self.limited &= ~changed
        self._generation = self._fleet.generation


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


class Shapes:
    """Those that were asked for lately."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._known: OrderedDict[Hashable, Shape] = OrderedDict()

    def of(self, shape: Hashable) -> Shape:
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = Shape(self._fleet)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(shape)
            found.refresh()
        return found
