"""A claim that lost its allocation is allocated again at once where nothing can be in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dra_driver.kube.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocating.test_scheduler_sight import ELSEWHERE, UNALLOCATED
from tests.unit.controller.allocator.build import claim, device, device_class, pool
from tests.unit.controller.world import QUIET, World, node, pod, reserved, unallocated

NODES_OF_ONE_CARD = "abcdef"
ZONE = "topology.kubernetes.io/zone"
TERM = {"topologyKey": "kubernetes.io/hostname"}
APART = {
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
}


def owned(name: str = "c", owner: str = "p") -> Object:
    """A claim that was made from the pod's template."""
    found = claim(name)
    found["metadata"]["ownerReferences"] = [
        {"controller": True, "kind": "Pod", "uid": f"uid-{owner}"}
    ]
    return found


def world_with(*claims: Object, classes: Sequence[Object] = (), **spec: Any) -> World:
    """Pod `p` has these claims, on node a; each node has one card."""
    world = World([each for name in NODES_OF_ONE_CARD for each in pool(name, [device("whole", 0)])])
    for name in NODES_OF_ONE_CARD:
        world.put(NODES, node(name))
    for each in classes:
        world.put(DEVICE_CLASSES, each)
    for each in claims or (owned(),):
        world.put(RESOURCE_CLAIMS, each)
    names = [each["metadata"]["name"] for each in claims or (owned(),)]
    world.put(PODS, pod("p", *names, **spec))
    world.run_until_idle()
    assert world.node_of("c") == "a"
    return world


def says(world: World, message: str) -> None:
    """kube-scheduler says of the pod that it fits nowhere."""
    known = world.api.live[PODS, "p"]
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [condition | {"message": message}]}
    world.put(PODS, known | {"status": known["status"] | status})


def refuse(world: World, message: str = ELSEWHERE) -> None:
    """kube-scheduler finds no node, clears the allocation, and says why."""
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    says(world, message)
    world.run_until_idle()


def test_it_goes_on_when_kube_scheduler_has_seen_the_release() -> None:
    world = world_with()
    for expected in "bcd":
        refuse(world)
        assert world.node_of("c") is None
        says(world, UNALLOCATED)
        world.run_until_idle()
        assert world.node_of("c") == expected


def test_the_watch_of_pods_may_be_the_earlier_one() -> None:
    world = world_with()
    says(world, ELSEWHERE)
    says(world, UNALLOCATED)
    world.run_until_idle()
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    world.run_until_idle()
    assert world.node_of("c") == "b"


@pytest.mark.parametrize(
    "change", ["no verdict", "nothing of claims", "a named claim", "two users", "by a limit"]
)
def test_otherwise_it_is_quiet(change: str) -> None:
    spec: dict[str, Any] = {}
    if change == "by a limit":
        resources = {"claims": [{"name": "c"}], "requests": {"example.com/nic": "1"}}
        nic = device_class("nic", 'device.driver == "nic"')
        nic["spec"]["extendedResourceName"] = "example.com/nic"
        spec = {"containers": [{"name": "main", "resources": resources}], "classes": [nic]}
    world = world_with(claim("c") if change == "a named claim" else owned(), **spec)
    if change == "two users":
        world.put(PODS, pod("q", "c"))
    world.run_until_idle()
    refuse(world)
    if change == "nothing of claims":
        says(world, "0/6 nodes are available: 6 Insufficient cpu.")
    elif change != "no verdict":
        says(world, UNALLOCATED)
    world.run_until_idle()
    assert world.node_of("c") is None
    world.after(QUIET)
    assert world.node_of("c") == "b"


def test_a_pod_that_fits_nowhere_is_not_hurried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """No node is tried twice while others are left, and none before its backoff has ended."""
    monkeypatch.setattr("controller.allocating.quiet_time._AT_ONCE", 3)
    world = world_with()
    assert tries(world, ELSEWHERE, 6) == ["b", "c", "d", "e late", "f late", "None late"]


