"""Pods that hold devices and are bound to no node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from controller.cache import pods
from controller.cache.keys import full_name
from dra_driver.model.claims.claim import Object, allocation
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.cluster.claims import claims_of
from kubectl_gcu.cluster.pod_groups import progress
from kubectl_gcu.scheduling.held import HeldDevices, held_devices
from kubectl_gcu.scheduling.unbound import UnboundReason, why_unbound

HELD_UNBOUND: Final = Check(
    "held-unbound", "a pod has held devices for more than a minute, and is bound to no node"
)
_LONG: Final = 60  # seconds; nearly all pods are bound within two
_MOST_PODS: Final = 20


def unbound(found: Installation, now: datetime) -> Iterator[Finding]:
    """One finding a pod, those that have held devices for the longest time first. A pod is left out
    where no server has noted when its claims were allocated."""
    claims = {full_name(each): each for each in found.state.claims}
    held = [
        (holds.seconds, full_name(pod), pod, holds)
        for pod in found.state.pods
        if (holds := held_devices(pod, filter(None, claims_of(pod, claims).values()), now))
        and (holds.seconds or 0) > _LONG
    ]
    held.sort(key=lambda each: (-(each[0] or 0), each[1]))
    binding = {pods.scheduler_name(each) for each in found.state.pods if pods.node_name(each)}
    for _, _, pod, holds in held[:_MOST_PODS]:
        yield _finding(pod, holds, _why(found, pod, claims, binding))
    if len(held) > _MOST_PODS:
        yield HELD_UNBOUND.finding(
            "pods",
            f"{len(held) - _MOST_PODS} more hold devices and are not bound",
            "kubectl gcu explain pod NAME says why.",
        )


def _why(
    found: Installation, pod: Object, claims: Mapping[str, Object], binding: set[str]
) -> UnboundReason:
    lacking = sorted(
        reference
        for reference, claim in claims_of(pod, claims).items()
        if allocation(claim or {}) is None
    )
    if lacking and not pods.is_held_by_others(pod):
        return UnboundReason("the allocator", f"its claim {lacking[0]} has no devices yet")
    name = pods.group_name(pod)
    group = progress(name, found.state.pods, claims) if name else None
    binds_others = pods.scheduler_name(pod) in binding
    reason = why_unbound(pod, group=group, binds_others=binds_others)
    more = f"; {group}" if group else ""
    return UnboundReason(reason.who, f"{reason.why.rstrip('.')}{more}", reason.remedy)


def _finding(pod: Object, holds: HeldDevices, reason: UnboundReason) -> Finding:
    metadata = pod["metadata"]
    explain = f"kubectl gcu explain pod {metadata['name']} --namespace {metadata['namespace']}"
    remedy = f"{reason.remedy[:1].upper()}{reason.remedy[1:]}" or f"{explain} says what comes next"
    count = "1 device" if len(holds.devices) == 1 else f"{len(holds.devices)} devices"
    return HELD_UNBOUND.finding(
        f"pod {full_name(pod)}",
        f"it has held {count} of node {holds.node}{holds.time} and is not bound: {reason.why}",
        f"{remedy}.",
    )
