"""What `kubectl gcu doctor` finds: each fault alone, in a cluster without any other."""

from __future__ import annotations

import copy
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from dra_driver.kube.api import Listing, ServerVersion
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES as CLASSES_RESOURCE,
)
from dra_driver.kube.resources import LEASES, NODES, PODS, RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DEVICE_CLASSES
from kubectl_gcu import main
from kubectl_gcu.cluster_state import ClusterState
from kubectl_gcu.doctor import Installation, findings, read_installation
from kubectl_gcu.main import PARTIAL, WRONG, inventory
from tests.unit.controller.allocator.build import (
    CLASSES,
    UNHEALTHY,
    allocated,
    device,
    pool,
)

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
READY = {"type": "Ready", "status": "True"}


def part(component: str, node: str) -> Object:
    """A pod of the driver that is ready."""
    labels = {"app.kubernetes.io/name": "gcu-dra-driver", "app.kubernetes.io/component": component}
    name = f"{component}-{node}"
    return {
        "metadata": {"namespace": "gcu", "name": name, "uid": name, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "conditions": [READY]},
    }


def node(name: str, **allocatable: str) -> Object:
    found = {f"enflame.com/{key}".replace("_", "-"): value for key, value in allocatable.items()}
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", **found}}}


def lease(renewed: str = "2026-01-02T11:59:50.000000Z", holder: str = "one") -> Object:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"metadata": {"name": "gcu-dra-controller"}, "spec": spec}


STATE = ClusterState(
    slices=tuple(pool("a", [device("whole", 1), device("shared", 1)])),
    nodes=(node("a", gcu_count="1"), node("b")),
    pods=(part("agent", "a"), part("controller", "b")),
)
HEALTHY = Installation(STATE, leases={"gcu": lease()})


def found_in(installation: Installation) -> list[str]:
    nodes, _ = inventory(installation.state)
    return [str(each) for each in findings(installation, nodes, NOW)]


def test_nothing_is_wrong() -> None:
    assert found_in(HEALTHY) == []


def with_state(**changed: Any) -> Installation:
    return replace(HEALTHY, state=replace(STATE, **changed))


def unready(pod: Object, reason: str) -> Object:
    waiting = [{"name": "main", "state": {"waiting": {"reason": reason}}}]
    status = {"phase": "Pending", "conditions": [], "containerStatuses": waiting}
    return copy.deepcopy(pod) | {"status": status}


def unbound(pod: Object) -> Object:
    return copy.deepcopy(pod) | {"spec": {"containers": [{"name": "main"}]}}


def twice() -> tuple[Object, Object]:
    four = [
        allocated(name, "a", "shared-0000-01-00-0", consumed={"slices": "4"})
        for name in ("one", "two")
    ]
    return four[0], four[1]


def reserved_for_nobody() -> Object:
    claim = allocated("one", "a", "whole-0000-01-00-0")
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": "ghost", "uid": "ghost"}]
    return claim


FAULTS: dict[str, tuple[Installation, str]] = {
    "no controller": (
        with_state(pods=(part("agent", "a"),)),
        "controller: it has no pod, and without it nothing is allocated. Install the chart, ",
    ),
    "a controller that is not ready": (
        with_state(pods=(part("agent", "a"), unready(part("controller", "b"), "ErrImagePull"))),
        "pod gcu/controller-b on node b: it is not ready (ErrImagePull). See kubectl logs",
    ),
    "no lease": (
        replace(HEALTHY, leases={"gcu": None}),
        "Lease gcu/gcu-dra-controller: it is not there: no controller has ever led. ",
    ),
    "nobody leads": (
        replace(HEALTHY, leases={"gcu": lease("2026-01-02T11:58:00.000000Z")}),
        "Lease gcu/gcu-dra-controller: no controller has led for 120 s. ",
    ),
    "a lease that was given back": (
        replace(HEALTHY, leases={"gcu": lease(holder="")}),
        "Lease gcu/gcu-dra-controller: no controller has led for 1 s. ",
    ),
    "no agent": (
        with_state(pods=(part("controller", "b"),), slices=()),
        "agent: no node runs one, so no card is offered. Label the nodes that have GCUs: ",
    ),
    "an agent that offers nothing": (
        with_state(pods=(*STATE.pods, part("agent", "b"))),
        "node b: its agent is ready and offers no card. See kubectl logs",
    ),
    "cards without an agent": (
        with_state(pods=(part("controller", "b"), unbound(part("agent", "a")))),
        "node a: its cards are offered, and no agent runs there: pods with GCUs neither start",
    ),
    "no class": (
        replace(HEALTHY, missing_classes=DEVICE_CLASSES[:1]),
        "DeviceClass gcu.enflame.com: it does not exist, so no claim can name it. ",
    ),
    "an unhealthy card": (
        with_state(
            slices=tuple(pool("a", [device("whole", 1, taints=[UNHEALTHY])])),
            claims=(allocated("one", "a", "whole-0000-01-00-0"),),
        ),
        "node a, card 0000:01:00.0: unhealthy: lost; held by default/one. docs/user/health.md",
    ),
    "more than there is": (
        with_state(claims=twice()),
        "node a, card 0000:01:00.0: more is allocated than there is: 8 of 6, by default/one, def",
    ),
    "two modes": (
        with_state(claims=(twice()[0], allocated("whole", "a", "whole-0000-01-00-0"))),
        "node a, card 0000:01:00.0: more is allocated than there is: ",
    ),
    "another plugin": (
        with_state(nodes=(node("a", gcu_count="1", shared_gcu="6"), node("b", gcu_memory="0"))),
        "node a: another device plugin offers enflame.com/shared-gcu of the same cards. ",
    ),
    "another plugin without DRA": (
        with_state(nodes=(node("a", gcu_count="1"), node("b", gcu="1", gcu_memory="9"))),
        "node b: another device plugin offers enflame.com/gcu-memory of the same cards. ",
    ),
    "a pod that is gone": (
        with_state(claims=(reserved_for_nobody(),)),
        "claim default/one: it is reserved for ghost, which is gone. ",
    ),
}


