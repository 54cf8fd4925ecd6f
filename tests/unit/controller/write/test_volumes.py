"""Bound volumes tie a pod to nodes."""

from __future__ import annotations

from typing import Any, cast

import pytest

from controller.write.volumes import LIFE, MOST_READ, PodVolumes, read_volumes
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import allocated, claim, request
from tests.unit.controller.world import World, node, pod

IN_B = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    ]
}
BY_CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
EPHEMERAL = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]


def volume(**metadata: Any) -> Object:
    return {"metadata": {"name": "v", **metadata}, "spec": {}}


def volume_claim(name: str) -> Object:
    """Of the volume `v`."""
    return volume(namespace="default", name=name) | {"spec": {"volumeName": "v"}}


def zoned(volumes: int = 1) -> World:
    """Nodes in two zones, a volume in zone b, and pods that wait for it to be read."""
    world = World()
    for name in "ab":
        made = node(name)
        made["metadata"]["labels"] = {"zone": name}
        world.put(NODES, made)
    world.put_unseen(PERSISTENT_VOLUMES, volume() | {"spec": {"nodeAffinity": {"required": IN_B}}})
    world.put_unseen(
        PERSISTENT_VOLUME_CLAIMS,
        volume_claim("data"),
    )
    for number in range(volumes):
        world.ask(f"p{number}", f"c{number}", volumes=BY_CLAIM)
    return world


def test_a_pod_follows_its_bound_volume() -> None:
    world = zoned()
    world.run_until_idle()
    assert world.node_of("c0") == "b"


def test_nothing_is_read_in_the_deciding_thread() -> None:
    world = zoned()
    world.ask("other", "other")
    world.pool.is_paused = True
    world.run_until_idle()
    assert world.api.reads == []
    world.pool.resume()
    world.run_until_idle()
    assert (world.node_of("c0"), world.node_of("other")) == ("b", "a")


def test_what_was_read_holds_for_a_while() -> None:
    """Three pods and two cards in the zone: one waits, and is looked at again and again."""
    world = zoned(3)
    world.run_until_idle()
    assert len(world.api.reads) == 2 * 3
    world.api.reads.clear()
    waiting = next(name for name in ("c0", "c1", "c2") if world.node_of(name) is None)
    user = world.api.live[PODS, waiting.replace("c", "p")]
    for number, reads in ((1, 0), (2, 2)):
        world.put(PODS, user | {"status": {"nominatedNodeName": f"n{number}"}})
        world.after(LIFE / 2)
        assert len(world.api.reads) == reads
    assert world.node_of(waiting) is None


def test_what_is_freed_elsewhere_is_not_for_a_pod_with_a_volume() -> None:
    """It goes to the next pod, that asks for the same and has no volume."""
    world = zoned()
    for name, devices in (("a", ["00"]), ("b", ["00", "01"])):
        for bus in devices:
            held = allocated(f"{name}{bus}", name, f"whole-0000-{bus}-00-0")
            world.put(RESOURCE_CLAIMS, held)
    world.run_until_idle()
    world.ask("z", "z")
    world.run_until_idle()
    before = world.metric("gcu_controller_unsatisfied_total")
    world.remove(RESOURCE_CLAIMS, "a00")
    world.run_until_idle()
    assert world.node_of("z") == "a"
    assert world.metric("gcu_controller_unsatisfied_total") == before


def test_what_was_read_serves_however_long_the_backlog_is() -> None:
    """More urgent pods come up for longer than what was read holds."""
    world = zoned()
    while not world.api.reads:
        world.worker.run_once(0)
    for name in ("urgent0", "urgent1", "urgent2"):
        world.put(RESOURCE_CLAIMS, claim(name, [request(count=3)]))
        world.put(PODS, pod(name, name, priority=1))
        world.worker.run_once(0)
        world.time += 2 * LIFE
    assert world.node_of("c0") is None
    world.run_until_idle()
    assert world.node_of("c0") == "b"
    assert len(world.api.reads) == 2


def test_what_was_read_for_a_pod_is_not_used_for_the_next_of_its_name() -> None:
    world = zoned(0)
    world.put(RESOURCE_CLAIMS, claim("c", [request(count=3)]))
    made = pod("p", "c", volumes=BY_CLAIM)
    world.put(PODS, made)
    world.run_until_idle()
    world.remove(PODS, "p")
    world.put(PODS, made | {"metadata": made["metadata"] | {"uid": "another"}})
    world.run_until_idle()
    assert len(world.api.reads) == 2 * 2


def test_volumes_of_a_bound_pod_are_not_read() -> None:
    world = zoned(0)
    world.ask("p", "c", volumes=BY_CLAIM, nodeName="a")
    world.run_until_idle()
    assert (world.node_of("c"), world.api.reads) == ("a", [])


def test_a_read_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = zoned()
    refused = [Unavailable("no answer")]
    get = world.api.get

    def failing(resource: Resource, name: str, *, namespace: str = "") -> Object:
        if refused and resource is PERSISTENT_VOLUME_CLAIMS:
            raise refused.pop()
        return get(resource, name, namespace=namespace)

    monkeypatch.setattr(world.api, "get", failing)
    world.run_until_idle()
    assert world.node_of("c0") is None
    world.after(1.0)
    assert world.node_of("c0") == "b"


CASES: dict[str, tuple[list[Object], str, Object, list[Object]]] = {
    "no volumes": ([], "data", volume(), []),
    "of another kind": ([{"name": "x", "emptyDir": {}}], "data", volume(), []),
    "no such claim": (BY_CLAIM, "other", volume(), []),
    "a volume for every node": (BY_CLAIM, "data", volume(), []),
    "an ephemeral one": (
        EPHEMERAL,
        "p-scratch",
        volume() | {"spec": {"nodeAffinity": {"required": IN_B}}},
        [IN_B],
    ),
}


@pytest.mark.parametrize(("volumes", "name", "bound", "selectors"), CASES.values(), ids=CASES)
def test_selectors(
    volumes: list[Object], name: str, bound: Object, selectors: list[Object]
) -> None:
    world = World()
    world.put_unseen(PERSISTENT_VOLUMES, bound)
    world.put_unseen(
        PERSISTENT_VOLUME_CLAIMS,
        volume_claim(name),
    )
    found = read_volumes(cast("Api", world.api), pod("p", volumes=volumes))
    assert list(found.selectors) == selectors


def test_an_unbound_claim_ties_to_nothing() -> None:
    world = World()
    world.put_unseen(PERSISTENT_VOLUME_CLAIMS, volume(namespace="default", name="data"))
    found = read_volumes(cast("Api", world.api), pod("p", volumes=BY_CLAIM))
    assert found == PodVolumes(are_unbound=True)


def test_of_a_pod_with_thousands_of_volumes_a_few_are_read() -> None:
    """Reads are made where others' claims are written."""
    world = World()
    names = [f"v{number}" for number in range(5_000)]
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names]
    twice = [{"name": f"again-{n}", "persistentVolumeClaim": {"claimName": n}} for n in names]
    world.ask("p", "c", volumes=[*twice[:1], *volumes])
    world.run_until_idle()
    assert world.api.reads == [f"persistentvolumeclaims {n}" for n in names[:MOST_READ]]
    assert world.node_of("c") is not None
