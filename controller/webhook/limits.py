"""Turns a new pod's limits for GCUs into a reference to a claim template (ADR 15). Pure.

From Kubernetes 1.36 on the chart's MutatingAdmissionPolicy does the same in CEL
(policy-legacy-resources.yaml). What cannot be translated is left in the pod, and the
ValidatingAdmissionPolicy of that file refuses it with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from controller.webhook.review import Operation
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import (
    CLASS_DRS,
    CLASS_LIMIT_PREFIX,
    CLASS_PART,
    CLASS_SHARED,
    CLASS_WHOLE,
    LIMITS_TEMPLATE_PREFIX,
    RESOURCE_DRS,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from dra_driver.model.quantity import parse_quantity

CLAIM: Final = "enflame-limits"
"""The name of the claim in the pod."""

TEMPLATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        RESOURCE_WHOLE: f"{LIMITS_TEMPLATE_PREFIX}gcu",
        RESOURCE_SHARED: f"{LIMITS_TEMPLATE_PREFIX}shared-gcu",
        RESOURCE_DRS: f"{LIMITS_TEMPLATE_PREFIX}drs-gcu",
        f"{CLASS_LIMIT_PREFIX}{CLASS_WHOLE}": f"{LIMITS_TEMPLATE_PREFIX}gcu",
        f"{CLASS_LIMIT_PREFIX}{CLASS_SHARED}": f"{LIMITS_TEMPLATE_PREFIX}shared-gcu-devices",
        f"{CLASS_LIMIT_PREFIX}{CLASS_DRS}": f"{LIMITS_TEMPLATE_PREFIX}drs-gcu-devices",
        f"{CLASS_LIMIT_PREFIX}{CLASS_PART}": f"{LIMITS_TEMPLATE_PREFIX}part-gcu-devices",
    }
)
"""The limits that are translated, and the names of their claim templates without amounts."""

NODE_LABEL: Final = "enflame.com/gcushare"
"""The vendor's. No node has it but with the vendor's device plugin."""

_PARTS: Final = frozenset({RESOURCE_SHARED, RESOURCE_DRS})
"""A limit of 2 is two slices, or an instance of size 2. Any other limit counts devices."""
_MOST: Final = 999
_MOST_IN_CLAIM: Final = 32  # resource.k8s.io/v1, DeviceRequestsMaxSize, AllocationResultsMaxSize


@dataclass(frozen=True, slots=True)
class LimitRules:
    """Pods that name one of `scheduler_names` are given to `scheduler_name`.
    `drop_node_selector` removes the vendor's node label from pods whose limits become a claim."""

    scheduler_names: frozenset[str]
    scheduler_name: str
    drop_node_selector: bool


@dataclass(frozen=True, slots=True)
class _Container:
    """`at` is when it starts, as a number; it `ends` before the next one starts."""

    path: str
    at: int
    ends: bool
    resources: Mapping[str, Any]
    amount: int


def translate_limits(pod: Object, rules: LimitRules) -> list[Operation]:
    """The patch for a new pod; nothing where its limits are translated already."""
    spec = pod["spec"]
    patch = list(_claims_for_limits(spec, rules))
    if spec.get("schedulerName") in rules.scheduler_names:
        patch.append(
            {"op": "replace", "path": "/spec/schedulerName", "value": rules.scheduler_name}
        )
    return patch


def _claims_for_limits(spec: Mapping[str, Any], rules: LimitRules) -> Iterator[Operation]:
    asked = {name for each in _raw_containers(spec) for name in TEMPLATES.keys() & _limits(each)}
    if len(asked) != 1:
        return
    (resource,) = asked
    asking = list(_asking(spec, resource))
    users = _users(asking)
    amounts = [each.amount for each in users]
    claims = list(spec.get("resourceClaims") or ())
    if not _fits(resource, amounts) or any(each["name"] == CLAIM for each in claims):
        return
    for each in asking:
        user = each if each in users else _heir(each, users)
        yield _resources(each, resource, f"gcu-{users.index(user)}")
    template = "-".join((TEMPLATES[resource], *map(str, amounts)))
    claims.append({"name": CLAIM, "resourceClaimTemplateName": template})
    yield {"op": "add", "path": "/spec/resourceClaims", "value": claims}
    if rules.drop_node_selector and (spec.get("nodeSelector") or {}).get(NODE_LABEL) == "true":
        yield {"op": "remove", "path": f"/spec/nodeSelector/{NODE_LABEL.replace('/', '~1')}"}


def _users(asking: Sequence[_Container]) -> list[_Container]:
    """The containers that have a request of their own. An init container that ends hands on what it
    uses, as the kubelet does, to a later container of the same amount; of several without such a
    container, the first one has a request for all of them."""
    users = [each for each in asking if not each.ends]
    for each in asking:
        if each.ends and not any(_inherits(each, other) for other in users):
            users.append(each)
    return users


def _heir(container: _Container, users: Sequence[_Container]) -> _Container:
    return next(each for each in users if _inherits(container, each))


def _inherits(container: _Container, other: _Container) -> bool:
    return other.amount == container.amount and (other.ends or other.at > container.at)


def _asking(spec: Mapping[str, Any], resource: str) -> Iterator[_Container]:
    inits = spec.get("initContainers") or ()
    for i, each in enumerate(spec.get("containers") or ()):
        if resource in _limits(each):
            path = f"/spec/containers/{i}"
            amount = _amount(_limits(each)[resource])
            yield _Container(path, len(inits) + i, False, each["resources"], amount)
    for i, each in enumerate(inits):
        if resource in _limits(each):
            ends = each.get("restartPolicy") != "Always"
            amount = _amount(_limits(each)[resource])
            yield _Container(f"/spec/initContainers/{i}", i, ends, each["resources"], amount)


def _raw_containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _limits(container: Mapping[str, Any]) -> Mapping[str, Any]:
    limits: Mapping[str, Any] = (container.get("resources") or {}).get("limits") or {}
    return limits


def _amount(quantity: object) -> int:
    """0 for what is no whole number."""
    try:
        amount = parse_quantity(str(quantity))
    except InvalidValue:
        return 0
    return int(amount) if amount.denominator == 1 else 0


def _fits(resource: str, amounts: Sequence[int]) -> bool:
    """Whether a ResourceClaim can hold it."""
    if len(amounts) > _MOST_IN_CLAIM or not all(1 <= each <= _MOST for each in amounts):
        return False
    return resource in _PARTS or sum(amounts) <= _MOST_IN_CLAIM


def _resources(container: _Container, resource: str, request: str) -> Operation:
    resources = dict(container.resources)
    for field in ("limits", "requests"):
        if field in resources:
            kept = {name: each for name, each in resources[field].items() if name != resource}
            resources[field] = kept
    reference = {"name": CLAIM, "request": request}
    resources["claims"] = [*(resources.get("claims") or ()), reference]
    return {"op": "replace", "path": f"{container.path}/resources", "value": resources}