@pytest.mark.parametrize(("installation", "line"), FAULTS.values(), ids=FAULTS)
def test_a_fault(installation: Installation, line: str) -> None:
    [found] = found_in(installation)
    assert found.startswith(line)


class Server:
    """A healthy cluster; `refused` may not be read, and of `without` there is nothing."""

    def __init__(
        self, *refused: Resource, minor: int = 36, without: Resource | None = None
    ) -> None:
        self._refused = refused
        self._without = without
        self._minor = minor

    def server_version(self) -> ServerVersion:
        return ServerVersion(1, self._minor)

    def list(self, resource: Resource, **_: Any) -> Listing:
        if resource in self._refused:
            raise Forbidden("no", status=403)
        objects = {
            RESOURCE_SLICES: STATE.slices,
            NODES: STATE.nodes,
            PODS: STATE.pods,
            CLASSES_RESOURCE: tuple(CLASSES.values()),
        }
        if resource == self._without:
            return Listing((), "1")
        return Listing(objects.get(resource, ()), "1")

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        if (resource, name, namespace) != (LEASES, "gcu-dra-controller", "gcu"):
            raise NotFound("no", status=404)
        if resource == self._without:
            raise NotFound("no", status=404)
        if resource in self._refused:
            raise Forbidden("no", status=403)
        return lease()

    def close(self) -> None:
        """Nothing is open."""


def read(server: Any) -> Installation:
    return read_installation(server, "default")


def test_what_is_read() -> None:
    found = read(Server())
    assert (found.leases, found.missing_classes, found.unread) == ({"gcu": lease()}, (), ())
    assert read(Server(without=CLASSES_RESOURCE)).missing_classes == DEVICE_CLASSES
    assert read(Server(without=LEASES)).leases == {"gcu": None}
    old = read(Server(minor=30, without=CLASSES_RESOURCE))
    assert (old.missing_classes, old.state.slices) == ((), ())


def test_what_may_not_be_read_is_no_finding() -> None:
    found = read(Server(CLASSES_RESOURCE, LEASES))
    assert (found.leases, found.missing_classes) == ({}, ())
    assert found.unread == (
        "you may not get the Lease gcu/gcu-dra-controller: a leader is not looked for",
        "you may not list deviceclasses: a missing one is not found",
    )
    assert found_in(found) == []
    found = read(Server(PODS))
    assert (found.leases, found_in(found)) == ({}, [])


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(server: Any, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(main, "connect", lambda *_, **__: server)
        out, errors = io.StringIO(), io.StringIO()
        code = main.run(["doctor", "--namespace=default", *arguments], {}, out, errors)
        return code, out.getvalue(), errors.getvalue()

    code, out, _ = run(Server(), "--output=json")
    [late] = json.loads(out)  # the lease of January
    assert (code, late["where"]) == (WRONG, "Lease gcu/gcu-dra-controller")
    code, out, errors = run(Server(NODES))
    assert (code, out.count("\n")) == (WRONG, 1)
    assert errors.startswith("warning: you may not list nodes")
    monkeypatch.setattr(main, "findings", lambda *_: ())
    assert run(Server())[:2] == (0, "nothing is wrong that can be seen\n")
    assert run(Server(NODES))[0] == PARTIAL
    code, _, errors = run(Server(LEASES))
    assert (code, errors.startswith("warning: you may not get the Lease")) == (PARTIAL, True)
