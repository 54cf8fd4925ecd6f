"""Pods that hold devices and are bound to no node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from controller.cache import pods
from dra_driver.model.claims.claim import Object, allocation, claim_names
from kubectl_gcu.checks.finding import Check, Finding, named
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.cluster.pod_groups import progress
from kubectl_gcu.scheduling.held import HeldDevices, held_devices
from kubectl_gcu.scheduling.unbound import UnboundReason, why_unbound

HELD_UNBOUND: Final = Check(
    "held-unbound", "a pod has held devices for more than a minute, and is bound to no node"
)
_LONG: Final = 60  # seconds; nearly all pods are bound within two
_MOST_PODS: Final = 20

_Claims = Mapping[tuple[str, str], Object]


def unbound(found: Installation, now: datetime) -> Iterator[Finding]:
    """One finding a pod, those that have held devices for the longest time first. A pod is left out
    where no server has noted when its claims were allocated."""
    claims = {
        (str(each["metadata"]["namespace"]), str(each["metadata"]["name"])): each
        for each in found.state.claims
    }
    held = [
        (holds.seconds, named(pod), pod, holds)
        for pod in found.state.pods
        if (holds := held_devices(pod, _claims_of(pod, claims), now))
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


def _claims_of(pod: Object, claims: _Claims) -> list[Object]:
    namespace = str(pod["metadata"]["namespace"])
    its = (claims.get((namespace, name or "")) for name in claim_names(pod).values())
    return [each for each in its if each is not None]


def _why(found: Installation, pod: Object, claims: _Claims, binding: set[str]) -> UnboundReason:
    namespace = str(pod["metadata"]["namespace"])
    lacking = sorted(
        reference
        for reference, name in claim_names(pod).items()
        if allocation(claims.get((namespace, name or ""), {})) is None
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
        f"pod {named(pod)}",
        f"it has held {count} of node {holds.node}{holds.time} and is not bound: {reason.why}",
        f"{remedy}.",
    )
