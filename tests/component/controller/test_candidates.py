"""The controller allocates on a node that kube-scheduler can use for the pod."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from dra_driver.model.claims.claim import Object
from tests.component.controller.conftest import Start
from tests.component.controller.stage import Stage
from tests.control_plane.objects import node_of, whole


def select(node: str) -> Object:
    return {"nodeSelector": {"machine": node}}


def require_by_affinity(node: str) -> Object:
    term = {"matchExpressions": [{"key": "machine", "operator": "In", "values": [node]}]}
    terms = {"nodeSelectorTerms": [term]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": required}}


BY_POD = {"nodeSelector": select, "required affinity": require_by_affinity}


@pytest.mark.parametrize("demand", BY_POD.values(), ids=BY_POD)
def test_candidates_are_nodes_that_the_pod_allows(
    stage: Stage, start_controller: Start, demand: Callable[[str], Object]
) -> None:
    stage.add_node([whole(0)])
    wanted = stage.add_node([whole(0), whole(1)])
    start_controller()
    stage.start("user", **demand(wanted))
    assert node_of(stage.allocated("user")) == wanted


def taint(stage: Stage, node: str) -> None:
    taint = {"key": "example.com/maintenance", "effect": "NoSchedule"}
    stage.api.patch(NODES, node, {"spec": {"taints": [taint]}})


def cordon(stage: Stage, node: str) -> None:
    stage.api.patch(NODES, node, {"spec": {"unschedulable": True}})


def break_down(stage: Stage, node: str) -> None:
    stage.set_ready(node, "False")


BY_NODE = {"taints": taint, "unschedulable": cordon, "Ready": break_down}


@pytest.mark.parametrize("close", BY_NODE.values(), ids=BY_NODE)
def test_candidates_are_nodes_that_take_pods(
    stage: Stage, start_controller: Start, close: Callable[[Stage, str], None]
) -> None:
    closed = stage.add_node([whole(0)])
    wanted = stage.add_node([whole(0), whole(1)])
    close(stage, closed)
    start_controller()
    stage.start("user")
    assert node_of(stage.allocated("user")) == wanted


def test_a_volume_in_a_zone_is_followed(stage: Stage, start_controller: Start) -> None:
    stage.add_node([whole(0)])
    wanted = stage.add_node([whole(0), whole(1)])
    term = {"key": "machine", "operator": "In", "values": [wanted]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    stage.api.put(
        PERSISTENT_VOLUMES,
        {"metadata": {"name": "disk"}, "spec": {"nodeAffinity": {"required": required}}},
    )
    stage.api.put(
        PERSISTENT_VOLUME_CLAIMS,
        {
            "metadata": {"name": "data", "namespace": stage.namespace},
            "spec": {"volumeName": "disk"},
        },
    )
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    start_controller()
    stage.start("user", volumes=[volume])
    assert node_of(stage.allocated("user")) == wanted
