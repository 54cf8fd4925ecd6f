"""When the names of replicas that are spread are written: one on each node at a time. Pure.

kube-scheduler counts named pods on the node that it looks at, and of other nodes bound pods alone
(1.37.2, RunFilterPluginsWithNominatedPods). So the names of later replicas on a node make an
earlier one that it has not tried yet one too many there: topology spread refuses the node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from controller.cache.keys import Key
from controller.cache.pod_terms import spread_constraints
from controller.write.commands import LiftGate


@dataclass(slots=True)
class _Replicas:
    """Of one workload: what is to be written, in this order, and the nodes of pods that
    kube-scheduler has not judged."""

    held: dict[Key, LiftGate] = field(default_factory=dict)
    written: dict[Key, str] = field(default_factory=dict)


class ReplicaNames:
    """A name is held while a replica before it is named for the same node and not judged, and those
    behind it with it. `write` writes a name. One instance, one thread."""

    def __init__(self, write: Callable[[LiftGate], object]) -> None:
        self._write = write
        self._workloads: dict[str, _Replicas] = {}
        self._workload_of: dict[Key, str] = {}

    def add(self, command: LiftGate) -> None:
        """Write the name, at once or later."""
        if not (command.sequence and spread_constraints(command.pod)):
            self._write(command)
            return
        self._workload_of[command.key] = command.sequence
        self._workloads.setdefault(command.sequence, _Replicas()).held[command.key] = command
        self._go_on(command.sequence)

    def is_held(self, key: Key) -> bool:
        """Whether the pod's name is not written yet."""
        return key in self._workload_of and key in self._workloads[self._workload_of[key]].held

    def end(self, key: Key) -> None:
        """The pod was judged, or its name is not to be written any more."""
        workload = self._workload_of.pop(key, None)
        if workload is None:
            return
        replicas = self._workloads[workload]
        replicas.held.pop(key, None)
        replicas.written.pop(key, None)
        self._go_on(workload)

    def clear(self) -> None:
        """Another replica of the controller leads."""
        self._workloads.clear()
        self._workload_of.clear()

    def _go_on(self, workload: str) -> None:
        replicas = self._workloads[workload]
        while replicas.held:
            key, command = next(iter(replicas.held.items()))
            if command.node in replicas.written.values():
                return
            replicas.written[key] = replicas.held.pop(key).node
            self._write(command)
        if not replicas.written:
            del self._workloads[workload]
