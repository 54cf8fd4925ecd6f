"""Bound volumes tie a pod to nodes."""

from __future__ import annotations

from typing import Any, cast

import pytest

from controller.volumes import BoundVolumes
from dra_driver.kube.api import Api
from dra_driver.kube.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
)
from dra_driver.model.claim import Object
from tests.unit.controller.allocator.build import claim
from tests.unit.controller.world import World, node, pod

IN_B = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    ]
}
BY_CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
EPHEMERAL = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
LABEL = "topology.kubernetes.io/zone"


def volume(**metadata: Any) -> Object:
    return {"metadata": {"name": "v", **metadata}, "spec": {}}


def test_a_pod_follows_its_bound_volume() -> None:
    world = World()
    for name in "ab":
        made = node(name)
        made["metadata"]["labels"] = {"zone": name}
        world.put(NODES, made)
    bound = volume() | {"spec": {"nodeAffinity": {"required": IN_B}}}
    world.hide(PERSISTENT_VOLUMES, bound)
    world.hide(PERSISTENT_VOLUME_CLAIMS, volume(name="data") | {"spec": {"volumeName": "v"}})
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c", volumes=BY_CLAIM))
    world.settle()
    assert world.node_of("c") == "b"


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
    "labels of old": (
        BY_CLAIM,
        "data",
        volume(labels={LABEL: "x__y", "other": "z"}),
        [
            {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": LABEL, "operator": "In", "values": ["x", "y"]}]}
                ]
            }
        ],
    ),
}


@pytest.mark.parametrize(("volumes", "name", "bound", "selectors"), CASES.values(), ids=CASES)
def test_selectors(
    volumes: list[Object], name: str, bound: Object, selectors: list[Object]
) -> None:
    world = World()
    world.hide(PERSISTENT_VOLUMES, bound)
    world.hide(PERSISTENT_VOLUME_CLAIMS, volume(name=name) | {"spec": {"volumeName": "v"}})
    found = BoundVolumes(cast("Api", world.port)).selectors(pod("p", volumes=volumes))
    assert found == selectors


def test_an_unbound_claim_ties_to_nothing() -> None:
    world = World()
    world.hide(PERSISTENT_VOLUME_CLAIMS, volume(name="data"))
    assert BoundVolumes(cast("Api", world.port)).selectors(pod("p", volumes=BY_CLAIM)) == []
