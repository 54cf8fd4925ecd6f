"""Whether a pod may run on a node, as far as the two say."""

from __future__ import annotations

import pytest

from controller.cache import nodes
from controller.cache.nodes import selected_name, selector_matches
from dra_driver.model.claims.claim import Object


def node(
    *,
    labels: dict[str, str] | None = None,
    taints: list[Object] | None = None,
    ready: str = "True",
    unschedulable: bool = False,
    kubelet: str = "v1.36.3",
) -> Object:
    return {
        "metadata": {"name": "n", "labels": labels or {"zone": "a", "size": "8"}},
        "spec": {"taints": taints or [], "unschedulable": unschedulable},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "nodeInfo": {"kubeletVersion": kubelet},
        },
    }


def affinity(*expressions: Object, fields: tuple[Object, ...] = ()) -> Object:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    selector = {"nodeSelectorTerms": [term]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    }


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


GPU_TAINT = {"key": "gcu", "value": "yes", "effect": "NoSchedule"}
SOFT = {"key": "gcu", "value": "yes", "effect": "PreferNoSchedule"}
AFFINITY = "excluded by the pod's node affinity"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

CASES: dict[str, tuple[Object, Object, str | None]] = {
    "nothing asked": ({}, node(), None),
    "not ready": ({}, node(ready="False"), "not ready"),
    "unknown": ({}, node(ready="Unknown"), "not ready"),
    "an old kubelet": (
        {},
        node(kubelet="v1.33.9"),
        "with a kubelet before 1.34, which serves no claims",
    ),
    "the oldest kubelet": ({}, node(kubelet="v1.34.0+vendor"), None),
    "a kubelet of no version": ({}, node(kubelet="devel"), None),
    "label": ({"nodeSelector": {"zone": "a"}}, node(), None),
    "other label": (
        {"nodeSelector": {"zone": "b"}},
        node(),
        "excluded by the pod's nodeSelector zone=b",
    ),
    "the first of other labels": (
        {"nodeSelector": {"zone": "a", "use": "", "rack": "r"}},
        node(),
        "excluded by the pod's nodeSelector use=",
    ),
    "In": (affinity(expression("zone", "In", "a", "b")), node(), None),
    "not In": (affinity(expression("zone", "In", "b")), node(), AFFINITY),
    "NotIn": (affinity(expression("zone", "NotIn", "b")), node(), None),
    "NotIn of a missing label": (affinity(expression("rack", "NotIn", "b")), node(), None),
    "Exists": (affinity(expression("zone", "Exists")), node(), None),
    "DoesNotExist": (affinity(expression("zone", "DoesNotExist")), node(), AFFINITY),
    "Gt": (affinity(expression("size", "Gt", "7")), node(), None),
    "Lt": (affinity(expression("size", "Lt", "8")), node(), AFFINITY),
    "Gt of no number": (affinity(expression("zone", "Gt", "7")), node(), AFFINITY),
    "Gt of a signed number": (affinity(expression("size", "Gt", "+7")), node(), None),
    "Gt of a negative number": (affinity(expression("size", "Gt", "-7")), node(), None),
    "Gt of leading zeros": (affinity(expression("size", "Gt", "007")), node(), None),
    "Gt of the least number": (affinity(expression("size", "Gt", str(-(2**63)))), node(), None),
    "Gt of less than that": (
        affinity(expression("size", "Gt", str(-(2**63) - 1))),
        node(),
        AFFINITY,
    ),
    "Lt of the greatest number": (
        affinity(expression("size", "Lt", str(2**63 - 1))),
        node(),
        None,
    ),
    "Lt of more than that": (affinity(expression("size", "Lt", str(2**63))), node(), AFFINITY),
    "Lt of a number with an underscore": (
        affinity(expression("size", "Lt", "1_0")),
        node(),
        AFFINITY,
    ),
    "Gt of a number behind a space": (
        affinity(expression("size", "Gt", " 1")),
        node(),
        AFFINITY,
    ),
    "Gt of other digits than ASCII's": (
        affinity(expression("size", "Gt", "\u0661")),
        node(),
        AFFINITY,
    ),
    "unknown operator": (affinity(expression("zone", "Like", "a")), node(), AFFINITY),
    "all of a term": (
        affinity(expression("zone", "Exists"), expression("rack", "Exists")),
        node(),
        AFFINITY,
    ),
    "field": (affinity(fields=(expression("metadata.name", "In", "n"),)), node(), None),
    "an empty term": (affinity(), node(), AFFINITY),
    "taint": ({}, node(taints=[GPU_TAINT]), "tainted gcu"),
    "soft taint": ({}, node(taints=[SOFT]), None),
    "tolerated by value": (
        {"tolerations": [{"key": "gcu", "value": "yes"}]},
        node(taints=[GPU_TAINT]),
        None,
    ),
    "another value": (
        {"tolerations": [{"key": "gcu", "value": "no"}]},
        node(taints=[GPU_TAINT]),
        "tainted gcu",
    ),
    "another effect": (
        {"tolerations": [{"key": "gcu", "operator": "Exists", "effect": "NoExecute"}]},
        node(taints=[GPU_TAINT]),
        "tainted gcu",
    ),
    "everything tolerated": (
        {"tolerations": [{"operator": "Exists"}]},
        node(taints=[GPU_TAINT], unschedulable=True),
        None,
    ),
    "unschedulable": ({}, node(unschedulable=True), f"tainted {UNSCHEDULABLE}"),
}


@pytest.mark.parametrize(("spec", "given", "why"), CASES.values(), ids=CASES)
def test_misfit(spec: Object, given: Object, why: str | None) -> None:
    assert nodes.filter_reason({"spec": spec}, given) == why


def test_any_term_is_enough() -> None:
    terms = [{"matchExpressions": [expression("zone", "In", zone)]} for zone in ("b", "a")]
    assert selector_matches({"nodeSelectorTerms": terms}, node())


def test_a_heartbeat_changes_nothing() -> None:
    before, after = node(), node()
    after["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
    assert nodes.relevant(before) == nodes.relevant(after)
    assert nodes.relevant(before) != nodes.relevant(node(ready="False"))
    assert nodes.relevant(before) != nodes.relevant(node(kubelet="v1.37.1"))


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        (
            {"nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "In", "n")]}]},
            "n",
        ),
        ({"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", "a")]}]}, None),
        (None, None),
    ],
)
def test_selected_name(selector: Object | None, name: str | None) -> None:
    assert selected_name(selector) == name
