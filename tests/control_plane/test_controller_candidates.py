"""The controller allocates on a node that kube-scheduler can use for the pod."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import pod_with, whole

pytestmark = [pytest.mark.control_plane, pytest.mark.matrix]

Start = Callable[..., ControllerProcess]


def test_fifty_pods_of_which_each_fits_one_of_twenty_nodes(
    scene: Scene, start_controller: Start
) -> None:
    """Each must be beside an anchor of its own, which the controller does not consider here. A node
    that is released because kube-scheduler is slow would not be tried again in time: it gets a
    minute."""
    start_controller(
        "--node-retry=600", "--scheduling-patience=60", "--unconsidered-plugins=InterPodAffinity"
    ).wait_for_log("begins")
    nodes = scene.machines.add_many(20, [whole(bus) for bus in range(3)])
    for number, node in enumerate(nodes):
        anchor = pod_with(f"anchor-{number}", scene.namespace, nodeName=node)
        anchor["metadata"]["labels"] = {"anchor": str(number)}
        scene.api.create(PODS, anchor)
    listed = scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace)
    names = [f"user-{number}" for number in range(50)]
    for number, name in enumerate(names):
        term = {
            "labelSelector": {"matchLabels": {"anchor": str(number % 20)}},
            "topologyKey": "kubernetes.io/hostname",
        }
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        scene.hands.start(name, affinity={"podAffinity": required})
    for number, name in enumerate(names):
        assert scene.eyes.bound(name) == nodes[number % 20]
    # At most every node once, each with an allocation and its end, and the first two writes.
    assert len(scene.writes_to_claims(listed.resource_version)) < 50 * (2 * 20 + 5)
    scene.eyes.no_card_twice(names)
