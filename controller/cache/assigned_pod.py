"""What kube-scheduler's filters read of a pod that is on a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from controller.cache import pods
from controller.cache.host_ports import HostPort, host_ports
from controller.cache.pod_requests import Requests, pod_requests
from controller.cache.pod_terms import AffinityTerm, affinity_terms

_SHARED: Final = 4096  # pods of one workload are listed one after the other
_OF_ONE_POD: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class AssignedPod:
    """Pods of one workload share an object, so `labels` lack those that each pod of a StatefulSet
    or a Job has of its own. `repels` are the terms of its required anti-affinity."""

    namespace: str
    labels: Mapping[str, str]
    priority: int
    is_deleting: bool
    requests: Requests
    ports: tuple[HostPort, ...]
    repels: tuple[AffinityTerm, ...]

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> AssignedPod:
        labels = (pod["metadata"].get("labels") or {}).items()
        shared = tuple(sorted(each for each in labels if each[0] not in _OF_ONE_POD))
        others = (
            pods.priority(pod),
            pods.is_deleting(pod),
            pod_requests(pod),
            host_ports(pod),
            affinity_terms(pod, "podAntiAffinity"),
        )
        return _shared(pod["metadata"]["namespace"], shared, others)


@lru_cache(_SHARED)
def _shared(
    namespace: str,
    labels: tuple[tuple[str, str], ...],
    others: tuple[int, bool, Requests, tuple[HostPort, ...], tuple[AffinityTerm, ...]],
) -> AssignedPod:
    return AssignedPod(namespace, MappingProxyType(dict(labels)), *others)
