"""Turns a new pod's limits for GCUs into a reference to a claim template (docs/adr/0015). Pure.

From Kubernetes 1.36 on the chart's MutatingAdmissionPolicy does the same in CEL
(policy-legacy-resources.yaml). What cannot be translated is left in the pod, and the
ValidatingAdmissionPolicy of that file refuses it with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from controller.webhook.review import Operation
from dra_driver.asks.claims import CLAIM, LimitsClaim, claim_of
from dra_driver.asks.limits import Container
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused

NODE_LABEL: Final = "enflame.com/gcushare"
"""The vendor's. No node has it but with the vendor's device plugin."""


@dataclass(frozen=True, slots=True)
class LimitRules:
    """Pods that name one of `scheduler_names` are given to `scheduler_name`.
    `drop_node_selector` removes the vendor's node label from pods whose limits become a claim."""

    scheduler_names: frozenset[str]
    scheduler_name: str
    drop_node_selector: bool


def translate_limits(pod: Object, rules: LimitRules) -> list[Operation]:
    """The patch for a new pod; nothing where its limits are translated already, or are 0."""
    patch = list(_claims_for_limits(pod, rules))
    if pod["spec"].get("schedulerName") in rules.scheduler_names:
        patch.append(
            {"op": "replace", "path": "/spec/schedulerName", "value": rules.scheduler_name}
        )
    return patch


def resources_without(pod: Object, container: Container, limits: Collection[str]) -> Object:
    """A copy of the container's resources without these limits, and without their requests."""
    resources: Object = dict(pod["spec"][container.field][container.index]["resources"])
    for field in ("limits", "requests"):
        if listed := resources.get(field):
            resources[field] = {name: listed[name] for name in listed if name not in limits}
    return resources


def resources_by_claim(pod: Object, claim: LimitsClaim) -> Iterator[tuple[Container, Object]]:
    """The resources of each container that asks for GCUs, with its request of the claim in place
    of its limits."""
    for container, request in zip(claim.ask.containers, claim.requests, strict=True):
        resources = resources_without(pod, container, claim.ask.limits)
        reference = {"name": CLAIM, "request": request}
        resources["claims"] = [*(resources.get("claims") or ()), reference]
        yield container, resources


def _claims_for_limits(pod: Object, rules: LimitRules) -> Iterator[Operation]:
    try:
        claim = claim_of(pod)
    except Refused:
        return
    if claim is None:
        return
    for container, resources in resources_by_claim(pod, claim):
        yield {"op": "replace", "path": f"{container.path}/resources", "value": resources}
    claims = [*(pod["spec"].get("resourceClaims") or ()), claim.reference]
    yield {"op": "add", "path": "/spec/resourceClaims", "value": claims}
    selector = pod["spec"].get("nodeSelector") or {}
    if rules.drop_node_selector and selector.get(NODE_LABEL) == "true":
        yield {"op": "remove", "path": f"/spec/nodeSelector/{NODE_LABEL.replace('/', '~1')}"}
