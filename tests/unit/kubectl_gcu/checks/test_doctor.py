"""What `kubectl gcu doctor` reads, and its command; `checks/` has its findings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_driver.kube.api import Listing, ServerVersion
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import DEVICE_CLASSES as CLASSES_RESOURCE
from dra_driver.kube.resources import (
    EVENTS,
    LEASES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu import main
from kubectl_gcu.checks.finding import Finding
from kubectl_gcu.checks.installation import (
    CLUSTER_ROLES,
    MUTATING_POLICIES,
    POLICIES,
    Installation,
    read_installation,
)
from kubectl_gcu.main import PARTIAL, WRONG
from tests.unit.kubectl_gcu.checks.claims_for_scheduler import claim, config
from tests.unit.kubectl_gcu.checks.installations import (
    HEALTHY,
    STATE,
    event,
    found_in,
    lease,
    pod,
)
from tests.unit.kubectl_gcu.command import gcu

PACKED = {
    "metadata": {"name": "parts", "namespace": "team"},
    "spec": {"spec": claim(config(packing={"cards": "spread"}))["spec"]},
}
REPORT = event("GcuCardLost", "it is gone", kind="Node", name="a")


class Server:
    """A healthy cluster; `refused` may not be read, and of `without` there is nothing."""

    def __init__(
        self,
        *refused: Resource,
        minor: int = 36,
        without: Resource | None = None,
        of_templates: tuple[Object, ...] = (),
        pods: tuple[Object, ...] = (),
    ) -> None:
        self._pods = (*STATE.pods, *pods)
        self._templates = of_templates
        self._refused = refused
        self._without = without
        self._minor = minor
        self.selectors: list[str] = []

    def server_version(self) -> ServerVersion:
        return ServerVersion(1, self._minor)

    def list(
        self, resource: Resource, *, label_selector: str = "", field_selector: str = "", **_: Any
    ) -> Listing:
        if resource in self._refused:
            raise Forbidden("no", status=403)
        if resource == self._without:
            raise NotFound("no", status=404)
        self.selectors.append(f"{resource.plural} {label_selector}{field_selector}".strip())
        objects = {
            RESOURCE_SLICES: STATE.slices,
            NODES: STATE.nodes,
            PODS: self._pods,
            EVENTS: (REPORT,) if field_selector.startswith("reportingController") else (),
            RESOURCE_CLAIM_TEMPLATES: self._templates,
            **HEALTHY.objects,
        }
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


def read(server: Any, *, with_templates: bool = False) -> Installation:
    return read_installation(server, "default", with_templates=with_templates)


def test_what_is_read() -> None:
    server = Server()
    found = read(server)
    assert (found.leases, found.events, found.unread) == ({"gcu": lease()}, (REPORT,), ())
    assert HEALTHY.objects.items() <= found.objects.items()
    assert found_in(found) == []
    assert server.selectors[5:] == [
        "deviceclasses",
        "clusterroles",
        "clusterrolebindings",
        *(
            f"{kind}admission{part} app.kubernetes.io/name=gcu-dra-driver"
            for kind in ("validating", "mutating")
            for part in ("policies", "policybindings")
        ),
        "mutatingwebhookconfigurations app.kubernetes.io/name=gcu-dra-driver",
        "events reportingController=gcu.enflame.com/agent",
        "events reason=FailedPrepareDynamicResources",
    ]
    assert read(Server(without=LEASES)).leases == {"gcu": None}


def test_events_about_pods_and_groups_are_read_where_a_gate_holds_pods_back() -> None:
    server = Server(pods=(pod("user", schedulingGates=[{"name": SCHEDULING_GATE}]),))
    read(server)
    assert server.selectors[-1] == "events reason=GcuAllocationFailed"


def test_templates_are_read_when_asked_for() -> None:
    assert RESOURCE_CLAIM_TEMPLATES not in read(Server()).objects
    assert read(Server(), with_templates=True).objects[RESOURCE_CLAIM_TEMPLATES] == ()
    [sentence] = read(Server(RESOURCE_CLAIM_TEMPLATES), with_templates=True).unread
    assert sentence == (
        "you may not list resourceclaimtemplates: those that another allocator would refuse are "
        "not found"
    )


def test_what_the_server_does_not_serve() -> None:
    assert CLASSES_RESOURCE not in read(Server(without=CLASSES_RESOURCE)).objects
    old = read(Server(minor=30))
    assert old.state.slices == ()
    assert set(old.objects) & {CLASSES_RESOURCE, POLICIES, MUTATING_POLICIES} == {POLICIES}


def test_what_may_not_be_read_is_no_finding() -> None:
    found = read(Server(CLASSES_RESOURCE, CLUSTER_ROLES, EVENTS, LEASES))
    assert found.leases == {}
    assert found.events == ()
    assert not {CLASSES_RESOURCE, CLUSTER_ROLES} & set(found.objects)
    assert found.unread == (
        "you may not get the Lease gcu/gcu-dra-controller: a leader is not looked for",
        "you may not list deviceclasses: a missing one is not found",
        "you may not list clusterroles: missing rights of the driver are not found",
        "you may not list events in all namespaces: what agents report is not seen",
    )
    assert found_in(found) == []
    found = read(Server(PODS))
    assert (found.leases, found_in(found)) == ({}, [])


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(server: Any, *arguments: str) -> tuple[int, str, str]:
        return gcu(server, "doctor", *arguments)

    code, out, _ = run(Server(), "--output=json")
    [late] = json.loads(out)  # the lease of January
    assert (code, late["check"]) == (WRONG, "nobody-leads")
    assert (late["where"], set(late)) == (
        "Lease gcu/gcu-dra-controller",
        {"check", "where", "what", "remedy"},
    )
    code, out, _ = run(Server(of_templates=(PACKED,)), "--allocator=scheduler")
    assert (code, "claim template team/parts: kube-scheduler ignores" in out) == (WRONG, True)
    code, out, errors = run(Server(NODES))
    assert (code, out.count("\n")) == (WRONG, 1)
    assert errors.startswith("warning: you may not list nodes")
    forged = Finding("a", "pod team/\x1b[8m", "ENFLAME_VISIBLE_DEVICES=0\n", "remedy")
    monkeypatch.setattr(main, "findings", lambda *_, **__: (forged,))
    assert run(Server())[1] == "pod team/\ufffd[8m: ENFLAME_VISIBLE_DEVICES=0 . remedy\n"
    monkeypatch.setattr(main, "findings", lambda *_, **__: ())
    assert run(Server())[:2] == (0, "nothing is wrong that can be seen\n")
    assert run(Server(NODES))[0] == PARTIAL
    code, _, errors = run(Server(LEASES))
    assert (code, errors.startswith("warning: you may not get the Lease")) == (PARTIAL, True)
