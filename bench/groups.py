"""What one decision for a group of pods costs, and where groups go.

``python -m bench.groups`` asks the controller's own search, without a server. The first table has
how long a decision takes: processor time of the deciding thread in all, and of its longest step,
between two of which other pods are decided. The second one places gangs on nodes of which single
pods hold a part of the cards at random: each member named alone, as other pods are; as a group; and
with the label of racks as `nomination.groupLabels`.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from bench.published import Devices
from bench.report import result, table
from controller.allocator.packing.policy import SchedulerPolicy
from controller.cache.cache import ClusterCache
from controller.filter.node_filter import NodeFilter
from controller.groups.request import GroupPlaced, GroupRequest, Placement
from controller.groups.search import GroupSearch
from controller.placer.outcome import Placed
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from dra_driver.selector.selector import Selectors
from tests.control_plane.objects import claim, pod_with

RACK: Final = "rack"
_ROOM: Final = {"cpu": "256", "memory": "1Ti", "pods": "250"}


class Fleet:
    """Nodes of eight cards, in racks of equal size."""

    def __init__(self, nodes: int, racks: int, seed: int = 0) -> None:
        self._version, self._names = count(1), count()
        self._draw = random.Random(seed)
        self.racks = {f"node-{number:05}": number * racks // nodes for number in range(nodes)}
        self.cache = ClusterCache(Selectors(), for_scheduler=True)
        state = self.cache.state()
        self.nodes = NodeFilter(self.cache, state.numbers, state.selectors.allowance)
        self.placer = Placer(self.cache, self.nodes, SchedulerPolicy())
        devices = Devices(DRIVER, counters=True)
        for each in devices.classes():
            self._put(DEVICE_CLASSES, each)
        for number, rack in enumerate(self.racks.values()):
            slices = devices.slices(number)
            name = slices[0]["spec"]["nodeName"]
            self._put(NODES, _node(name, f"r{rack}"))
            for each in slices:
                self._put(RESOURCE_SLICES, each)

    def hold(self, share: float) -> None:
        """Pods of one to four cards come at random, each named alone, until so much is held."""
        free = 8 * len(self.racks)
        left = int(free * share)
        while left > 0:
            cards = min(left, self._draw.choice([1, 1, 2, 4]))
            self.alone([self.member(cards)])
            left -= cards

    def member(self, cards: int) -> PodClaims:
        """A pod with one claim for so many cards."""
        name = f"pod-{next(self._names)}"
        made, pod = claim(name, "default", count=cards), pod_with(name, "default", name)
        self._put(RESOURCE_CLAIMS, made)
        self._put(PODS, pod)
        return self.placer.read(_stored(pod, 1), {name: _stored(made, 1)})

    def alone(self, members: Sequence[PodClaims]) -> Sequence[str] | None:
        """The node of each, named one after the other; None if one finds none."""
        found = []
        for each in members:
            outcome = self.placer.place(each)
            if not isinstance(outcome, Placed):
                return None
            for made in outcome.claims(self.cache.state().classes, timestamp=""):
                self.cache.assume(made)
            found.append(outcome.node)
        return found

    def together(self, members: Sequence[PodClaims], *near: str) -> Sequence[str] | None:
        search = self.search(members, *near)
        while not search.advance():
            pass
        placements: Sequence[Placement] = search.keep()
        return [each.node for each in placements] or None

    def search(self, members: Sequence[PodClaims], *near: str, key: str = "") -> GroupSearch:
        request = GroupRequest(members, len(members), topology_key=key)
        return GroupSearch(request, self.cache, self.placer, self.nodes, near)

    def rack_of(self, node: str) -> str:
        return str(self.cache.nodes[node]["metadata"]["labels"][RACK])

    def _put(self, resource: Resource, obj: Object) -> None:
        self.cache.apply(resource, Change.ADDED, _stored(obj, next(self._version)))


def _node(name: str, rack: str) -> Object:
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "labels": {RACK: rack}},
        "spec": {},
        "status": {"conditions": [ready], "allocatable": _ROOM},
    }


def _stored(obj: Object, version: int) -> Object:
    made = {"uid": f"uid-{obj['metadata']['name']}", "resourceVersion": str(version)}
    return obj | {"metadata": made | obj["metadata"]}


def decision_times(nodes: int) -> Iterator[list[object]]:
    """Rows: the group, what it is kept near by, milliseconds, those of its longest step, nodes."""
    fleet = Fleet(nodes, racks=max(1, nodes // 16))
    for size, cards in ((4, 8), (16, 8), (64, 8), (512, 1), (512, 8)):
        if size * cards > 8 * nodes:
            continue
        members = [fleet.member(cards) for _ in range(size)]
        for name, near, key in (("-", (), ""), ("label", (RACK,), ""), ("topology key", (), RACK)):
            search = fleet.search(members, *near, key=key)
            spent, longest = _run(search)
            outcome = search.outcome
            used = 0
            if isinstance(outcome, GroupPlaced):
                used = len({each.node for each in outcome.placements})
            search.undo()
            yield [f"{size} x {cards} cards", name, spent, longest, used or "does not fit"]


def _run(search: GroupSearch) -> tuple[float, float]:
    spent = longest = 0.0
    has_ended = False
    while not has_ended:
        started = time.thread_time()
        has_ended = search.advance()
        step = 1_000 * (time.thread_time() - started)
        spent, longest = spent + step, max(longest, step)
    return round(spent, 1), round(longest, 1)


@dataclass(frozen=True, slots=True)
class Placing:
    """One way to place a gang."""

    name: str
    place: Callable[[Fleet, Sequence[PodClaims]], Sequence[str] | None]


PLACINGS: Final = (
    Placing("each member alone", lambda fleet, members: fleet.alone(members)),
    Placing("as a group", lambda fleet, members: fleet.together(members)),
    Placing("as a group, near by rack", lambda fleet, members: fleet.together(members, RACK)),
)


def where_gangs_go(
    placing: Placing, *, nodes: int, racks: int, gangs: int, held: float
) -> list[object]:
    """A row: the way, gangs that are placed, percent of them in one rack, nodes of a gang."""
    fleet, draw = Fleet(nodes, racks), random.Random(1)
    fleet.hold(held)
    placed = in_one_rack = used = 0
    for _ in range(gangs):
        size = draw.choice([4, 8, 16])
        found = placing.place(fleet, [fleet.member(1) for _ in range(size)])
        if found is None:
            continue
        placed += 1
        in_one_rack += len({fleet.rack_of(node) for node in found}) == 1
        used += len(set(found))
    return [placing.name, placed, 100 * in_one_rack // placed, round(used / placed, 2)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--gangs", type=int, default=25)
    parser.add_argument("--held", type=float, default=0.5)
    options = parser.parse_args()
    times = list(decision_times(options.nodes))
    columns = ["group", "near by", "ms", "longest step", "nodes"]
    table(f"one decision, {options.nodes:,} nodes in racks of 16", columns, times)
    rows = [
        where_gangs_go(each, nodes=100, racks=10, gangs=options.gangs, held=options.held)
        for each in PLACINGS
    ]
    title = f"{options.gangs} gangs on 100 nodes in 10 racks, {options.held:.0%} of the cards held"
    table(title, ["placed", "gangs", "% in one rack", "nodes of a gang"], rows)
    result({"decisions": times, "gangs": rows})


if __name__ == "__main__":
    main()
