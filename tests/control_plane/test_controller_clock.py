"""Cards that nobody will use are taken back: an allocation has so long to be reserved, and then
goes to a pod that waits."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, reserved_for
from tests.cluster.waiting import wait_until
from tests.control_plane import components
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.held_requests import Held, Proxy, held_scheduler
from tests.control_plane.objects import claim, pod_with, whole

pytestmark = pytest.mark.control_plane

SERVED_SOON: Final = 30.0
"""Seconds for a pod whose cards another one holds: the patience is three."""

THREE_TIMES_THE_PATIENCE: Final = 9.0
NOBODY: Final = "batch-scheduler"
FAILED, RELEASED = "Warning GcuAllocationFailed", "Warning GcuAllocationReleased"


def wait_for_report(scene: Scene, name: str, reason: str, words: str) -> None:
    """Return when an event of that reason about the object has these words."""

    def is_told() -> bool:
        events = scene.events_about(name)
        return any(each.startswith(reason) and words in each for each in events)

    wait_until(
        is_told, SERVED_SOON, f"{reason}: {words}", seen=lambda: str(scene.events_about(name))
    )


def is_allocated(scene: Scene, *names: str) -> bool:
    return all(allocation(scene.eyes.claim(name)) for name in names)


def start_large(scene: Scene, name: str, **spec: str) -> None:
    """A pod that uses a claim for four cards, `<name>-cards`."""
    scene.api.create(RESOURCE_CLAIMS, claim(f"{name}-cards", scene.namespace, count=4))
    scene.api.create(PODS, pod_with(name, scene.namespace, f"{name}-cards", **spec))


def test_cards_of_a_pod_that_nobody_schedules_go_to_one_that_waits(
    scene: Scene, controller: ControllerProcess
) -> None:
    node = scene.machines.add([whole(bus) for bus in range(4)])
    start_large(scene, "nobody", schedulerName=NOBODY)
    scene.eyes.allocated("nobody-cards")
    scene.hands.start("other")
    assert scene.eyes.bound("other", SERVED_SOON) == node
    for name in ("nobody", "nobody-cards"):
        wait_for_report(scene, name, RELEASED, f"{scene.namespace}/other")
    wait_for_report(scene, "nobody", RELEASED, NOBODY)
    assert not is_allocated(scene, "nobody-cards")


def test_a_claim_that_a_pod_names_twice_is_refused(
    scene: Scene, controller: ControllerProcess
) -> None:
    """kube-scheduler's PreBind fails on such a pod for ever: it reserves the claim twice."""
    scene.machines.add([whole(bus) for bus in range(4)])
    listed = scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace)
    scene.api.create(RESOURCE_CLAIMS, claim("cards", scene.namespace, count=4))
    twice = pod_with("twice", scene.namespace)
    references = [{"name": name, "resourceClaimName": "cards"} for name in ("one", "two")]
    twice["spec"]["resourceClaims"] = references
    used = [{"name": each["name"]} for each in references]
    twice["spec"]["containers"][0]["resources"] = {"claims": used}
    scene.api.create(PODS, twice)
    wait_for_report(scene, "twice", FAILED, "cards")
    scene.hands.start("other")
    scene.eyes.bound("other", SERVED_SOON)
    writes = scene.writes_to_claims(listed.resource_version)
    assert not any(allocation(each) for each in writes if each["metadata"]["name"] == "cards")


def hold(proxy: Proxy, scene: Scene, point: str, node: str) -> Held:
    """What kube-scheduler writes next for the pod `first` when it has decided."""
    if point == "nomination":
        path = f"/api/v1/namespaces/{scene.namespace}/pods/first/status"
        return proxy.hold("PATCH", path, f'"nominatedNodeName":"{node}"'.encode())
    return proxy.hold("PUT", reservation_path(scene))


def reservation_path(scene: Scene) -> str:
    return RESOURCE_CLAIMS.path(scene.namespace, "first", "status")


@pytest.mark.parametrize(
    ("point", "nominates"),
    [
        pytest.param("reservation", "false", id="before 1.35"),
        pytest.param("nomination", "true", id="since 1.35"),
    ],
)
def test_no_pod_is_parted_from_its_claim_by_the_clock(
    scene: Scene, start_controller: Start, tmp_path: Path, point: str, nominates: str
) -> None:
    """kube-scheduler is stopped between reading a claim and reserving it. When it goes on, its
    reservation meets the release in the claim's resourceVersion."""
    node = scene.machines.add([whole(0)])
    start_controller("--node-retry=600").wait_for_log("begins")
    gates = f"--feature-gates=NominatedNodeNameForExpectation={nominates}"
    with held_scheduler(scene.cluster, tmp_path, gates) as proxy:
        held = hold(proxy, scene, point, node)
        scene.hands.start("first")
        held.wait_for_arrival()
        with components.stopped(scene.cluster):
            scene.hands.start("second")
            scene.eyes.released("first", SERVED_SOON)
            scene.eyes.allocated("second", SERVED_SOON)
        held.let_go()
        assert proxy.wait_for_answer("PUT", reservation_path(scene)) == 409
        assert scene.eyes.bound("second") == node
        users = reserved_for(scene.eyes.claim("second"))
        assert [each["name"] for each in users] == ["second"]
        scene.eyes.stays(
            lambda: not scene.eyes.pod("first")["spec"].get("nodeName"), 3.0, "it waits"
        )
        assert not is_allocated(scene, "first")
        assert not reserved_for(scene.eyes.claim("first"))
    scene.hands.end("second")
    scene.api.delete(RESOURCE_CLAIMS, "second", namespace=scene.namespace)


def test_what_is_being_bound_is_kept(scene: Scene, controller: ControllerProcess) -> None:
    """kube-scheduler, played by the test, has nominated the node, and takes its time."""
    node = scene.machines.add([whole(0)])
    scene.hands.start("first", schedulerName=NOBODY)
    scene.eyes.allocated("first")
    scene.hands.set_status(PODS, "first", {"nominatedNodeName": node})
    scene.hands.start("second")
    scene.wait_for_event("second", "1 card: 1 held")
    scene.eyes.stays(
        lambda: is_allocated(scene, "first"), THREE_TIMES_THE_PATIENCE, "kept for the first"
    )


def test_a_scheduler_that_is_not_served(scene: Scene, start_controller: Start) -> None:
    start_controller("--scheduler-names=default-scheduler").wait_for_log("begins")
    scene.machines.add([whole(0)])
    scene.hands.start("theirs", schedulerName=NOBODY)
    wait_for_report(scene, "theirs", FAILED, NOBODY)
    wait_for_report(scene, "theirs", FAILED, "schedulerNames")
    scene.hands.start("ours")
    scene.eyes.bound("ours", SERVED_SOON)
    assert not is_allocated(scene, "theirs")


def test_a_scheduler_that_is_down_costs_nothing_while_nobody_waits(
    scene: Scene, controller: ControllerProcess
) -> None:
    scene.machines.add([whole(0), whole(1)])
    names = ("first", "second")
    with components.away(scene.cluster):
        for name in names:
            scene.hands.start(name)
        found = [scene.eyes.allocated(name) for name in names]
        scene.eyes.stays(
            lambda: is_allocated(scene, *names), THREE_TIMES_THE_PATIENCE, "both are kept"
        )
    for name, before in zip(names, found, strict=True):
        scene.eyes.bound(name, SERVED_SOON)
        assert allocation(scene.eyes.claim(name)) == allocation(before)
