"""The scheduling gate: pods that carry it are served before kube-scheduler looks at them."""

from __future__ import annotations

import pytest

from dra_driver.kube.errors import Conflict, KubeError, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from tests.unit.controller.allocator.build import allocated, claim, request
from tests.unit.controller.world import PATIENCE, World, pod, unschedulable


def gated(*claims: str, others: tuple[str, ...] = ()) -> Object:
    return pod("p", *claims, schedulingGates=[{"name": n} for n in (SCHEDULING_GATE, *others)])


def gates(world: World) -> list[str]:
    found = world.api.live[PODS, "p"]
    return [each["name"] for each in found["spec"]["schedulingGates"]]


def test_lifted_when_all_claims_are_allocated() -> None:
    world = World()
    for name in ("c", "theirs"):
        world.put(RESOURCE_CLAIMS, claim(name, [request(cls="gpu.example.com")] * (name != "c")))
    world.put(PODS, gated("c", "theirs"))
    assert world.run_until_idle() == ["c", "c status", "p patch"]
    assert gates(world) == []


WITHOUT_NEED = {
    "no claims": [],
    "another driver's": [claim("c", [request(cls="gpu.example.com")])],
    "allocated already": [allocated("c", "a", "whole-0000-00-00-0")],
}


@pytest.mark.parametrize("claims", WITHOUT_NEED.values(), ids=WITHOUT_NEED)
def test_lifted_at_once_where_nothing_of_ours_is_awaited(claims: list[Object]) -> None:
    world = World()
    for each in claims:
        world.put(RESOURCE_CLAIMS, each)
    world.put(PODS, gated(*(each["metadata"]["name"] for each in claims)))
    assert world.run_until_idle() == ["p patch"]
    assert world.after(3600.0) == []


def test_not_lifted_before_there_are_devices() -> None:
    world = World([])
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, gated("c"))
    assert world.run_until_idle() == []
    assert world.recorder.notes[0].startswith("Pod p: no ResourceSlice")


def test_not_lifted_before_its_claim_exists() -> None:
    world = World()
    world.put(PODS, gated("c"))
    assert world.run_until_idle() == []
    world.put(RESOURCE_CLAIMS, claim("c"))
    assert world.run_until_idle() == ["c", "c status", "p patch"]


def test_a_pod_that_others_hold_too_is_left_alone_until_they_let_go() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, gated("c", others=("example.com/quota",)))
    assert world.run_until_idle() == []
    world.put(PODS, gated("c"))
    assert world.run_until_idle() == ["c", "c status", "p patch"]


def test_a_new_leader_catches_up() -> None:
    world = World()
    world.fence.close()
    world.put(RESOURCE_CLAIMS, allocated("c", "a", "whole-0000-00-00-0"))
    world.put(PODS, gated("c"))
    assert world.run_until_idle() == []
    world.lead("2")
    assert world.run_until_idle() == ["p patch"]


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("no answer"),
        Conflict("too many others change the pod, or a webhook refuses in that word", status=409),
    ],
    ids=["no answer", "conflict"],
)
def test_a_lift_that_failed_is_tried_again(error: KubeError) -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, allocated("c", "a", "whole-0000-00-00-0"))
    world.put(PODS, gated("c"))
    world.api.write_errors = [error]
    world.run_until_idle()
    assert gates(world) == [SCHEDULING_GATE]
    world.after(1.0)
    assert gates(world) == []


def test_a_pod_of_the_same_name_keeps_its_own() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, allocated("c", "a", "whole-0000-00-00-0"))
    world.put(PODS, gated("c"))
    other = gated("c")
    other["metadata"]["uid"] = "another"
    world.put_unseen(PODS, other)
    world.run_until_idle()
    assert gates(world) == [SCHEDULING_GATE]


def test_what_the_scheduler_says_before_the_answer_to_the_lifting_is_not_lost() -> None:
    world = World()
    world.ask("p", "c")
    world.run_until_idle()
    world.pool.is_paused = True
    world.put(PODS, pod("q", "c", schedulingGates=[{"name": SCHEDULING_GATE}]))
    while not world.pool.submitted:
        world.worker.run_once(0)
    world.remove(PODS, "p")
    world.put(PODS, pod("q", "c", schedulingGates=[], status=unschedulable()))
    for _ in range(10):
        world.worker.run_once(0)
    world.pool.resume()
    world.run_until_idle()
    assert world.after(4 * PATIENCE) == ["c status"]
