"""Who acts next for a pod without devices where kube-scheduler allocates, and the controller names
nodes. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from controller.cache import pods
from dra_driver.model.claims.claim import Object
from kubectl_gcu.cluster.pod_status import is_untried, scheduled_condition
from kubectl_gcu.scheduling.steps import Step
from kubectl_gcu.scheduling.unbound import scheduler_title

_UNDECIDED: Final = "the scheduling gate holds it back, and the controller has not decided about it"


def with_scheduler(pod: Object, step: Step, said: str) -> Step:
    """The step of a pod whose claims a scheduler allocates. `said` is the controller's last event
    about why the pod waits; empty without one."""
    who, node = scheduler_title(pod), pods.nominated_node(pod)
    if pods.has_our_gate(pod):
        controller = "the controller, which names a node for it and lifts the scheduling gate"
        return replace(step, who=controller, text=said or _UNDECIDED)
    if node and is_untried(pod):
        text = f"node {node} is named for it (status.nominatedNodeName), and {who} tries that first"
        return replace(step, who=who, text=text)
    if node:
        # kube-scheduler itself names the node where it ends others for the pod.
        text = f"node {node} is named for it, and {who} has not taken it"
        return replace(step, who=who, text=f"{text}: {scheduled_condition(pod)['message']}")
    return replace(step, who=f"the allocator, which is {who}")
