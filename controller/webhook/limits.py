"""Turns a new pod's limits for GCUs into a reference to a claim template (ADR 15). Pure.

From Kubernetes 1.36 on the chart's MutatingAdmissionPolicy does the same in CEL
(policy-legacy-resources.yaml). What cannot be translated is left in the pod, and the
ValidatingAdmissionPolicy of that file refuses it with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from controller.webhook.containers import (
    MEASURES,
    Container,
    asked_limits,
    asking_containers,
    isolation_of,
)
from controller.webhook.review import Operation
from dra_driver.config.device_config import ISOLATION
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    CLASS_DRS,
    CLASS_LIMIT_PREFIX,
    CLASS_PART,
    CLASS_SHARED,
    CLASS_WHOLE,
    LIMITS_TEMPLATE_PREFIX,
    RESOURCE_CORE,
    RESOURCE_DRS,
    RESOURCE_MEMORY,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)

CLAIM: Final = "enflame-limits"
"""The name of the claim in the pod."""

_COUNTED: Final[Mapping[str, str]] = MappingProxyType(
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
"""By limit, the name of the claim template without the amount. A pod has one of these limits."""

_UNITS: Final = MappingProxyType({RESOURCE_MEMORY: "m", RESOURCE_CORE: "c"})
"""By limit, the unit behind the amount in the template's name."""

LIMITS: Final = frozenset(_COUNTED.keys() | MEASURES)
"""The limits that are translated."""

NODE_LABEL: Final = "enflame.com/gcushare"
"""The vendor's. No node has it but with the vendor's device plugin."""

_PARTS: Final = frozenset({RESOURCE_SHARED, RESOURCE_DRS, *MEASURES})
"""These limits say what a device is to have. All others count devices."""
_LONGEST_NAME: Final = 253  # of an object
_MOST_IN_CLAIM: Final = 32  # resource.k8s.io/v1, DeviceRequestsMaxSize, AllocationResultsMaxSize


@dataclass(frozen=True, slots=True)
class LimitRules:
    """Pods that name one of `scheduler_names` are given to `scheduler_name`.
    `drop_node_selector` removes the vendor's node label from pods whose limits become a claim."""

    scheduler_names: frozenset[str]
    scheduler_name: str
    drop_node_selector: bool


def translate_limits(pod: Object, rules: LimitRules) -> list[Operation]:
    """The patch for a new pod; nothing where its limits are translated already."""
    patch = list(_claims_for_limits(pod, rules))
    if pod["spec"].get("schedulerName") in rules.scheduler_names:
        patch.append(
            {"op": "replace", "path": "/spec/schedulerName", "value": rules.scheduler_name}
        )
    return patch


def _claims_for_limits(pod: Object, rules: LimitRules) -> Iterator[Operation]:
    spec = pod["spec"]
    asked = asked_limits(spec, LIMITS)
    template = _template(pod, asked)
    if template is None:
        return
    asking = list(asking_containers(spec, asked))
    users = _users(asking)
    amounts = [_text(each) for each in users]
    claims = list(spec.get("resourceClaims") or ())
    name = "-".join((template, *amounts))
    if not _fits(asked, amounts) or len(name) > _LONGEST_NAME:
        return
    if any(each["name"] == CLAIM for each in claims):
        return
    for each in asking:
        user = each if each in users else _heir(each, users)
        yield _resources(each, asked, f"gcu-{users.index(user)}")
    claims.append({"name": CLAIM, "resourceClaimTemplateName": name})
    yield {"op": "add", "path": "/spec/resourceClaims", "value": claims}
    if rules.drop_node_selector and (spec.get("nodeSelector") or {}).get(NODE_LABEL) == "true":
        yield {"op": "remove", "path": f"/spec/nodeSelector/{NODE_LABEL.replace('/', '~1')}"}


def _template(pod: Object, asked: AbstractSet[str]) -> str | None:
    """The template's name without amounts; None where these limits, or the pod's isolation, have
    none."""
    if len(asked) == 1 and not asked <= MEASURES:
        return _COUNTED[next(iter(asked))]
    isolation = isolation_of(pod)
    if asked and asked <= MEASURES and isolation in ISOLATION:
        return f"{LIMITS_TEMPLATE_PREFIX}{isolation}"
    return None


def _users(asking: Sequence[Container]) -> list[Container]:
    """The containers that have a request of their own. An init container that ends hands on what it
    uses, as the kubelet does, to a later container of the same amount; of several without such a
    container, the first one has a request for all of them."""
    users = [each for each in asking if not each.ends]
    for each in asking:
        if each.ends and not any(_inherits(each, other) for other in users):
            users.append(each)
    return users


def _heir(container: Container, users: Sequence[Container]) -> Container:
    return next(each for each in users if _inherits(container, each))


def _inherits(container: Container, other: Container) -> bool:
    return other.amounts == container.amounts and (other.ends or other.at > container.at)


def _text(container: Container) -> str:
    """The amount as in the template's name; empty for what no template has."""
    ordered = sorted(container.amounts.items(), reverse=True)  # memory, then core
    return "".join(f"{amount}{_UNITS.get(name, '')}" for name, amount in ordered)


def _fits(asked: AbstractSet[str], amounts: Sequence[str]) -> bool:
    """Whether a ResourceClaim can hold it."""
    if len(amounts) > _MOST_IN_CLAIM or not all(amounts):
        return False
    return asked <= _PARTS or sum(map(int, amounts)) <= _MOST_IN_CLAIM


def _resources(container: Container, asked: AbstractSet[str], request: str) -> Operation:
    resources = container.resources_without(asked)
    reference = {"name": CLAIM, "request": request}
    resources["claims"] = [*(resources.get("claims") or ()), reference]
    return {"op": "replace", "path": f"{container.path}/resources", "value": resources}
