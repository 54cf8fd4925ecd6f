"""How long pods with devices of this driver take to start (kubelet: pod startup latency)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime

from controller.cache import pods
from controller.cache.cache import Changed, ClusterCache
from controller.reconcile.reporter import Reporter
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation, results


@dataclass(frozen=True, slots=True)
class PodStartRecorder:
    """Observes what the watches report while this replica leads. `now` returns the time of day.

    What another replica saw, or nobody during a change of leaders, is not counted: the time at
    which it happened is not known. With `of_scheduler` the allocations of kube-scheduler are
    counted; the controller counts its own when the server has answered.
    """

    cache: ClusterCache
    reporter: Reporter
    now: Callable[[], datetime]
    _: KW_ONLY
    of_scheduler: bool

    def on_change(self, changed: Changed) -> None:
        """`changed` is in the cache already."""
        old, new = changed.old, changed.new
        if old is None or new is None or changed.is_gone():
            return
        if changed.resource is PODS and _phase(old) == "Pending" and _phase(new) == "Running":
            claims = self.cache.claims_of(new) or {}
            if any(results(each) for each in claims.values()):
                self.reporter.running_seconds.observe(pods.age(new, self.now()))
        elif (
            self.of_scheduler
            and changed.resource is RESOURCE_CLAIMS
            and allocation(old) is None
            and results(new)
        ):
            for pod in self.cache.reserving(new):  # kube-scheduler writes that with the allocation
                if _are_allocated((self.cache.claims_of(pod) or {}).values()):
                    self.reporter.allocation_seconds.observe(pods.age(pod, self.now()))


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _are_allocated(claims: Iterable[Object]) -> bool:
    return all(allocation(each) is not None for each in claims)
