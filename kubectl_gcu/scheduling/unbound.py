"""Why a pod that has its devices is bound to no node: for `explain` and for `doctor`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from controller.cache import pods
from controller.cache.pod_groups import Member
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.cluster.pod_groups import PodGroupProgress
from kubectl_gcu.cluster.pod_status import is_untried, scheduled_condition
from kubectl_gcu.scheduling.refusal import MAKE_ROOM, against_nodes

_LOG: Final = "see whether kube-scheduler runs, and its log"


@dataclass(frozen=True, slots=True)
class UnboundReason:
    """`who` has to act next. `remedy` is what a person can do, where it is known."""

    who: str
    why: str
    remedy: str = ""


def why_unbound(
    pod: Object, *, group: PodGroupProgress | None = None, binds_others: bool = False
) -> UnboundReason:
    """`group` is the pod's PodGroup, where one is known. `binds_others` is whether other pods are
    bound that name the same scheduler."""
    who = scheduler_title(pod)
    if pods.is_held_by_others(pod):
        gates = ", ".join(sorted(pods.gates(pod) - {SCHEDULING_GATE}))
        return UnboundReason("whoever set the scheduling gate", f"it is held back by {gates}")
    if pods.has_our_gate(pod):
        return _gated(group)
    if pods.nominated_node(pod):
        return _nominated(pod, who)
    if not is_untried(pod):
        return _tried(pod, who)
    if group and (reason := _untried_group(group, who)):
        return reason
    return _untried(pod, who, binds_others=binds_others)


def scheduler_title(pod: Object) -> str:
    """The scheduler that the pod names, for people."""
    name = pods.scheduler_name(pod)
    return "kube-scheduler" if name == pods.DEFAULT_SCHEDULER else f"the scheduler {name}"


def _gated(group: PodGroupProgress | None) -> UnboundReason:
    why = "its claims are allocated; the scheduling gate goes next"
    if group and group.group and not group.group.may_be_ungated():
        why = "the scheduling gate goes when enough pods of its PodGroup have their devices"
    return UnboundReason("the controller", why)


def _nominated(pod: Object, who: str) -> UnboundReason:
    """From Kubernetes 1.35 on kube-scheduler writes the field before it binds a pod; before, only
    when it preempts others."""
    why = (
        f"{who} chose node {pods.nominated_node(pod)} for it (status.nominatedNodeName): it binds "
        "the pod there or preempts others for it, or it ended meanwhile"
    )
    said = "" if is_untried(pod) else f"; its last message: {scheduled_condition(pod)['message']}"
    return UnboundReason(who, f"{why}{said}", "wait; if nothing changes for a minute, " + _LOG)


def _tried(pod: Object, who: str) -> UnboundReason:
    condition = scheduled_condition(pod)
    message = str(condition["message"])
    if condition.get("reason") == "SchedulerError":
        remedy = f"correct what the message names; {who} tries the pod again by itself"
        return UnboundReason(who, f"{who} failed to bind it: {message}", remedy)
    return UnboundReason(who, message, MAKE_ROOM if against_nodes(message) else "")


def incomplete_group(progress: PodGroupProgress) -> UnboundReason | None:
    """What a group lacks before kube-scheduler tries it and the controller allocates anything for
    it; None if it lacks nothing, or that is not known."""
    group = progress.group
    if group is None or (lack := group.waits_for()) is None:
        return None
    if not group.exists:
        return UnboundReason("whoever creates the PodGroup", lack)
    if group.counts[Member.HELD]:
        return UnboundReason("whoever set the scheduling gate", lack)
    return UnboundReason(f"whoever creates the pods of PodGroup {group.name}", lack)


def _untried_group(progress: PodGroupProgress, who: str) -> UnboundReason | None:
    if progress.group is not None:
        return incomplete_group(progress)
    why = f"no scheduler has tried it; if PodGroup {progress.name} is a gang, its pods are bound"
    remedy = "see how many pods it needs: minCount in kubectl get podgroup -o yaml"
    return UnboundReason(who, f"{why} together", remedy)


def _untried(pod: Object, who: str, *, binds_others: bool) -> UnboundReason:
    why, name = pods.why_unbound(pod), pods.scheduler_name(pod)
    if name == pods.DEFAULT_SCHEDULER:
        return UnboundReason(who, why, _LOG)
    if binds_others:
        remedy = f"see the log of the scheduler {name}"
        return UnboundReason(who, f"{why}, and other pods of that scheduler are bound", remedy)
    remedy = f"start the scheduler {name}, or create the pod again with the name of one that runs"
    return UnboundReason(who, f"{why}, and perhaps no scheduler of that name is running", remedy)
