"""kube-scheduler without a server: it binds a pod, or all pods of a gang, or nothing.

Played after 1.37.2 (`podGroupSchedulingDefaultAlgorithm`). It places the members of a gang one
after the other, each beside those before it, and takes all of it back as soon as one finds no
place. A pod goes to its named node if that has devices for it. Otherwise it goes to the node with
the least cpu and memory requested (LeastAllocated), of equal ones to any. cpu and memory order
nodes here, and never run out. The devices of the node are the first ones that fit.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import count, repeat

from bench.fleet import CARDS
from bench.ours import Ours
from bench.trace import Job
from controller.allocator.packing.policy import SchedulerPolicy

_CPU, _MEMORY = 96_000, 393_216  # of a node: milli, MiB


class PlayedScheduler:
    """Nodes of eight cards. Pods are known by a number of their own while they run."""

    def __init__(self, nodes: int, seed: int) -> None:
        self.ours = Ours([CARDS] * nodes, SchedulerPolicy())
        self.slices = 0
        """That are allocated."""
        self._draw = random.Random(seed)
        self._numbers = count()
        self._requested = Counter[str]()
        self._running: dict[int, tuple[Job, str]] = {}

    def attempt(self, members: Sequence[Job], named: Sequence[str] = ()) -> list[int]:
        """The numbers of the pods; none if not all of them have a place. `named` has the node of
        each, empty where none is named."""
        started = list[int]()
        for job, name in zip(members, named or repeat(""), strict=bool(named)):
            number = next(self._numbers)
            if not self._start(number, job, name):
                for each in started:
                    self.stop(each)
                return []
            started.append(number)
        return started

    def stop(self, number: int) -> None:
        self.ours.stop(number)
        job, node = self._running.pop(number)
        self._count(job, node, -1)

    def node_of(self, number: int) -> str:
        return self._running[number][1]

    def _start(self, number: int, job: Job, named: str) -> bool:
        if not (named and self.ours.start(number, job, on=named)):
            serving = self.ours.serving(job)
            if not serving:
                return False
            named = min(serving, key=lambda node: (self._requested[node], self._draw.random()))
            self.ours.start(number, job, on=named)
        self._running[number] = job, named
        self._count(job, named, 1)
        return True

    def _count(self, job: Job, node: str, sign: int) -> None:
        # A share of the node, in millionths: sums of integers end at zero again.
        share = 1_000_000 * job.cpu // _CPU + 1_000_000 * job.memory // _MEMORY
        self._requested[node] += sign * job.cards * share
        self.slices += sign * job.cards * job.slices
