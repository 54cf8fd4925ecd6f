"""The controller allocates on a node that kube-scheduler can use for the pod."""

from __future__ import annotations

from dra_driver.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from tests.component.controller.conftest import Start
from tests.component.controller.stage import Stage
from tests.control_plane.objects import node_of, whole


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
