"""What kube-scheduler's filters read of a pod that looks for a node. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from controller.cache import pods
from controller.cache.host_ports import host_ports
from controller.cache.pod_requests import pod_requests
from controller.cache.pod_terms import affinity_terms, spread_constraints


def scheduling_demand(pod: Mapping[str, Any]) -> Hashable:
    """Equal for pods that fit the same nodes, but for those that the anti-affinity of other pods
    keeps away: else each pod of a StatefulSet, whose labels are its own, would be a case of its
    own."""
    preempts = (pods.priority(pod),) if pods.may_preempt(pod) else ()
    terms = (
        affinity_terms(pod, "podAffinity"),
        affinity_terms(pod, "podAntiAffinity"),
        spread_constraints(pod),
    )
    metadata = pod["metadata"]
    labels = frozenset((metadata.get("labels") or {}).items())
    where = (metadata["namespace"], labels, *terms) if any(terms) else ()
    return pod_requests(pod), host_ports(pod), preempts, where
