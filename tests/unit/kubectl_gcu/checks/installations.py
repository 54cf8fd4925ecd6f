"""A healthy installation on two nodes: cards of `a` are offered, and `b` has the controller."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from controller.cache.claims import MANAGER
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.resources import DEVICE_CLASSES as CLASSES_RESOURCE
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold, NodeCard, render_cards
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.pci import PciAddress
from dra_driver.version import VERSION
from kubectl_gcu.checks import policies, rights
from kubectl_gcu.checks.doctor import findings
from kubectl_gcu.checks.installation import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    POLICIES,
    POLICY_BINDINGS,
    Installation,
)
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.inventory.nodes import inventory
from kubectl_gcu.inventory.views import ServedBy
from tests.unit.controller.allocator.build import CLASSES, allocated, device, pool
from tests.unit.controller.fake_api import written_by

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
READY = {"type": "Ready", "status": "True"}


def part(component: str, node: str, *, version: str = VERSION, **env: str) -> Object:
    """A pod of the driver that is ready."""
    labels = {
        "app.kubernetes.io/name": "gcu-dra-driver",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/version": version,
    }
    name = f"{component}-{node}"
    container = {"name": "main", "env": [{"name": key, "value": env[key]} for key in env]}
    return {
        "metadata": {"namespace": "gcu", "name": name, "uid": name, "labels": labels},
        "spec": {"nodeName": node, "serviceAccountName": component, "containers": [container]},
        "status": {"phase": "Running", "conditions": [READY]},
    }


def pod(name: str, node: str = "a", phase: str = "Running", **spec: Any) -> Object:
    """A user's pod on that node."""
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    found = {"nodeName": node, "containers": [{"name": "main"}]} | spec
    return {"metadata": metadata, "spec": found, "status": {"phase": phase}}


def node(name: str, *, info: Mapping[str, str] | None = None, **allocatable: str) -> Object:
    found = {f"enflame.com/{key}".replace("_", "-"): value for key, value in allocatable.items()}
    status = {"allocatable": {"cpu": "8", **found}, "conditions": [READY], "nodeInfo": info or {}}
    return {"metadata": {"name": name}, "status": status}


def lease(renewed: str = "2026-01-02T11:59:50.000000Z", holder: str = "one") -> Object:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"metadata": {"name": "gcu-dra-controller"}, "spec": spec}


def ours(claim: Object, *users: str) -> Object:
    """The claim as the controller and the agent leave it, reserved for these pods."""
    claim = copy.deepcopy(claim)
    claim["metadata"]["managedFields"] = written_by(MANAGER)
    keys = ("driver", "pool", "device")
    given = claim["status"]["allocation"]["devices"]["results"]
    claim["status"]["devices"] = [{key: each[key] for key in keys} for each in given]
    claim["status"]["reservedFor"] = [
        {"resource": "pods", "name": each, "uid": f"uid-{each}"} for each in users
    ]
    return claim


CLAIM = ours(allocated("one", "a", "whole-0000-01-00-0"), "user")


def event(reason: str, note: str, *, at: str = "2026-01-02T11:30:00Z", **regarding: str) -> Object:
    return {"reason": reason, "note": note, "eventTime": at, "regarding": regarding}


def chart_objects(way: ServedBy) -> dict[Resource, tuple[Object, ...]]:
    """What the chart installs for the whole cluster."""
    programs = ("agent", "controller")
    names = [f"{name}.gcu.enflame.com" for name in policies.NEEDED[way]]
    return {
        CLUSTER_ROLES: tuple(role(each, rights.NEEDED[each, way]) for each in programs),
        CLUSTER_ROLE_BINDINGS: tuple(map(_role_binding, programs)),
        POLICIES: tuple({"metadata": {"name": name}} for name in names),
        POLICY_BINDINGS: tuple(
            {"metadata": {"name": name}, "spec": {"policyName": name}} for name in names
        ),
        CLASSES_RESOURCE: tuple(CLASSES.values()),
    }


def role(name: str, granted: Iterable[rights.Right]) -> Object:
    rules = [
        {"apiGroups": [each.group], "resources": [each.resource], "verbs": [each.verb]}
        for each in sorted(granted)
    ]
    return {"metadata": {"name": name}, "rules": rules}


def _role_binding(name: str) -> Object:
    subject = {"kind": "ServiceAccount", "namespace": "gcu", "name": name}
    return {"metadata": {"name": name}, "subjects": [subject], "roleRef": {"name": name}}


STATE = ClusterState(
    slices=tuple(pool("a", [device("whole", 1), device("shared", 1)])),
    nodes=(node("a", gcu_count="1"), node("b")),
    pods=(part("agent", "a"), part("controller", "b")),
)
HEALTHY = Installation(
    STATE,
    ServerVersion(1, 36, "v1.36.3"),
    leases={"gcu": lease()},
    objects=chart_objects(ServedBy.CLAIMS),
)


def by_limits(*held: Hold) -> Installation:
    """The same without DRA; `held` are slices of its card."""
    served = node("a", gcu_count="1")
    mode = Mode.SHARED if held else None
    card = NodeCard(PciAddress(0, 1, 0, 0), index=0, minor=0, slices=6, mode=mode, held=held)
    served["metadata"]["annotations"] = {ANNOTATION_CARDS: render_cards((card,))}
    return replace(
        HEALTHY,
        state=replace(STATE, slices=(), nodes=(served, node("b"))),
        server=ServerVersion(1, 30, "v1.30.14"),
        objects=chart_objects(ServedBy.LIMITS),
    )


def with_state(of: Installation = HEALTHY, **changed: Any) -> Installation:
    return replace(of, state=replace(of.state, **changed))


def with_pods(*more: Object, of: Installation = HEALTHY) -> Installation:
    return with_state(of, pods=(*of.state.pods, *more))


def with_objects(resource: Resource, *items: Object) -> Installation:
    return replace(HEALTHY, objects={**HEALTHY.objects, resource: items})


def found_in(installation: Installation) -> list[str]:
    """Each finding as ``check: line``."""
    nodes, _ = inventory(installation.state)
    return [f"{each.check}: {each}" for each in findings(installation, nodes, NOW)]
