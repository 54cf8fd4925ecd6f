"""Pods that were made on a node, and pods that make room on one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation, reserved_for
from dra_driver.model.names import SCHEDULING_GATE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane import components
from tests.control_plane.components import SCHEDULER
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import claim, pod_with, whole, with_cpu

pytestmark = pytest.mark.control_plane

FIRST = "system-node-critical"  # the highest of the priority classes that every cluster has
MOST_OF_A_NODE = "60"  # cpus; our nodes have 64


def is_ending(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def test_pods_that_were_made_on_a_node(scene: Scene, controller: ControllerProcess) -> None:
    """kube-scheduler never sees them; kube-controller-manager reserves what they use."""
    scene.machines.add([whole(0)])
    node = scene.machines.add([whole(0), whole(1)])
    names = ["one", "two", "three"]
    for name in names:
        scene.hands.start(name, nodeName=node)

    def served() -> list[str]:
        claims = [scene.eyes.claim(name) for name in names]
        return [each["metadata"]["name"] for each in claims if reserved_for(each)]

    wait_until(lambda: len(served()) == 2, PATIENCE, "two of them served")
    had = served()
    [late] = set(names) - set(had)
    scene.wait_for_event(late, "2 cards: 2 held; 1 requested")
    scene.eyes.stays(lambda: served() == had, 4.0, "theirs for longer than patience lasts")
    assert {scene.eyes.node_of(name) for name in had} == {node}
    scene.hands.end(had[0])
    assert scene.eyes.node_of(scene.eyes.allocated(late)["metadata"]["name"]) == node


@pytest.fixture(
    params=[True, pytest.param(False, marks=pytest.mark.matrix)], ids=["with our gate", "without"]
)
def gates(scene: Scene, request: pytest.FixtureRequest) -> Iterator[list[Object]]:
    """Gates of a pod for which others are preempted. kube-scheduler, once it has failed on such a
    pod, gets no event for its allocation, and retries it after a time: five minutes elsewhere, half
    of one here."""
    if request.param:
        yield [{"name": SCHEDULING_GATE}]
        return
    components.restart(scene.cluster, SCHEDULER, "--pod-max-in-unschedulable-pods-duration=5s")
    yield []
    components.restart(scene.cluster, SCHEDULER, "--pod-max-in-unschedulable-pods-duration=5m")


def test_a_card_is_kept_while_pods_are_preempted_for_cpu(
    scene: Scene, controller: ControllerProcess, gates: list[Object]
) -> None:
    """They take longer to end than the controller's patience, while kube-scheduler nominates."""
    node = scene.machines.add([whole(0)])
    filler = pod_with("filler", scene.namespace, nodeSelector={"machine": node})
    scene.api.create(PODS, with_cpu(filler, MOST_OF_A_NODE))
    scene.eyes.bound("filler")
    scene.api.create(RESOURCE_CLAIMS, claim("one", scene.namespace))
    user = pod_with("user", scene.namespace, "one", priorityClassName=FIRST, schedulingGates=gates)
    scene.api.create(PODS, with_cpu(user, MOST_OF_A_NODE))
    wait_until(lambda: is_ending(scene.eyes.pod("filler")), PATIENCE, "the filler preempted")
    scene.eyes.stays(lambda: scene.eyes.node_of("one") == node, 6.0, "allocated on that node")
    scene.hands.end("filler")
    assert scene.eyes.bound("user") == node
    assert "gcu_controller_releases_total 0.0" in controller.probe("/metrics")[1]


def test_a_card_of_a_preempted_pod_is_free_again(
    scene: Scene, controller: ControllerProcess
) -> None:
    """Preempted for cpu, with a card: the card goes to whoever waits for one."""
    node = scene.machines.add([whole(0)])
    scene.api.create(RESOURCE_CLAIMS, claim("one", scene.namespace))
    scene.api.create(PODS, with_cpu(pod_with("victim", scene.namespace, "one"), MOST_OF_A_NODE))
    scene.eyes.bound("victim")
    scene.hands.start("waiting")
    scene.wait_for_event("waiting", "1 card: 1 held; 1 requested")
    urgent = pod_with("urgent", scene.namespace, priorityClassName=FIRST)
    scene.api.create(PODS, with_cpu(urgent, MOST_OF_A_NODE))
    wait_until(lambda: is_ending(scene.eyes.pod("victim")), PATIENCE, "the victim preempted")
    scene.hands.end("victim")
    assert scene.eyes.bound("urgent") == scene.eyes.bound("waiting") == node


def test_nobody_is_preempted_for_a_card(scene: Scene, controller: ControllerProcess) -> None:
    scene.machines.add([whole(0)])
    scene.hands.start("holder")
    scene.eyes.bound("holder")
    scene.hands.start("urgent", priorityClassName=FIRST)
    scene.wait_for_event("urgent", "1 card: 1 held; 1 requested")
    scene.eyes.stays(lambda: not is_ending(scene.eyes.pod("holder")), 5.0, "left alone")
    assert allocation(scene.eyes.claim("urgent")) is None
