"""Which of the pods without room kube-scheduler sees nevertheless. Pure.

Autoscalers and preemption act on pods that kube-scheduler refuses, so the gates of a few such pods
are lifted. A lifted gate cannot be set again: a place is free again when its pod ends or finds
room, which may be never. So a namespace gets a place only while more places are free than it has:
alone half of all, the next namespace half of the others, and so on. Network switches share buffers
in this way (dynamic thresholds: Choudhury and Hahne, 1998). A freed place goes to the namespace
that has the fewest.
"""

from __future__ import annotations

from controller.cache.keys import Key

_Pods = dict[str, dict[Key, None]]
"""By namespace, in the order in which they came."""


class LiftedPods:
    """The pods that wait for room without a gate, and those that keep the gate for want of a place.
    A pod without a gate takes one place. One instance, one thread."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._lifted: _Pods = {}
        self._gated: _Pods = {}

    def add(self, key: Key) -> None:
        """The pod has no gate. It takes a place whether or not one is free."""
        self._lifted.setdefault(key.namespace, {})[key] = None

    def remove(self, key: Key) -> None:
        """The pod does not wait without a gate: its place is free."""
        _discard(self._lifted, key)

    def admit(self, key: Key) -> bool:
        """Whether the pod may be lifted: it has a place, or has one by this. If not, it waits for
        one."""
        if key in self._lifted.get(key.namespace, ()) or self._may_add(key.namespace):
            self.add(key)
            return True
        self._gated.setdefault(key.namespace, {})[key] = None
        return False

    def next_to_admit(self) -> Key | None:
        """The pod that waits for a place and may have one, if there is any. It waits until it is
        forgotten."""
        namespace = min(self._gated, key=self._places_of, default=None)
        if namespace is None or not self._may_add(namespace):
            return None
        return next(iter(self._gated[namespace]))

    def forget_request(self, key: Key) -> None:
        """The pod does not wait for a place."""
        _discard(self._gated, key)

    def clear(self) -> None:
        """Another replica leads."""
        self._lifted.clear()
        self._gated.clear()

    def _may_add(self, namespace: str) -> bool:
        return self._places_of(namespace) < self._free_places()

    def _places_of(self, namespace: str) -> int:
        return len(self._lifted.get(namespace, ()))

    def _free_places(self) -> int:
        """Of pods that came without a gate, as those of a DaemonSet, a namespace may have more than
        half of the places. They leave the other half to others."""
        half = (self._places + 1) // 2
        return self._places - sum(min(len(each), half) for each in self._lifted.values())


def _discard(pods: _Pods, key: Key) -> None:
    keys = pods.get(key.namespace, {})
    keys.pop(key, None)
    if not keys:
        pods.pop(key.namespace, None)
