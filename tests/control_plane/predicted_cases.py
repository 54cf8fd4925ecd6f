"""Random clusters, and pods that look for a node there, for what kube-scheduler's filters read."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.model.claims.claim import Object

RDMA: Final = "example.com/rdma"
SERVED: Final = "example.com/served"
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
_NAMESPACES: Final = ("one", "two", "three")
_KEYS: Final = ("app", "tier")
_VALUES: Final = ("x", "y")
_TAINT: Final = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
_WAITING: Final = 10


@dataclass(frozen=True, slots=True)
class Case:
    """All as the API server has them; `waiting` pods are on no node."""

    nodes: list[Object]
    pods: list[Object]
    namespaces: list[Object]
    classes: list[Object]
    waiting: list[Object]


def case(seed: int) -> Case:
    """The one of that seed."""
    draw = random.Random(seed)
    nodes = [_node(draw, f"n{number}") for number in range(draw.randint(1, 10))]
    spread = draw.random()  # how many pods have constraints
    pods = [
        _assigned(draw, f"p{number}", spread / 2, nodes) for number in range(draw.randint(0, 40))
    ]
    _have_each_port_once(pods)
    waiting = [_pod(draw, f"w{number}", spread) for number in range(_WAITING)]
    namespaces = [
        {"metadata": {"name": name, "labels": {"team": draw.choice(_VALUES)}}}
        for name in _NAMESPACES
    ]
    return Case(nodes, pods, namespaces, _classes(draw), waiting)


def _assigned(draw: random.Random, name: str, constrained: float, nodes: list[Object]) -> Object:
    """A pod on one of the nodes."""
    found = _pod(draw, name, constrained)
    found["spec"]["nodeName"] = draw.choice(nodes)["metadata"]["name"]
    if draw.random() < 0.1:
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if draw.random() < 0.2:
        found["status"] = _resized(draw, found)
    return found


def _have_each_port_once(pods: list[Object]) -> None:
    """Of two pods with one host port kube-scheduler forgets both when one ends; it never binds the
    second one."""
    taken = set[tuple[str, int, str]]()
    for pod in pods:
        ports = {
            (pod["spec"]["nodeName"], port["hostPort"], port["protocol"])
            for kind in ("containers", "initContainers")
            for container in pod["spec"].get(kind) or ()
            for port in container.get("ports") or ()
        }
        if not taken.isdisjoint(ports):
            for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
                container.pop("ports", None)
        taken |= ports


def _classes(draw: random.Random) -> list[Object]:
    spec = {"extendedResourceName": SERVED} if draw.random() < 0.5 else {}
    return [{"metadata": {"name": "served"}, "spec": spec}]


def _node(draw: random.Random, name: str) -> Object:
    labels = {HOSTNAME: name} if draw.random() < 0.95 else {}
    if draw.random() < 0.9:
        labels[ZONE] = draw.choice("abc")
    allocatable = {
        "cpu": draw.choice(("4", "7500m", "16")),
        "memory": draw.choice(("8Gi", "16Gi")),
        "ephemeral-storage": draw.choice(("10Gi", "20Gi")),
        "pods": draw.choice(("3", "10", "110")),
    }
    for resource in (RDMA, SERVED, "hugepages-2Mi"):
        if draw.random() < 0.5:
            allocatable[resource] = str(draw.randrange(5))
    spec = {"taints": [_TAINT]} if draw.random() < 0.2 else {}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(draw: random.Random, name: str, constrained: float) -> Object:
    """`constrained` is how likely each kind of constraint is."""
    metadata = {
        "name": name,
        "namespace": draw.choice(_NAMESPACES),
        "uid": f"uid-{name}",
        "labels": {key: draw.choice(_VALUES) for key in _KEYS if draw.random() < 0.8},
    }
    spec: Object = {
        "containers": [_container(draw, f"c{number}") for number in range(draw.randint(1, 2))],
        "priority": draw.choice((0, 0, 0, 10, -5)),
        "preemptionPolicy": draw.choice(("PreemptLowerPriority",) * 4 + ("Never",)),
        "affinity": _affinity(draw, constrained),
    }
    for field, likely, make in (
        ("initContainers", 0.3, _init_containers),
        ("overhead", 0.1, lambda _: {"cpu": "250m", "memory": "64Mi"}),
        ("resources", 0.1, lambda draw: {"requests": {"cpu": draw.choice(("1", "3"))}}),
        ("nodeSelector", 0.2, lambda draw: {ZONE: draw.choice("abc")}),
        ("tolerations", 0.3, lambda _: [{"key": "dedicated", "operator": "Exists"}]),
        ("topologySpreadConstraints", constrained, _spreads),
    ):
        if draw.random() < likely:
            spec[field] = make(draw)
    return {"metadata": metadata, "spec": spec, "status": {}}


def _init_containers(draw: random.Random) -> list[Object]:
    return [
        _container(draw, f"i{number}") | draw.choice(({}, {"restartPolicy": "Always"}))
        for number in range(draw.randint(1, 3))
    ]


def _affinity(draw: random.Random, constrained: float) -> Object:
    found: Object = {}
    for kind, likely in (("podAffinity", constrained / 2), ("podAntiAffinity", constrained)):
        if draw.random() < likely:
            terms = [_term(draw) for _ in range(draw.randint(1, 2))]
            found[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return found


def _spreads(draw: random.Random) -> list[Object]:
    return [_spread(draw) for _ in range(draw.randint(1, 2))]


def _container(draw: random.Random, name: str) -> Object:
    asked: Object = {}
    for resource, amounts in (
        ("cpu", ("100m", "1", "2500m")),
        ("memory", ("128Mi", "1Gi", "0")),
        ("ephemeral-storage", ("1Gi",)),
        ("hugepages-2Mi", ("2Mi", "1")),
        (RDMA, ("1", "2")),
        (SERVED, ("1",)),
    ):
        if draw.random() < (0.6 if resource in {"cpu", "memory"} else 0.1):
            asked[resource] = draw.choice(amounts)
    found: Object = {"name": name, "resources": {"requests": asked}}
    if draw.random() < 0.2:
        found["ports"] = [
            {
                "containerPort": 80,
                "hostPort": draw.choice((0, 80, 81)),
                "protocol": draw.choice(("TCP", "UDP")),
                "hostIP": draw.choice(("", "10.0.0.1", "10.0.0.2")),
            }
        ]
    return found


def _resized(draw: random.Random, pod: Object) -> Object:
    """The status of a pod whose containers have other resources than they ask for."""
    status: Object = {}
    for kind, statuses in (
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
    ):
        status[statuses] = [
            {"name": each["name"]}
            | draw.choice(({}, {"allocatedResources": {"cpu": draw.choice(("1", "3"))}}))
            | draw.choice(({}, {"resources": {"requests": {"cpu": draw.choice(("2", "4"))}}}))
            for each in pod["spec"].get(kind) or ()
        ]
    if draw.random() < 0.3:
        status["resources"] = {"requests": {"cpu": "2"}}
        status["allocatedResources"] = {"cpu": draw.choice(("1", "3"))}
    if draw.random() < 0.3:
        reason = draw.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return status


def _selector(draw: random.Random) -> Object | None:
    kind = draw.random()
    if kind < 0.05:
        return None
    if kind < 0.1:
        return {}
    if kind < 0.6:
        return {"matchLabels": {draw.choice(_KEYS): draw.choice(_VALUES)}}
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    values = [draw.choice(_VALUES)] if operator in {"In", "NotIn"} else []
    expression = {"key": draw.choice(_KEYS), "operator": operator, "values": values}
    return {"matchExpressions": [expression]}


def _key(draw: random.Random) -> str:
    return draw.choice((ZONE, ZONE, HOSTNAME, HOSTNAME, "rack"))


def _term(draw: random.Random) -> Object:
    term: dict[str, Any] = {"topologyKey": _key(draw)}
    if (selector := _selector(draw)) is not None:
        term["labelSelector"] = selector
    if draw.random() < 0.2:
        term["namespaces"] = draw.sample(_NAMESPACES, draw.randint(1, 2))
    if draw.random() < 0.2:
        term["namespaceSelector"] = draw.choice(({}, {"matchLabels": {"team": "x"}}))
    return term


def _spread(draw: random.Random) -> Object:
    constraint: dict[str, Any] = {
        "topologyKey": _key(draw),
        "maxSkew": draw.randint(1, 3),
        "whenUnsatisfiable": draw.choice(("DoNotSchedule",) * 4 + ("ScheduleAnyway",)),
    }
    if (selector := _selector(draw)) is not None:
        constraint["labelSelector"] = selector
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw.random() < 0.3:
        constraint["minDomains"] = draw.randint(1, 5)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw.random() < 0.4:
            constraint[policy] = draw.choice(("Honor", "Ignore"))
    return constraint
