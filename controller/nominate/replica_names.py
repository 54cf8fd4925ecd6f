"""When the names of replicas that are spread are written: one on each node at a time. Pure.

kube-scheduler counts named pods on the node that it looks at, and of other nodes bound pods alone
(1.37.2, RunFilterPluginsWithNominatedPods). So the names of later replicas on a node make an
earlier one that it has not tried yet one too many there: topology spread refuses the node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from controller.cache.keys import Key
from controller.cache.pod_terms import spread_constraints
from controller.write.commands import LiftGate
from controller.write.node_hint import NodeHint

LONGEST: Final = 10.0
"""Seconds for which a name is held at most. A replica may be tried late, as where kube-scheduler is
down: the others then wait for it there, and not behind a gate for which nobody gives a reason."""


@dataclass(slots=True)
class _Replicas:
    """Of one workload: what is to be written, in this order, each with the time from which on it is
    held no longer; and the nodes of pods that kube-scheduler has not tried."""

    held: dict[Key, tuple[LiftGate, float]] = field(default_factory=dict)
    untried: dict[Key, str] = field(default_factory=dict)


class ReplicaNames:
    """A name is held while a replica before it is named for the same node and not tried, and those
    behind it with it. `write` writes a name. One instance, one thread."""

    def __init__(self, write: Callable[[LiftGate], object], clock: Callable[[], float]) -> None:
        self._write = write
        self._clock = clock
        self._workloads: dict[str, _Replicas] = {}
        self._workload_of: dict[Key, str] = {}

    def add(self, command: LiftGate) -> None:
        """Write the name, at once or later: `held_until` says when to call `go_on`."""
        is_alone = not (command.sequence and spread_constraints(command.pod))
        if is_alone or command.hint is not NodeHint.NAME:
            self._write(command)
            return
        self._workload_of[command.key] = command.sequence
        replicas = self._workloads.setdefault(command.sequence, _Replicas())
        replicas.held[command.key] = command, self._clock() + LONGEST
        self._go_on(command.sequence)

    def is_held(self, key: Key) -> bool:
        """Whether the pod's name is not written yet."""
        return self.held_until(key) is not None

    def held_until(self, key: Key) -> float | None:
        """When the pod's name is to be written at the latest; None if it is not held."""
        if (workload := self._workload_of.get(key)) is None:
            return None
        held = self._workloads[workload].held.get(key)
        return None if held is None else held[1]

    def go_on(self, key: Key) -> None:
        """Write what was held for too long, of the workload of the pod."""
        if (workload := self._workload_of.get(key)) is not None:
            self._go_on(workload)

    def end(self, key: Key) -> None:
        """kube-scheduler has tried the pod, or its name is not to be written any more."""
        workload = self._workload_of.pop(key, None)
        if workload is None:
            return
        replicas = self._workloads[workload]
        replicas.held.pop(key, None)
        replicas.untried.pop(key, None)
        self._go_on(workload)

    def clear(self) -> None:
        """Another replica of the controller leads."""
        self._workloads.clear()
        self._workload_of.clear()

    def _go_on(self, workload: str) -> None:
        replicas, now = self._workloads[workload], self._clock()
        while replicas.held:
            key, (command, until) = next(iter(replicas.held.items()))
            if command.node in replicas.untried.values() and now < until:
                return
            del replicas.held[key]
            replicas.untried[key] = command.node
            self._write(command)
        if not replicas.untried:
            del self._workloads[workload]
