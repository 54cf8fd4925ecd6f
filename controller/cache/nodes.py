"""Whether a pod may run on a node, by the fields of both. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from dra_driver.kube.api import ServerVersion
from dra_driver.kube.preflight import OLDEST
from dra_driver.model.errors import InvalidValue

HOSTNAME: Final = "kubernetes.io/hostname"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OLDEST: Final = ".".join(map(str, OLDEST))
_MOST_VERSIONS: Final = 256  # a node may write any text as its version
_INT64: Final = range(-(2**63), 2**63)
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+")
_MOST_CHARACTERS: Final = 63  # of a label's value; Python reads no number of thousands of digits
_PREVENTING = frozenset({"NoSchedule", "NoExecute"})


def filter_reason(pod: Mapping[str, Any], node: Node) -> str | None:
    """Why the pod cannot run on the node, in text that many nodes have in common; None if it
    can."""
    spec = pod["spec"]
    if not _is_ready(node):
        return "not ready"
    if not _serves_claims(_kubelet(node)):
        return f"with a kubelet before {_OLDEST}, which serves no claims"
    if label := _missing_label(spec.get("nodeSelector") or {}, node):
        return f"excluded by the pod's nodeSelector {label}"
    if not _is_required(spec, node):
        return "excluded by the pod's node affinity"
    taints = _taints(node)
    if (node.get("spec") or {}).get("unschedulable"):
        taints = [*taints, {"key": _UNSCHEDULABLE, "effect": "NoSchedule"}]
    taint = _untolerated(spec.get("tolerations") or (), taints)
    return f"tainted {taint}" if taint else None


def is_selected(pod: Mapping[str, Any], node: Node) -> bool:
    """Whether the pod's nodeSelector and its required node affinity allow the node."""
    spec = pod["spec"]
    return not _missing_label(spec.get("nodeSelector") or {}, node) and _is_required(spec, node)


def is_tolerated(pod: Mapping[str, Any], node: Node) -> bool:
    """Whether the pod tolerates the taints of the node; that it is unschedulable does not count."""
    return _untolerated(pod["spec"].get("tolerations") or (), _taints(node)) is None


def demand(pod: Mapping[str, Any]) -> list[Any]:
    """All that `filter_reason` reads of the pod."""
    spec = pod["spec"]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    return [spec.get("nodeSelector"), affinity, spec.get("tolerations")]


def digest(demand: object) -> bytes:
    """Equal for equal demands on nodes, as JSON has them. Their text may be of megabytes."""
    return sha256(json.dumps(demand, sort_keys=True).encode()).digest()


def relevant(node: Node) -> tuple[Any, ...]:
    """All that `filter_reason` and `selector_matches` read: a heartbeat changes nothing of it."""
    spec = node.get("spec") or {}
    return (
        node["metadata"].get("labels"),
        spec.get("taints"),
        spec.get("unschedulable"),
        _is_ready(node),
        _kubelet(node),
    )


def check(node: Node) -> None:
    """Raises where `filter_reason` could not read the node: it would fail for every pod."""
    relevant(node)
    labels_of(node).items()
    for taint in _taints(node):
        assert {"key", "effect"} <= taint.keys()


def _is_ready(node: Node) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(
        (condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions
    )


def _kubelet(node: Node) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", ""))


@lru_cache(_MOST_VERSIONS)
def _serves_claims(kubelet: str) -> bool:
    """Whether a kubelet of this version prepares claims. True if the version cannot be read."""
    try:
        version = ServerVersion.of_git(kubelet)
    except InvalidValue:
        return True
    return (version.major, version.minor) >= OLDEST


def _missing_label(wanted: Mapping[str, str], node: Node) -> str:
    """The first of these that the node does not have, as ``key=value``; empty if it has all."""
    labels = labels_of(node)
    missing = (f"{key}={value}" for key, value in wanted.items() if labels.get(key) != value)
    return next(missing, "")


def _is_required(spec: Mapping[str, Any], node: Node) -> bool:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return required is None or selector_matches(required, node)


def _taints(node: Node) -> Sequence[Mapping[str, Any]]:
    return (node.get("spec") or {}).get("taints") or ()


def _untolerated(
    tolerations: Iterable[Mapping[str, Any]], taints: Iterable[Mapping[str, Any]]
) -> str | None:
    given = tuple(tolerations)
    for taint in taints:
        if taint["effect"] in _PREVENTING and not any(
            _tolerates(toleration, taint) for toleration in given
        ):
            return str(taint["key"])
    return None


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


Node = Mapping[str, Any]


def selector_matches(selector: Mapping[str, Any], node: Node) -> bool:
    """Whether a NodeSelector (core/v1) allows the node: any of its terms, all of a term."""
    return any(_term_matches(term, node) for term in selector.get("nodeSelectorTerms") or ())


def selected_name(selector: Mapping[str, Any] | None) -> str | None:
    """The one node that a selector as allocators write it names; None for any other selector."""
    match (selector or {}).get("nodeSelectorTerms"):
        case [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]:
            return str(name)
    return None


def only_on(name: str) -> dict[str, Any]:
    """A selector as allocators write it, which names the one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def is_tied(spec: Mapping[str, Any]) -> bool:
    """Whether a pod with that spec may run on one node only, as a DaemonSet's."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return selected_name(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")) is not None


def requirement_holds(requirement: Mapping[str, Any], value: str | None) -> bool:
    """Whether a NodeSelectorRequirement (core/v1) allows this value of what it names; None where
    the node has none."""
    return operator_holds(requirement["operator"], requirement.get("values") or (), value)


def operator_holds(operator: str, values: Collection[str], value: str | None) -> bool:
    """The same, for a requirement of selectors of any kind."""
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _ordered(operator, value, values)
    return False


def name_of(node: Node) -> str:
    return str(node["metadata"]["name"])


def labels_of(node: Node) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _term_matches(term: Mapping[str, Any], node: Node) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:  # an empty term matches nothing, core/v1 NodeSelectorTerm
        return False
    by_field = {"metadata.name": name_of(node)}
    return _all_hold(expressions, labels_of(node)) and _all_hold(fields, by_field)


def _all_hold(requirements: Iterable[Mapping[str, Any]], values: Mapping[str, str]) -> bool:
    return all(
        requirement_holds(requirement, values.get(requirement["key"]))
        for requirement in requirements
    )


def _ordered(operator: str, value: str | None, given: Iterable[str]) -> bool:
    left, right = _integer(value or ""), _integer(next(iter(given)))
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _integer(text: str) -> int | None:
    """As kube-scheduler reads it (k8s.io/apimachinery, pkg/labels/selector.go,
    Requirement.Matches: strconv.ParseInt). None if it is no decimal number of 64 bits."""
    if len(text) > _MOST_CHARACTERS or not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if number in _INT64 else None
