"""Small views on a Pod (core/v1) as plain dict."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from controller.cache.keys import Key, Subject, uid_of
from dra_driver.asks.limits import limit_names
from dra_driver.kube.scheduling_gate import has_gate
from dra_driver.model.claims.claim import claim_names
from dra_driver.model.names import (
    CLASS_LIMIT_PREFIX,
    LIMITS_TEMPLATE_PREFIX,
    RESOURCE_WHOLE,
    SCHEDULING_GATE,
)

Pod = Mapping[str, Any]
Condition = tuple[str, str] | None
"""Reason and message of a pod's condition PodScheduled while that is false; None without one."""
DEFAULT_SCHEDULER: Final = "default-scheduler"  # what the API server writes
BINDING_LIMIT: Final = 600.0
"""Seconds that kube-scheduler gives a binding that waits for volumes (1.37.1, VolumeBindingArgs,
bindTimeoutSeconds)."""
# kube-scheduler 1.34.4 to 1.37.2, plugins/dynamicresources, Filter
_UNALLOCATED = "cannot allocate all claims"
_UNAVAILABLE = "resourceclaim not available on the node"


def key_of(pod: Pod) -> Key:
    return Key(Subject.POD, pod["metadata"]["namespace"], pod["metadata"]["name"])


def node_name(pod: Pod) -> str:
    """The node that the pod is bound to; empty while it waits."""
    return str(pod["spec"].get("nodeName") or "")


def nominated_node(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("nominatedNodeName") or "")


def may_preempt(pod: Pod) -> bool:
    """Whether kube-scheduler ends other pods for this one; it nominates the node that it chose."""
    return bool(pod["spec"].get("preemptionPolicy") != "Never")


def scheduler_name(pod: Pod) -> str:
    return str(pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER)


def group_name(pod: Pod) -> str | None:
    """Namespace and name of the PodGroup that the pod is a member of; None without one."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return f"{pod['metadata']['namespace']}/{name}" if name else None


def concerns_us(pod: Pod) -> bool:
    """Whether the pod has any claims, a limit that a DeviceClass may serve, is held by our gate, or
    is a member of a group, which is tried as one."""
    spec = pod["spec"]
    return (
        bool(spec.get("resourceClaims") or spec.get("schedulingGroup"))
        or has_our_gate(pod)
        or bool(limit_names(pod, _may_be_class))
    )


def _may_be_class(limit: str) -> bool:
    return limit == RESOURCE_WHOLE or limit.startswith(CLASS_LIMIT_PREFIX)


def template_names(pod: Pod) -> frozenset[str]:
    """Names of the ResourceClaimTemplates that the pod refers to, and that may be ours."""
    references = pod["spec"].get("resourceClaims") or ()
    names = (reference.get("resourceClaimTemplateName") or "" for reference in references)
    return frozenset(name for name in names if name.startswith(LIMITS_TEMPLATE_PREFIX))


def limited_classes(pod: Pod) -> list[str]:
    """Names of the DeviceClasses that containers request by a limit."""
    limits = limit_names(pod, lambda name: name.startswith(CLASS_LIMIT_PREFIX))
    return sorted(name.removeprefix(CLASS_LIMIT_PREFIX) for name in limits)


def asks_for_class(pod: Pod, mapped: Collection[object]) -> bool:
    """Whether kube-scheduler makes a claim for what containers ask of a DeviceClass by a limit;
    `mapped` are the names of resources that DeviceClasses serve."""
    return bool(
        limit_names(pod, lambda name: name in mapped or name.startswith(CLASS_LIMIT_PREFIX))
    )


def waits_for_template(pod: Pod, template: str) -> bool:
    """Whether a claim of the pod is yet to be made from the template of that name."""
    made = claim_names(pod)
    return not is_deleting(pod) and any(
        reference.get("resourceClaimTemplateName") == template
        and made.get(reference["name"], "") is None
        for reference in pod["spec"].get("resourceClaims") or ()
    )


def is_done(pod: Pod) -> bool:
    """Whether the pod has ended and will use nothing any more."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def is_deleting(pod: Pod) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def gates(pod: Pod) -> frozenset[str]:
    """Names of the pod's scheduling gates."""
    return frozenset(gate["name"] for gate in pod["spec"].get("schedulingGates") or ())


def has_our_gate(pod: Pod) -> bool:
    return has_gate(pod)


def is_held_by_others(pod: Pod) -> bool:
    """Whether a gate that is not ours holds the pod: nobody knows for how long."""
    return bool(gates(pod) - {SCHEDULING_GATE})


def is_unschedulable(pod: Pod) -> bool:
    """Whether kube-scheduler found no node for the pod."""
    return verdict(pod) is not None


