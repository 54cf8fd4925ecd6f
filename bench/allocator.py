"""How long a decision takes on three fleets (`bench.fleets`) of 100 and of 15,000 nodes, half of
whose slices are held.

Each decision is granted, and an earlier claim ends for it, so that the load stays: a decision has
to take in these two changes first, to parse its claim, and to choose. `impossible` finds the words
for the event, too. `unseen` and `unseen_pair` are claims of one and of two requests whose selectors
nobody had before, `thousand` is one of a thousand shapes, round-robin.

Times are processor time of the thread: neighbours on the machine do not count.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, Final

from bench import fleet
from bench.fleets import FLEETS, FREE, NodeState
from bench.report import percentile, result, table
from bench.shapes import SHAPES, pair, selecting
from controller.allocator.allocate import Allocation, allocate
from controller.allocator.allocated_devices import AllocatedDevices, allocations_of
from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.allocator.inventory import Inventory
from controller.allocator.results import allocation_status
from controller.allocator.state import State
from dra_driver.model.claims.claim import Object
from dra_driver.selector.selector import Selectors

SIZES: Final = (100, 15_000)
DECISIONS: Final = 1_000
WARM_UP: Final = 100
_THOUSAND: Final = 1_000
_UNSEEN: Final = 20
Make = Callable[[], Object]


class Cluster:
    """What the controller's cache has of a fleet, without what the allocator ignores."""

    def __init__(self, nodes: Iterator[NodeState], draw: random.Random) -> None:
        self._draw = draw
        self._holdings = AllocatedDevices()
        self._held: list[Object] = []
        self._inventory = Inventory()
        self.state = State(self._inventory, self._holdings, fleet.classes(), Selectors())
        names = []
        for number, node in enumerate(nodes):
            self._inventory.put(_slice(number, node))
            for each in _claims(number, node):
                self.hold(each)
            names.append(fleet.node_name(number))
        self.nodes = self.state.numbers.set_of(names)

    def hold(self, claim: Object) -> None:
        self._held.append(claim)
        for each in allocations_of(claim):
            self._holdings.add(each)

    def release(self, number: int = -1) -> Object:
        """The claim of that number ends, by default the last one."""
        self._held[number], self._held[-1] = self._held[-1], self._held[number]
        ended = self._held.pop()
        for each in allocations_of(ended):
            self._holdings.remove(each)
        return ended

    def release_any(self) -> None:
        self.release(self._draw.randrange(len(self._held)))

    def decide(self, claim: Object) -> tuple[ClaimRequest, Allocation] | None:
        """What the claim would get; where that is nothing, the reason is found."""
        wanted = parse_claim(claim, self.state.classes)
        outcome = allocate(self.state, [wanted], self.nodes)
        if isinstance(outcome, Allocation):
            return wanted, outcome
        outcome.explain()
        return None

    def allocated(self, wanted: ClaimRequest, outcome: Allocation) -> Object:
        """The claim as it is written."""
        allocation = allocation_status(
            wanted,
            outcome.assignments[0],
            outcome.node,
            self.state.classes,
            timestamp="2026-01-01T00:00:00Z",
            new_share_id=lambda: "share",
        )
        return wanted.claim | {"status": {"allocation": allocation}}


def _slice(number: int, node: NodeState) -> Object:
    switches = {card: nth for nth, cards in enumerate(node.switches) for card in cards}
    return fleet.resource_slice(
        number,
        models=[card.model for card in node.cards],
        switches=[switches[card] for card in range(len(node.cards))],
    )


def _claims(number: int, node: NodeState) -> Iterator[Object]:
    """What is held on the node."""
    for card, state in enumerate(node.cards):
        if state.mode == FREE:
            continue
        for amount in state.amounts:
            held = fleet.results(number, card, state.mode, amount)
            devices = {"results": list(held)}
            asked = fleet.claim([fleet.request(state.mode, amount)])
            yield asked | {"status": {"allocation": {"devices": devices}}}


def made(kind: str, nodes: int, seed: int) -> Cluster:
    """Half of its slices are held."""
    draw = random.Random(seed)
    return Cluster(FLEETS[kind](nodes, draw), draw)


def measure(kind: str, nodes: int) -> dict[str, Any]:
    """Microseconds, for one fleet of one size."""
    cluster = made(kind, nodes, nodes)
    built = time.process_time()
    cluster.state.fleet.refresh()
    figures: dict[str, Any] = {"index_s": round(time.process_time() - built, 2)}
    gc.collect()
    gc.freeze()
    draw = random.Random(1)
    for name, make in SHAPES.items():
        figures |= _percentiles(name, cluster, partial(make, draw), DECISIONS, WARM_UP)
    number = count(1)
    figures |= _percentiles("unseen", cluster, lambda: selecting(-next(number)), _UNSEEN, 0)
    figures |= _percentiles("unseen_pair", cluster, lambda: pair(-next(number) * 1_000), _UNSEEN, 0)
    figures |= _percentiles(
        "thousand",
        cluster,
        lambda: selecting(next(number) % _THOUSAND),
        2 * _THOUSAND,
        _THOUSAND,
    )
    return figures


def _percentiles(
    name: str, cluster: Cluster, make: Make, decisions: int, warm_up: int
) -> dict[str, Any]:
    times = [_one(cluster, make()) for _ in range(warm_up + decisions)][warm_up:]
    return {
        f"{name}_p50_us": round(percentile(times, 0.5), 1),
        f"{name}_p99_us": round(percentile(times, 0.99), 1),
    }


def _one(cluster: Cluster, claim: Object) -> float:
    """Microseconds of the decision; afterwards it is granted, and a claim ends for it."""
    started = time.thread_time_ns()
    found = cluster.decide(claim)
    decided = time.thread_time_ns()
    if found is not None:
        cluster.hold(cluster.allocated(*found))
        if len(found[1].assignments[0]) == 1:
            cluster.release_any()
        else:  # the load would grow with each
            cluster.release()
    return (decided - started) / 1_000


def _apart(kind: str, nodes: int) -> dict[str, Any]:
    """The figures of a process of its own."""
    command = [sys.executable, "-m", "bench.allocator", "--fleet", kind, "--nodes", str(nodes)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleet", choices=FLEETS, help="one fleet, figures as JSON only")
    parser.add_argument("--nodes", type=int, default=SIZES[-1], help="its size")
    given = parser.parse_args()
    if given.fleet:
        result(measure(given.fleet, given.nodes))
        return
    columns = [(kind, nodes) for kind in FLEETS for nodes in SIZES]
    figures = {f"{kind} {nodes:,}": _apart(kind, nodes) for kind, nodes in columns}
    names = next(iter(figures.values()))
    rows = [[name, *(each[name] for each in figures.values())] for name in names]
    table("One decision, half of all slices held (CPU time)", ["", *figures], rows)
    result(figures)


if __name__ == "__main__":
    main()
