"""Nodes in the order of how well they serve one shape of claims, kept as nodes change."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice

from controller.allocator.changes import ALL_NODES, Changed
from controller.allocator.inventory import Inventory
from controller.allocator.policy import Policy
from controller.allocator.request import Wanted

_MOST_RANKINGS = 32  # different shapes; a ranking has an entry for each node
Score = tuple[int, ...]  # the least is the best; those of one ranking are of one length
_LATEST = 4  # so many are kept up to date while nobody waits
Asked = tuple[Sequence[Wanted], Policy]
Evaluate = Callable[[str], Score | None]  # None where the node cannot serve the shape


class Ranking:
    """A node is in the order, or cannot serve the shape, or was not looked at since it changed.
    Of those in `limited` it is not known, as the search was stopped. `asked` is one of the claims
    of that shape, with the policy."""

    def __init__(self, asked: Asked, unseen: set[str]) -> None:
        self.asked = asked
        self.unseen = unseen
        self.limited: set[str] = set()
        self._scores: dict[str, Score] = {}
        self._order: list[tuple[Score, str]] = []

    def look(self, evaluate: Evaluate) -> None:
        """Look at the nodes that changed. Where `evaluate` raises, the rest stays unseen."""
        for node in sorted(self.unseen):
            self._replace(node, evaluate(node))
            self.unseen.discard(node)

    def nodes(self) -> Iterator[str]:
        """Those that serve the shape, the best first."""
        return (node for _, node in self._order)

    def _replace(self, node: str, score: Score | None) -> None:
        old = self._scores.pop(node, None)
        if old is not None:
            del self._order[bisect_left(self._order, (old, node))]
        if score is not None:
            self._scores[node] = score
            insort(self._order, (score, node))


class Rankings:
    """One for each shape that was asked lately."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._known: OrderedDict[Hashable, Ranking] = OrderedDict()

    def forget(self, changed: Changed) -> None:
        nodes = changed.nodes
        if ALL_NODES in nodes:
            nodes = self._inventory.nodes.keys() | (nodes - {ALL_NODES})
        for each in self._known.values():
            each.unseen.update(nodes)

    def latest(self) -> list[Ranking]:
        """Those of the shapes asked last."""
        return list(islice(reversed(self._known.values()), _LATEST))

    def of(self, asked: Asked) -> Ranking:
        wanted, policy = asked
        shape = tuple(each.shape for each in wanted), policy
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = Ranking(asked, set(self._inventory.nodes))
            if len(self._known) > _MOST_RANKINGS:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(shape)
        return found