def verdict(pod: Pod) -> str | None:
    """kube-scheduler's message that it found no node, such as ``0/3 nodes are available: …``; None
    where the pod has none."""
    return _not_scheduled(pod, "Unschedulable")


def failed_reservation(pod: Pod) -> str:
    """kube-scheduler's message that the API server refused its reservation of a claim that was
    allocated before Kubernetes 1.36: it adds ``allocationTimestamp``, which older servers dropped,
    and an allocation never changes (seen on 1.36.3). Empty where the pod has none."""
    message = _not_scheduled(pod, "SchedulerError") or ""
    return message if "AllocationTimestamp" in message and "is immutable" in message else ""


def not_scheduled(pod: Pod) -> Condition:
    """Reason and message of the pod's condition PodScheduled if it is false. None of a pod that no
    scheduler has tried, and that never had a gate: for a gate the API server sets the condition
    (1.37.2, `applySchedulingGatedCondition`)."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
            return str(condition.get("reason", "")), str(condition.get("message", ""))
    return None


def why_unbound(pod: Pod) -> str:
    """Why a pod that has all its devices is not bound, as far as its status says."""
    scheduler, condition = scheduler_name(pod), not_scheduled(pod)
    if node := nominated_node(pod):
        return f"{scheduler} chose node {node} and did not bind the pod to it"
    if held_by := gates(pod):
        return f"a scheduling gate holds it: {', '.join(sorted(held_by))}"
    # The condition of a gate stays after the gate, until the first try (kube-scheduler 1.37.1).
    if condition is None or condition[0] == "SchedulingGated":
        return f"no scheduler has tried the pod; its schedulerName is {scheduler}"
    return f"{scheduler} says {condition[0]}: {condition[1]}"


def _not_scheduled(pod: Pod, reason: str) -> str | None:
    """The message of the pod's condition PodScheduled if it is false for that reason."""
    condition = not_scheduled(pod)
    return condition[1] if condition is not None and condition[0] == reason else None


def missed_preemption(verdict: str) -> bool:
    """Whether it was for want of an allocation alone that kube-scheduler did not end other pods
    for this one, such as ``0/2 nodes are available: 2 Insufficient cpu. … preemption: 0/2 nodes are
    available: 2 cannot allocate all claims.`` An allocation does not make it try such a pod anew,
    because what it first ran into on every node was something else (seen on 1.36.3)."""
    first, _, preemption = verdict.partition(" preemption: ")
    return _UNALLOCATED in preemption and _UNALLOCATED not in first


def is_about_allocation(verdict: str) -> bool:
    """Whether kube-scheduler has seen an allocation of the pod: on other nodes than that of the
    allocation it says so, and if a claim of ours lacks an allocation, it comes to an end before."""
    return _UNAVAILABLE in verdict


def lacks_allocation(verdict: str) -> bool:
    """Whether kube-scheduler has seen a claim of the pod without an allocation: it has tried to
    allocate, and then says of no node that an allocation is elsewhere."""
    return _UNALLOCATED in verdict and _UNAVAILABLE not in verdict


def is_aside(pod: Pod) -> bool:
    """Whether nothing is to be allocated for the pod: it ends, or others hold it back."""
    return is_done(pod) or is_deleting(pod) or is_held_by_others(pod)


def age(pod: Pod, now: datetime) -> float:
    """In seconds. The API server stores whole seconds, by its own clock."""
    created = pod["metadata"].get("creationTimestamp")
    return max(0.0, (now - datetime.fromisoformat(created)).total_seconds()) if created else 0.0


def priority(pod: Pod) -> int:
    return int(pod["spec"].get("priority") or 0)


def urgency(pod: Pod) -> tuple[int, str]:
    """Sorts pods: the higher priority first, then the older one."""
    return -priority(pod), str(pod["metadata"].get("creationTimestamp", ""))


def owns(pod: Pod, claim: Mapping[str, Any]) -> bool:
    """Whether a claim made from a template was made for this very pod."""
    owner = owning_pod(claim)
    return owner is None or owner == uid_of(pod)


def owning_pod(claim: Mapping[str, Any]) -> str | None:
    """UID of the pod that a claim was made for from a template; None for any other claim."""
    owner = _controller(claim)
    return str(owner["uid"]) if owner is not None and owner.get("kind") == "Pod" else None


def workload(pod: Pod) -> str | None:
    """UID of what made the pod: a ReplicaSet, StatefulSet, Job or the like; None for a pod that
    somebody made by hand."""
    owner = _controller(pod)
    return str(owner["uid"]) if owner is not None else None


def _controller(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The one owner that has ``controller: true`` (meta/v1, OwnerReference)."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)
