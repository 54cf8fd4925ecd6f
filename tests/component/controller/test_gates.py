"""Our scheduling gate, until the claims of its pod are allocated."""

from __future__ import annotations

from dra_driver.model.names import SCHEDULING_GATE
from tests.component.controller.conftest import Start
from tests.component.controller.stage import Stage
from tests.control_plane.objects import claim, pod_with, whole

GATES = [{"name": SCHEDULING_GATE}]


def ungated(stage: Stage, name: str) -> None:
    stage.wait(lambda: not stage.gates(name), f"gate of {name} lifted")


def test_a_gated_pod_with_a_template(stage: Stage, start_controller: Start) -> None:
    """Its claim is made after it."""
    stage.add_node([whole(0)])
    start_controller()
    made = pod_with("user", stage.namespace, template="cards", schedulingGates=GATES)
    pod = stage.put_pod(made)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "user", "uid": pod["metadata"]["uid"]}
    generated = claim("user-made-x", stage.namespace)
    generated["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    stage.add_made_claim(generated)
    status = [{"name": "made", "resourceClaimName": "user-made-x"}]
    stage.put_pod(pod | {"status": {"phase": "Pending", "resourceClaimStatuses": status}})
    ungated(stage, "user")
    assert stage.is_allocated("user-made-x")


def test_a_gate_from_before_a_switch_of_the_allocator(
    stage: Stage, start_controller: Start
) -> None:
    """The pod waited until its node is named. kube-scheduler allocates no longer."""
    before = start_controller("before", allocator="scheduler", nomination_waiting=0)
    stage.start("user", schedulingGates=GATES)
    stage.wait_for_event("user", "", "GcuAllocationFailed")
    assert stage.gates("user")
    before.stop()
    stage.add_node([whole(0)])
    start_controller("after")
    ungated(stage, "user")
    assert stage.is_allocated("user")
