"""What DeviceTaintRules of an administrator mean for `kubectl gcu explain` and `plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.api import Listing, ServerVersion
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from kubectl_gcu.main import PARTIAL, WAITS
from tests.unit.controller.allocator.build import CLASSES, claim, device, pool, taint_rule
from tests.unit.controller.world import node, pod
from tests.unit.kubectl_gcu.command import gcu
from tests.unit.kubectl_gcu.explained import explained
from tests.unit.kubectl_gcu.manifests import single, spec
from tests.unit.kubectl_gcu.server import CONTROLLER, Server

DRAIN = taint_rule(
    "drain", {"driver": DRIVER}, {"key": "example.com/drain", "effect": "NoSchedule"}
)
UNREAD = "you may not list devicetaintrules in the whole cluster: devices that one of them taints "


class VersionedServer(Server):
    """It has the kind of rules in `versions` alone."""

    versions: tuple[Resource, ...] = (DEVICE_TAINT_RULES,)

    def list(self, resource: Resource, **more: Any) -> Listing:
        rules = {DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2}
        if resource in rules - {*self.versions}:
            raise NotFound("no such kind", status=404)
        return super().list(resource, **more)


OBJECTS = (
    *((RESOURCE_SLICES, each) for each in pool("a", [device("whole", 1)])),
    *((DEVICE_CLASSES, each) for each in CLASSES.values()),
    (NODES, node("a")),
    (RESOURCE_CLAIMS, claim("c")),
    (PODS, pod("p", "c")),
)


@pytest.mark.parametrize(
    "resource", [DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2], ids=["1.37", "1.36"]
)
def test_a_pod_waits_for_a_card_that_a_rule_taints(resource: Resource) -> None:
    server: Any = VersionedServer(*OBJECTS, (resource, DRAIN))
    server.versions = (resource,)
    found = explained(server)
    assert found.verdict is not None
    assert found.verdict.node == ""
    assert found.verdict.reason == (
        "1 card: 1 tainted example.com/drain by DeviceTaintRule drain; 1 requested"
    )
    assert found.missing == ""


WITHOUT_SELECTOR = taint_rule("drain", None, {"key": "example.com/drain", "effect": "NoSchedule"})
SELECTS_ALL = pytest.mark.parametrize(
    ("resource", "node"),
    [
        pytest.param(DEVICE_TAINT_RULES, "a", id="1.37, nothing"),
        pytest.param(DEVICE_TAINT_RULES_V1BETA2, "", id="1.36, all devices"),
    ],
)


@SELECTS_ALL
def test_what_a_rule_without_a_selector_selects(resource: Resource, node: str) -> None:
    server: Any = VersionedServer(*OBJECTS, (resource, WITHOUT_SELECTOR))
    server.versions = (resource,)
    found = explained(server)
    assert found.verdict is not None
    assert found.verdict.node == node


@SELECTS_ALL
def test_what_it_selects_in_a_saved_state(tmp_path: Path, resource: Resource, node: str) -> None:
    out = planned(tmp_path, (resource, WITHOUT_SELECTOR))
    assert ("tainted example.com/drain" in out) == (not node)


@SELECTS_ALL
def test_whether_inspect_shows_it(
    monkeypatch: pytest.MonkeyPatch, resource: Resource, node: str
) -> None:
    server: Any = VersionedServer(*OBJECTS, (resource, WITHOUT_SELECTOR))
    server.versions = (resource,)
    _, found, _ = inspected(server)
    assert ("drain by DeviceTaintRule drain" in found[1]) == (not node)


def test_a_server_without_such_rules() -> None:
    server: Any = VersionedServer(*OBJECTS)
    server.versions = ()
    found = explained(server)
    assert found.verdict is not None
    assert (found.verdict.node, found.missing) == ("a", "")


class ForbiddingServer(Server):
    """Rules may not be listed; a server without them answers the same."""

    def list(self, resource: Resource, **more: Any) -> Listing:
        if resource in {DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2}:
            raise Forbidden("no", status=403)
        return super().list(resource, **more)


@pytest.mark.parametrize(("minor", "missing"), [(36, ""), (37, f"{UNREAD}count as free")])
def test_a_user_who_may_not_read_them_learns_it(minor: int, missing: str) -> None:
    server: Any = ForbiddingServer(*OBJECTS)
    server.version = ServerVersion(1, minor, f"v1.{minor}.1")
    found = explained(server)
    assert found.verdict is not None
    assert (found.verdict.node, found.missing) == ("a", missing)


def test_a_saved_state_with_rules(tmp_path: Path) -> None:
    out = planned(tmp_path, (DEVICE_TAINT_RULES, DRAIN), code=WAITS)
    assert "1 tainted example.com/drain by DeviceTaintRule drain" in out


def planned(tmp_path: Path, *rules: tuple[Resource, Object], code: int | None = None) -> str:
    """What `plan` prints for the pod on a saved state with the rules."""
    state, manifest = tmp_path / "state.json", tmp_path / "pod.json"
    objects = [
        {**each, "apiVersion": resource.api_version, "kind": resource.kind}
        for resource, each in (*OBJECTS, (PODS, CONTROLLER), *rules)
    ]
    for each in objects:
        each["metadata"] = {"uid": each["metadata"]["name"], "resourceVersion": "1"} | each[
            "metadata"
        ]
    state.write_text(json.dumps({"kind": "List", "items": objects}))
    manifest.write_text(json.dumps(single(spec(resourceClaimName="c"))))
    ended, out, errors = gcu(None, "plan", f"--file={manifest}", f"--state={state}")
    assert errors == ""
    assert code in {None, ended}
    return out


def test_a_plan_without_them_is_one_of_a_part(tmp_path: Path) -> None:
    server: Any = ForbiddingServer(*OBJECTS)
    server.version = ServerVersion(1, 37, "v1.37.1")
    manifest = tmp_path / "pod.json"
    manifest.write_text(json.dumps(single(spec(resourceClaimName="c"))))
    code, _, errors = gcu(server, "plan", f"--file={manifest}")
    assert (code, errors) == (PARTIAL, f"warning: {UNREAD}count as free\n")


def inspected(server: Any) -> tuple[int, list[str], str]:
    code, out, errors = gcu(server, "inspect")
    return code, out.splitlines(), errors


def test_inspect_shows_that_a_rule_taints_a_card() -> None:
    informs = taint_rule("inform", {"driver": DRIVER}, {"key": "example.com/x", "effect": "None"})
    rules = ((DEVICE_TAINT_RULES, each) for each in (DRAIN, informs))
    code, found, _ = inspected(VersionedServer(*OBJECTS, *rules))
    assert code == 0
    assert "drain by DeviceTaintRule drain  -" in found[1]
    assert found[-1] == "a: 1 card: 0 free, 1 with problems"
