"""How long a decision takes in clusters of several sizes, half of whose slices are held.

Each decision is granted, and an earlier claim given back for it, so that the load stays and the
next decision finds a changed cluster. A decision is to parse the claim and to choose. Bringing the
index up to date after a grant and a claim's end is told beside it, as `event`: the controller does
it between decisions where there is time, else within the next one.

`rss_mib`, `rss_peak_mib` and `start_s` are those of `bench.memory`: what the controller takes of
such a cluster's lists. Times are those of the thread: neighbours on the machine do not count.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench import fleet
from bench.report import percentile, result, table
from bench.shapes import SHAPES
from controller.allocator.allocate import Allocation, allocate, catch_up
from controller.allocator.holdings import Holdings, holds_of
from controller.allocator.inventory import Inventory
from controller.allocator.request import Wanted, parse_claim
from controller.allocator.results import allocation_status
from controller.allocator.state import State
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors

SIZES = (100, 1_000, 5_000)
DECISIONS = 2_000
WARM_UP = 200
CLAIMS_PER_NODE = 8  # held when a measurement starts: 40,000 claims on 5,000 nodes


class Cluster:
    """What the controller's cache would keep, without the objects that the allocator ignores."""

    def __init__(self, nodes: int, draw: random.Random) -> None:
        self._draw = draw
        self._inventory = Inventory()
        self._holdings = Holdings()
        self._held: list[Object] = []
        self.state = State(self._inventory, self._holdings, fleet.classes(), Selectors())
        for number in range(nodes):
            self._inventory.put(fleet.resource_slice(number))
        for each in held_claims(nodes, draw):
            self.hold(each)
        self.nodes = frozenset(fleet.node_name(number) for number in range(nodes))

    def hold(self, claim: Object) -> None:
        self._held.append(claim)
        for each in holds_of(claim):
            self._holdings.add(each)

    def release(self, number: int = -1) -> Object:
        """The claim of that number ends, by default the last one."""
        self._held[number], self._held[-1] = self._held[-1], self._held[number]
        ended = self._held.pop()
        for each in holds_of(ended):
            self._holdings.remove(each)
        return ended

    def release_any(self) -> None:
        self.release(self._draw.randrange(len(self._held)))

    def decide(self, claim: Object) -> tuple[Wanted, Allocation] | None:
        """What the claim would get; None where that is nothing."""
        wanted = parse_claim(claim, self.state.classes)
        outcome = allocate(self.state, [wanted], self.nodes)
        return (wanted, outcome) if isinstance(outcome, Allocation) else None

    def allocated(self, wanted: Wanted, outcome: Allocation) -> Object:
        """The claim as it is written."""
        allocation = allocation_status(
            wanted,
            outcome.grants[0],
            outcome.node,
            self.state.classes,
            timestamp="2026-01-01T00:00:00Z",
            new_share_id=lambda: "share",
        )
        return wanted.claim | {"status": {"allocation": allocation}}


def held_claims(nodes: int, draw: random.Random) -> Iterator[Object]:
    """Half of each node's cards is in use, in all three modes: 8 claims a node; one node in ten is
    empty."""
    for node in range(nodes):
        if draw.random() < 0.1:
            continue
        whole, shared, drs = draw.sample(range(fleet.CARDS), 3)
        yield _held(node, whole, "whole", 1)
        for _ in range(draw.randint(3, 5)):
            yield _held(node, shared, "shared", 1)
        for _ in range(draw.randint(2, 4)):
            yield _held(node, drs, "drs", 1)


def _held(node: int, card: int, mode: str, amount: int) -> Object:
    claim = fleet.claim([fleet.request(mode, amount)])
    devices = {"results": list(fleet.results(node, card, mode, amount))}
    return claim | {"status": {"allocation": {"devices": devices}}}


def measure(nodes: int) -> dict[str, Any]:
    """The times of one size."""
    draw = random.Random(nodes)
    cluster = Cluster(nodes, draw)
    for make in SHAPES.values():
        for _ in range(3):
            cluster.decide(make(draw))
    figures: dict[str, Any] = {}
    gc.collect()
    gc.freeze()
    for name, make in SHAPES.items():
        times = [_one(cluster, make(draw)) for _ in range(WARM_UP + DECISIONS)][WARM_UP:]
        for what, part in zip(("", "_event"), zip(*times, strict=True), strict=True):
            figures[f"{name}{what}_p50_us"] = round(percentile(part, 0.5), 1)
            figures[f"{name}{what}_p99_us"] = round(percentile(part, 0.99), 1)
    return figures


def _one(cluster: Cluster, claim: Object) -> tuple[float, float]:
    """Microseconds of the decision, and of what follows from its grant and a claim's end."""
    started = time.thread_time_ns()
    found = cluster.decide(claim)
    decided = time.thread_time_ns()
    if found is None:
        return (decided - started) / 1_000, 0.0
    allocated = cluster.allocated(*found)
    noted = time.thread_time_ns()
    cluster.hold(allocated)
    if len(found[1].grants[0]) == 1:
        cluster.release_any()
    else:  # the load would grow with each
        cluster.release()
    catch_up(cluster.state)
    return (decided - started) / 1_000, (time.thread_time_ns() - noted) / 1_000


def _apart(module: str, nodes: int) -> dict[str, Any]:
    """The figures of a process of its own."""
    command = [sys.executable, "-m", module, "--nodes", str(nodes)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, help="one size, figures as JSON only")
    given = parser.parse_args()
    if given.nodes:
        result(measure(given.nodes))
        return
    figures: dict[str, dict[str, Any]] = {}
    for nodes in SIZES:
        figures[str(nodes)] = _apart("bench.allocator", nodes) | _apart("bench.memory", nodes)
    rows = [[name, *(figures[str(each)][name] for each in SIZES)] for name in figures["100"]]
    table(
        f"One decision, 50 % load, {DECISIONS} decisions (CPU time)",
        ["", *(f"{each:,} nodes" for each in SIZES)],
        rows,
    )
    result(figures)


if __name__ == "__main__":
    main()
