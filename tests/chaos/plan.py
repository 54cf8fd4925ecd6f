"""What a seed lets happen, and when. Pure: the same seed gives the same steps.

Steps name what they are about (a workload, a part of the cluster, a card by its number), never what
happens to be there, so that a slow machine plays the same ones.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

from tests.chaos.workload import SHAPES, Ending, Workload

_BETWEEN_WORKLOADS: Final = (1.5, 5.0)
_LIVES: Final = (15.0, 110.0)
_BETWEEN_FAULTS: Final = (3.0, 11.0)
_LASTS: Final = (4.0, 25.0)
"""Seconds; the kubelet's calls and the API server's watches outlast the longest fault or not."""
NODES: Final = 2


class Fault(StrEnum):
    """What is done to a part of the cluster. `STOPPED` is SIGSTOP, and SIGCONT at the end; `KILLED`
    is SIGKILL, after which a container is started anew by its kubelet, and another program at the
    end of the fault."""

    AGENT_KILLED = "agent killed"
    AGENT_STOPPED = "agent stopped"
    CONTROLLER_KILLED = "controller killed"
    CONTROLLER_STOPPED = "controller stopped"
    KUBELET_KILLED = "kubelet killed"
    KUBELET_STOPPED = "kubelet stopped"
    API_SERVER_KILLED = "API server killed"
    API_SERVER_STOPPED = "API server stopped"
    SCHEDULER_KILLED = "kube-scheduler killed"
    SCHEDULER_STOPPED = "kube-scheduler stopped"
    CARD_LOST = "card lost"
    CARD_UNHEALTHY = "card unhealthy"
    CDI_FILE_DELETED = "CDI file deleted"
    WATCHES_CUT = "watches cut"

    @property
    def part(self) -> str:
        """What it is done to: two faults of the same part do not overlap."""
        return self.value.rpartition(" ")[0]


_OF_THE_CLUSTER: Final = frozenset(
    {
        Fault.API_SERVER_KILLED,
        Fault.API_SERVER_STOPPED,
        Fault.SCHEDULER_KILLED,
        Fault.SCHEDULER_STOPPED,
        Fault.WATCHES_CUT,
    }
)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault of a node's part, or of the cluster's. `number` chooses among several of the part (a
    card, a CDI file); `seconds` is for how long."""

    at: float
    fault: Fault
    node: int
    number: int
    seconds: float

    def __str__(self) -> str:
        where = "" if self.fault in _OF_THE_CLUSTER else f" on node {self.node + 1}"
        return f"{self.fault}{where}, for {self.seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A workload is made."""

    at: float
    workload: Workload

    def __str__(self) -> str:
        return f"begin {self.workload}"


@dataclass(frozen=True, slots=True)
class End:
    """A workload ends."""

    at: float
    workload: Workload

    def __str__(self) -> str:
        return f"end {self.workload.name}: {self.workload.ending}"


@dataclass(frozen=True, slots=True)
class Plan:
    """`churn` and `disturbances` by their time, in seconds since the beginning."""

    churn: tuple[Arrival | End, ...]
    disturbances: tuple[Disturbance, ...]


def plan(seed: int, seconds: float) -> Plan:
    """What happens in so many seconds. What is alive or disturbed at their end is not ended."""
    draw = Random(seed)
    return Plan(_churn(draw, seconds), _disturbances(draw, seconds))


def _churn(draw: Random, seconds: float) -> tuple[Arrival | End, ...]:
    steps: list[Arrival | End] = []
    at, shapes, numbers = 0.0, list(SHAPES), itertools.count()
    # Each shape once at first, so that a short run has them all.
    order = draw.sample(shapes, len(shapes))
    while (at := at + draw.uniform(*_BETWEEN_WORKLOADS)) < seconds:
        shape = order.pop() if order else draw.choice(shapes)
        amount = draw.choice(SHAPES[shape])
        ending = draw.choice(list(Ending))
        workload = Workload(f"w{next(numbers):04}", shape, amount, ending)
        steps.append(Arrival(at, workload))
        steps.append(End(at + draw.uniform(*_LIVES), workload))
    found = sorted(steps, key=lambda step: step.at)
    return tuple(step for step in found if step.at < seconds)


def _disturbances(draw: Random, seconds: float) -> tuple[Disturbance, ...]:
    found: list[Disturbance] = []
    busy: dict[tuple[str, int], float] = {}
    at = 0.0
    order: list[Fault] = []
    while (at := at + draw.uniform(*_BETWEEN_FAULTS)) < seconds:
        order = order or draw.sample(list(Fault), len(Fault))
        fault, lasts = order.pop(), draw.uniform(*_LASTS)
        node, number = draw.randrange(NODES), draw.randrange(1 << 16)
        where = 0 if fault in _OF_THE_CLUSTER else node
        if busy.get((fault.part, where), 0.0) > at:
            continue
        busy[fault.part, where] = at + lasts
        found.append(Disturbance(at, fault, node, number, lasts))
    return tuple(found)
