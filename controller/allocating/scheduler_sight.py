"""What kube-scheduler has seen of a pod's allocation, as far as its verdicts prove it. Pure.

docs/dev/controller.md says from upstream's source what proves what.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from controller.cache import pods


class Sight(Enum):
    """What kube-scheduler has surely seen since the pod's last allocation was decided."""

    NOTHING = 0
    ALLOCATION = 1  # all claims of the pod with an allocation
    RELEASE = 2  # later, one of these claims without it


@dataclass(slots=True)
class _Watched:
    node: str
    sight: Sight = Sight.NOTHING


class SchedulerSight:
    """One instance, one thread. It knows pods whose allocation this process decided on, until they
    are bound or gone."""

    def __init__(self) -> None:
        self._pods: dict[str, _Watched] = {}  # by the pod's UID

    def begin_allocation(self, pod_uid: str, node: str) -> None:
        """An allocation on the node is about to be written: earlier verdicts prove nothing."""
        self._pods[pod_uid] = _Watched(node)

    def on_verdict(self, pod_uid: str, verdict: str) -> str | None:
        """kube-scheduler's message about the pod has changed. Returns the node that it refused, if
        the message is the first one about the last allocation."""
        watched = self._pods.get(pod_uid)
        if watched is None:
            return None
        if pods.is_about_allocation(verdict):
            is_first = watched.sight is Sight.NOTHING
            watched.sight = Sight.ALLOCATION
            return watched.node if is_first else None
        if watched.sight is Sight.ALLOCATION and pods.lacks_allocation(verdict):
            watched.sight = Sight.RELEASE
        return None

    def has_seen_release(self, pod_uid: str) -> bool:
        """Whether kube-scheduler has tried the pod and seen that an allocation was cleared. Nothing
        that it decided with that allocation can arrive any more."""
        watched = self._pods.get(pod_uid)
        return watched is not None and watched.sight is Sight.RELEASE

    def forget(self, pod_uid: str) -> None:
        """The pod was bound, or is gone."""
        self._pods.pop(pod_uid, None)