def relabel(world: World, names: str, **status: Any) -> None:
    """These nodes are in the zone z1, and have more in their status; the others are in z2."""
    for name in NODES_OF_ONE_CARD:
        found = node(name)
        zone = "z1" if name in names else "z2"
        metadata = found["metadata"] | {"labels": {ZONE: zone}}
        more = status if name in names else {}
        world.put(NODES, found | {"metadata": metadata, "status": found["status"] | more})


def tries(world: World, verdict: str, count: int) -> list[str | None]:
    """Where the claim is allocated at once after so many refusals; after the quiet time where that
    is marked."""
    seen = list[str | None]()
    for _ in range(count):
        refuse(world, verdict)
        says(world, UNALLOCATED)
        world.run_until_idle()
        node_name = world.node_of("c")
        if node_name is None:
            world.after(QUIET)
            node_name = f"{world.node_of('c')} late"
        seen.append(node_name)
    return seen


def test_nodes_without_the_resource_are_tried_later_and_not_in_haste() -> None:
    world = world_with()
    relabel(world, "df", allocatable={"pods": "110", "example.com/rdma": "2"})
    lacking = ELSEWHERE.replace(
        "node(s) didn't match pod anti-affinity rules", "Insufficient example.com/rdma"
    )
    assert tries(world, lacking, 4) == ["d", "f", "b late", "c late"]


def test_the_zone_with_the_fewest_replicas_comes_first() -> None:
    world = world_with()
    relabel(world, "abc")
    replicas = [{"controller": True, "kind": "ReplicaSet", "uid": "set"}]
    spreads = [{"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]
    world.put(RESOURCE_CLAIMS, owned("peer", "q"))
    for name in ("q", "p"):
        user = pod(name, "c" if name == "p" else "peer", topologySpreadConstraints=spreads)
        user["metadata"]["ownerReferences"] = replicas
        world.put(PODS, user)
        world.run_until_idle()
    assert world.node_of("peer") == "b"
    spread = ELSEWHERE.replace("pod anti-affinity rules", "pod topology spread constraints")
    assert tries(world, spread, 4) == ["d", "e", "f", "c"]


@pytest.mark.parametrize(
    ("reason", "spec"),
    [
        pytest.param("have free ports for the requested", {}, id="port"),
        pytest.param("match pod anti-affinity rules", APART, id="apart"),
    ],
)
def test_nodes_of_replicas_are_tried_last(reason: str, spec: dict[str, Any]) -> None:
    """Replicas q and r are on a and b, where a card each is free."""
    cards = [device("whole", 0), device("whole", 1)]
    world = World([each for name in "abc" for each in pool(name, cards)])
    world.put(NODES, node("c"))
    for name, claim_name in (("q", "on-a"), ("p", "c"), ("r", "on-b")):
        user = pod(name, claim_name, **spec)
        user["metadata"]["ownerReferences"] = [
            {"controller": True, "kind": "ReplicaSet", "uid": "set"}
        ]
        world.put(RESOURCE_CLAIMS, owned(claim_name, name))
        world.put(PODS, user)
        world.run_until_idle()
    assert [world.node_of(name) for name in ("on-a", "c", "on-b")] == ["a", "a", "b"]
    refused = ELSEWHERE.replace("match pod anti-affinity rules", reason)
    assert tries(world, refused, 2) == ["c", "b late"]


def test_a_named_claim_goes_back_to_its_node_at_once_and_to_another_later() -> None:
    """The pod of a StatefulSet is replaced."""
    world = world_with(claim("c"))
    world.put(RESOURCE_CLAIMS, reserved(world.claim("c"), "p"))
    world.remove(PODS, "p")
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    again = pod("p", "c")
    again["metadata"]["uid"] = "uid-of-the-next"
    world.put(PODS, again)
    world.run_until_idle()
    assert world.node_of("c") == "a"
    # Now another pod has got the card meanwhile.
    world.put(RESOURCE_CLAIMS, reserved(world.claim("c"), "of-the-next"))
    world.remove(PODS, "p")
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    world.ask("other", "other")
    world.run_until_idle()
    assert world.node_of("other") == "a"
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    assert world.node_of("c") is None
    world.after(QUIET)
    assert world.node_of("c") == "b"
