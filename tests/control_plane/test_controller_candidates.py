"""The controller allocates on a node that kube-scheduler can use for the pod."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.hands import Hands
from tests.control_plane.objects import node_of, pod_with, whole

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]


def allow_elsewhere(node: str) -> Object:
    return {"nodeSelector": {"machine": node}}


def require_by_affinity(node: str) -> Object:
    term = {"matchExpressions": [{"key": "machine", "operator": "In", "values": [node]}]}
    terms = {"nodeSelectorTerms": [term]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": required}}


BY_POD = {"nodeSelector": allow_elsewhere, "required affinity": require_by_affinity}


@pytest.mark.parametrize("demand", BY_POD.values(), ids=BY_POD)
def test_candidates_are_nodes_that_the_pod_allows(
    scene: Scene, controller: ControllerProcess, demand: Callable[[str], Object]
) -> None:
    scene.machines.add([whole(0)])
    wanted = scene.machines.add([whole(0), whole(1)])
    scene.hands.start("user", schedulerName="nobody", **demand(wanted))
    assert node_of(scene.eyes.allocated("user")) == wanted


BY_NODE = {"taints": Hands.taint, "unschedulable": Hands.cordon, "Ready": Hands.break_down}


@pytest.mark.parametrize("closes", BY_NODE.values(), ids=BY_NODE)
def test_candidates_are_nodes_that_take_pods(
    scene: Scene, controller: ControllerProcess, closes: Callable[[Hands, str], None]
) -> None:
    closed = scene.machines.add([whole(0)])
    wanted = scene.machines.add([whole(0), whole(1)])
    closes(scene.hands, closed)
    scene.hands.start("user", schedulerName="nobody")
    assert node_of(scene.eyes.allocated("user")) == wanted


def test_the_nominated_node_comes_first(scene: Scene, controller: ControllerProcess) -> None:
    scene.machines.add([whole(0)])
    wanted = scene.machines.add([whole(0), whole(1)])
    scene.hands.start(
        "user", schedulerName="nobody", schedulingGates=[{"name": "example.com/hold"}]
    )
    scene.hands.set_status(PODS, "user", {"nominatedNodeName": wanted})
    scene.hands.lift("user", "example.com/hold")
    assert node_of(scene.eyes.allocated("user")) == wanted


def test_a_volume_in_a_zone_is_followed(scene: Scene, controller: ControllerProcess) -> None:
    scene.machines.add([whole(0)])
    wanted = scene.machines.add([whole(0), whole(1)])
    scene.hands.bind_volume("data", wanted)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    scene.hands.start("user", schedulerName="nobody", volumes=[volume])
    assert node_of(scene.eyes.allocated("user")) == wanted


def test_fifty_pods_of_which_each_fits_one_of_twenty_nodes(
    scene: Scene, start_controller: Start
) -> None:
    """Each must be beside an anchor of its own, which only kube-scheduler reads. A node that is
    released because kube-scheduler is slow would not be tried again in time: it gets a minute."""
    start_controller("--node-retry=600", "--scheduling-patience=60").wait_for_log("begins")
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
