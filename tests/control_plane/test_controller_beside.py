"""The rules by which the controller and kube-scheduler do not get in each other's way."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest

from dra_driver.kube.errors import Conflict
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, reserved_for
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane import components
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import IGNORES_PORTS, claim, node_of, pod_with, whole, with_port

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]


def test_claims_of_one_pod_go_together(scene: Scene, start_controller: Start) -> None:
    """Whichever kube-scheduler gives up by itself: neither is allocated anew before both were
    released."""
    start_controller(IGNORES_PORTS).wait_for_log("begins")
    small = scene.machines.add([whole(0), whole(1)])
    scene.api.create(PODS, with_port(pod_with("taker", scene.namespace, nodeName=small)))
    large = scene.machines.add([whole(bus) for bus in range(3)])
    listed = scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace)
    for name in ("one", "two"):
        scene.api.create(RESOURCE_CLAIMS, claim(name, scene.namespace))
    scene.api.create(PODS, with_port(pod_with("user", scene.namespace, "one", "two")))
    assert scene.eyes.bound("user") == large
    where: dict[str, str | None] = {}
    together = []
    for each in scene.writes_to_claims(listed.resource_version):
        where[each["metadata"]["name"]] = node_of(each) if allocation(each) else None
        together.append(frozenset(filter(None, where.values())))
    assert frozenset({small}) in together
    assert frozenset({small, large}) not in together


def where_it_was(scene: Scene, since: str) -> list[str | None]:
    """The nodes of the namespace's only claim after each write since then. From one node to
    another it may come only by way of none: otherwise a scheduler that reads it again after a
    conflict would bind the pod to the node of before."""
    seen = [node_of(each) if allocation(each) else None for each in scene.writes_to_claims(since)]
    for before, after in pairwise(seen):
        assert before is None or after is None or before == after
    return seen


def test_an_allocation_never_moves_in_one_step(scene: Scene, start_controller: Start) -> None:
    start_controller(IGNORES_PORTS).wait_for_log("begins")
    nodes = scene.machines.add_many(3, [whole(0)])
    listed = scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace)
    scene.api.create(RESOURCE_CLAIMS, claim("one", scene.namespace))
    for number, node in enumerate(sorted(nodes)[:2]):
        taker = pod_with(f"taker-{number}", scene.namespace, nodeName=node)
        scene.api.create(PODS, with_port(taker))
    scene.api.create(PODS, with_port(pod_with("user", scene.namespace, "one")))
    bound = scene.eyes.bound("user")
    assert where_it_was(scene, listed.resource_version)[-1] == bound


def come_together(scene: Scene, name: str) -> str:
    """The node of the pod, once its claim is allocated there and reserved for it alone."""
    node = scene.eyes.bound(name)

    def is_served() -> bool:
        users = [each["name"] for each in reserved_for(scene.eyes.claim(name))]
        return scene.eyes.node_of(name) == node and users == [name]

    wait_until(
        is_served, PATIENCE, "the claim where its pod is", seen=lambda: str(scene.eyes.claim(name))
    )
    return node


def test_a_scheduler_that_was_away_comes_to_where_the_claim_is(
    scene: Scene, controller: ControllerProcess
) -> None:
    """While it is stopped the allocation is given up and goes elsewhere. It then learns all at
    once; as it may decide in the middle of that, on the allocation of before, what counts is that
    pod and claim come together."""
    first = scene.machines.add([whole(0)])
    with components.stopped(scene.cluster):
        scene.hands.start("user")
        found = scene.eyes.allocated("user")
        assert node_of(found) == first
        second = scene.machines.add([whole(0), whole(1)])
        scene.hands.cordon(first)
        scene.hands.clear(found)
        wait_until(lambda: scene.eyes.node_of("user") == second, PATIENCE, "allocated elsewhere")
    assert come_together(scene, "user") in {first, second}


def test_no_pod_is_bound_apart_from_its_claim_whoever_meddles(
    scene: Scene, start_controller: Start
) -> None:
    """Somebody changes the claims all the time, so that kube-scheduler's reservations meet
    conflicts, and gives up allocations that are not reserved yet."""
    start_controller("--quiet-time=5").wait_for_log("begins")
    scene.machines.add_many(4, [whole(bus) for bus in range(4)])
    names = [f"user-{number}" for number in range(16)]
    for name in names:
        scene.hands.start(name)
    meddling = random.Random(1)
    end = time.monotonic() + 8.0
    while time.monotonic() < end:
        found = scene.eyes.claim(meddling.choice(names))
        with suppress(Conflict):
            if allocation(found) and not reserved_for(found) and meddling.random() < 0.5:
                scene.hands.clear(found)
            else:
                scene.hands.annotate(found, str(meddling.random()))
    for name in names:
        assert scene.eyes.bound(name) == scene.eyes.node_of(name)
    scene.eyes.no_card_twice(names)


def test_the_scheduler_restarts_in_the_middle(scene: Scene, controller: ControllerProcess) -> None:
    for _ in range(2):
        scene.machines.add([whole(bus) for bus in range(8)])
    names = [f"user-{number}" for number in range(16)]
    for number, name in enumerate(names):
        scene.hands.start(name)
        if number == 8:
            components.restart(scene.cluster)
    for name in names:
        assert scene.eyes.bound(name) == node_of(scene.eyes.claim(name))
    scene.eyes.no_card_twice(names)


def test_devices_that_are_given_past_us_are_told_and_counted(
    scene: Scene, start_controller: Start
) -> None:
    """By a class of somebody's own whose claims tolerate every taint: kube-scheduler allocates."""
    scene.machines.add([whole(0)])
    device_class = scene.hands.make_class('device.driver == "gcu.enflame.com"')
    open_claim = claim("theirs", scene.namespace)
    exactly = open_claim["spec"]["devices"]["requests"][0]["exactly"]
    exactly |= {"deviceClassName": device_class, "tolerations": [{"operator": "Exists"}]}
    scene.api.create(RESOURCE_CLAIMS, open_claim)
    scene.api.create(PODS, pod_with("theirs", scene.namespace, "theirs"))
    scene.eyes.bound("theirs")
    again = start_controller()
    again.wait_for_log("begins")
    notes = wait_until(lambda: scene.events_about("theirs"), PATIENCE, "an event")
    assert any("was allocated by kube-scheduler, past the controller" in each for each in notes)
    assert "gcu_controller_foreign_allocations 1.0" in again.probe("/metrics")[1]
    scene.hands.start("ours")
    wait_until(lambda: scene.events_about("ours"), PATIENCE, "an event about ours")
    assert allocation(scene.eyes.claim("ours")) is None
