"""What `kubectl gcu explain podgroup` says."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    EVENTS,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    RESOURCE_CLAIMS,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.scheduling.explain_group import explain_group, group_lines
from tests.unit.controller.allocator.build import claim
from tests.unit.controller.test_pod_groups import group
from tests.unit.kubectl_gcu.scheduling.test_pod_groups import held, member, refuses
from tests.unit.kubectl_gcu.server import cluster

GATE: Final = [{"name": SCHEDULING_GATE}]
SHORT: Final = "1 of 2 pods fit together; short of 1 of gcu.enflame.com: 1 card: 1 held"
WHEN: Final = "2026-01-02T11:00:00Z"
NEEDS: Final = "  group:  PodGroup default/g needs 2 pods"


def explained(*objects: Any, version: Any = POD_GROUPS, found: Object | None = None) -> list[str]:
    server = cluster((version, found or group("g", 2)), *objects)
    if version is not POD_GROUPS:
        refuses(server, NotFound("not served", status=404), POD_GROUPS)
    return list(group_lines(explain_group(server, "default", "g")))


def pods_of(*found: Object) -> list[Any]:
    claims = [(RESOURCE_CLAIMS, claim(f"c-{each['metadata']['name']}")) for each in found]
    return [*((PODS, each) for each in found), *claims]


def waits(note: str, kind: str = "PodGroup", name: str = "g") -> tuple[Any, Object]:
    regarding = {"kind": kind, "namespace": "default", "name": name, "uid": ""}
    event = {"metadata": {"namespace": "default", "name": "e"}, "reason": "GcuAllocationFailed"}
    return EVENTS, event | {"note": note, "eventTime": WHEN, "regarding": regarding}


def test_a_group_that_is_short_of_cards() -> None:
    members = [member(name, schedulingGates=GATE) for name in "pq"]
    assert explained(*pods_of(*members), waits(SHORT)) == [
        "podgroup default/g",
        "  next:   whoever ends other claims, or adds nodes",
        f"  why:    {SHORT}",
        f"{NEEDS} (existing: 2, with devices: 0, bound: 0)",
        "  gated:  2",
    ]


def test_a_group_that_lacks_a_pod() -> None:
    found = explained(*pods_of(member("p", schedulingGates=GATE)), version=POD_GROUPS_V1BETA1)
    assert found[1] == "  next:   whoever creates the pods of PodGroup default/g"
    assert "and 1 has them" in found[2]


def test_a_group_that_kube_scheduler_has_not_bound() -> None:
    members = [member(name, status={"nominatedNodeName": "a"}) for name in "pq"]
    condition = {"type": "PodGroupInitiallyScheduled", "status": "False", "message": "no room"}
    refused = group("g", 2) | {"status": {"conditions": [condition]}}
    assert explained(*pods_of(*members), found=refused) == [
        "podgroup default/g",
        "  next:   kube-scheduler",
        "  why:    no room",
        f"{NEEDS} (existing: 2, with devices: 0, bound: 0)",
        "  named:  a (2)",
    ]


@pytest.mark.parametrize(
    ("gates", "line"),
    [
        (GATE, "  next:   the controller"),
        ([], "  next:   kube-scheduler"),
    ],
    ids=["gated", "lifted"],
)
def test_who_is_next_while_nothing_was_said(gates: list[Object], line: str) -> None:
    members = [member(name, schedulingGates=gates) for name in "pq"]
    assert explained(*pods_of(*members))[1] == line


@pytest.mark.parametrize("gates", [GATE, []], ids=["gated", "lifted"])
def test_a_group_for_whose_pods_the_controller_allocates(gates: list[Object]) -> None:
    """It says of each pod what it is short of."""
    members = [member(name, schedulingGates=gates) for name in "pq"]
    said = waits("2 cards: 1 held, 1 in shared mode", "Pod", "p")
    assert explained(*pods_of(*members), said)[1:3] == [
        "  next:   the allocator",
        "  why:    2 cards: 1 held, 1 in shared mode",
    ]
    served = [*((PODS, each) for each in members), *((RESOURCE_CLAIMS, held(n)) for n in "pq")]
    assert "the allocator" not in explained(*served, said)[1]


def test_a_group_that_is_bound() -> None:
    members = [member(name, nodeName="a") for name in "pq"]
    found = [*((PODS, each) for each in members), *((RESOURCE_CLAIMS, held(n)) for n in "pq")]
    assert explained(*found) == [
        "podgroup default/g",
        "  next:   nobody has to do anything",
        f"{NEEDS} (existing: 2, with devices: 2, bound: 2)",
    ]


def test_a_group_without_pods() -> None:
    assert explained()[1:] == ["  next:   whoever creates its pods", "  why:    it has no pods"]


def test_no_such_group() -> None:
    with pytest.raises(NotFound):
        explain_group(cluster(), "default", "g")
