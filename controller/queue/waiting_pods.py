"""The pods that wait for devices. Pure: told the time.

What is freed goes to the pod of the highest priority, then to the oldest: `rank` is the order in
which the agenda takes up what is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from controller.allocator.request import Wanted
from controller.cache import pods
from controller.cache.keys import Key, Subject
from controller.queue.agenda import Rank
from dra_driver.kube.backoff import Backoff
from dra_driver.model.claim import Object

_FIRST: Rank = (-(2**63), "")
# As kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
_FIRST_BACKOFF, _LONGEST_BACKOFF = 1.0, 10.0


class Cause(Enum):
    """Why a pod comes up that has not changed itself."""

    CLUSTER_CHANGED = auto()
    DEVICES_FREED = auto()  # that can serve it, as far as was found out


@dataclass(slots=True)
class _Pause:
    """For one cause: whether the next look follows it, and when it may bring up the pod again."""

    backoff: Backoff
    is_cause: bool = False
    until: float = 0.0


@dataclass(slots=True)
class Waiting:
    """A pod that waits `since` then for `wanted`, on one of `nodes`, of which some may be excluded
    for other reasons. Nothing is wanted where the pod was refused, or its decision was stopped: no
    device helps it. `pauses` keep it from being looked at again and again for causes that did not
    help it."""

    since: float
    pauses: Mapping[Cause, _Pause]
    rank: Rank
    wanted: Sequence[Wanted] = ()
    shape: tuple[object, ...] = ()
    nodes: frozenset[str] = field(default_factory=frozenset)


class Queue:
    """`pod` gives the pod of a key as it is now; `draw` gives numbers in [0, 1)."""

    def __init__(self, pod: Callable[[Key], Object | None], draw: Callable[[], float]) -> None:
        self._pod = pod
        self._draw = draw
        self._waiting: dict[Key, Waiting] = {}

    def wait(self, key: Key, now: float, wanted: Sequence[Wanted], nodes: frozenset[str]) -> float:
        """The pod was looked at and cannot be served; gives since when it waits."""
        found = self._looked_at(key, now)
        found.wanted, found.nodes = wanted, nodes
        found.shape = tuple(each.shape for each in wanted)
        return found.since

    def refuse(
        self,
        key: Key,
        now: float,
        wanted: Sequence[Wanted] = (),
        nodes: frozenset[str] = frozenset(),
    ) -> None:
        """The same of a pod that may not have what it asks, or what was found for it: it waits
        from now on."""
        self.wait(key, now, wanted, nodes)
        self._waiting[key].since = now

    def wake(self, key: Key, at: float, cause: Cause) -> float:
        """Gives when to look at the pod for that cause, at the earliest `at`. A cause that brought
        it up in vain brings it up more and more rarely."""
        pause = self._waiting[key].pauses[cause]
        pause.is_cause = True
        return max(at, pause.until)

    def leave(self, key: Key) -> None:
        """The pod waits no longer."""
        self._waiting.pop(key, None)

    def items(self) -> Iterator[tuple[Key, Waiting]]:
        return iter(self._waiting.items())

    def __getitem__(self, key: Key) -> Waiting:
        return self._waiting[key]

    def __contains__(self, key: object) -> bool:
        return key in self._waiting

    def __iter__(self) -> Iterator[Key]:
        return iter(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def rank(self, key: Key) -> Rank:
        """The least comes first. A claim's turn frees devices, if anything: it goes before pods."""
        pod = self._pod(key) if key.subject is Subject.POD else None
        return _FIRST if pod is None else pods.urgency(pod)

    def _looked_at(self, key: Key, now: float) -> Waiting:
        found = self._waiting.get(key)
        if found is None:
            pauses = {cause: self._pause() for cause in Cause}
            found = self._waiting[key] = Waiting(now, pauses, self.rank(key))
        for pause in found.pauses.values():
            if pause.is_cause:
                pause.is_cause = False
                pause.until = now + pause.backoff.next()
        return found

    def _pause(self) -> _Pause:
        return _Pause(Backoff(first=_FIRST_BACKOFF, longest=_LONGEST_BACKOFF, draw=self._draw))
