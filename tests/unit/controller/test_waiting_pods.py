"""What makes waiting pods active again, and in which order."""

from __future__ import annotations

from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import (
    allocated,
    claim,
    device,
    pool,
    request,
)
from tests.unit.controller.world import FAIRNESS, World, node, pod


def test_a_new_slice_brings_waiting_pods_up_by_urgency() -> None:
    world = World([])
    for name, priority in (("low", 1), ("high", 9)):
        world.ask(name, name, priority=priority)
    world.run_until_idle()
    [published] = pool("a", [device("whole", 0)])
    world.put(RESOURCE_SLICES, published)
    world.run_until_idle()
    assert world.node_of("high") == "a"
    assert world.node_of("low") is None


def test_a_freed_card_goes_to_the_next() -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, allocated("x", "a", "whole-0000-00-00-0"))
    world.ask("p", "c")
    world.run_until_idle()
    world.remove(RESOURCE_CLAIMS, "x")
    assert world.run_until_idle() == ["c", "c status"]


def test_a_heartbeat_makes_no_pod_active() -> None:
    world = World([])
    world.ask("p", "c")
    world.run_until_idle()
    told = len(world.recorder.notes)
    beating = node("a")
    beating["status"]["conditions"][0]["lastHeartbeatTime"] = "later"
    world.put(NODES, beating)
    world.run_until_idle()
    assert len(world.recorder.notes) == told


def test_labels_and_annotations_bring_no_waiting_pod_up() -> None:
    """A tenant may change them all the time, and of a claim that many pods name."""
    world = World(pool("a", [device("whole", 0)]))
    asked = claim("c", [request(count=2)])
    world.put(RESOURCE_CLAIMS, asked)
    for number in range(5):
        world.put(PODS, pod(f"p{number}", "c"))
    world.run_until_idle()
    before = world.metric("gcu_controller_unsatisfied_total")
    for number in range(5):
        noted = {"annotations": {"note": str(number)}, "labels": {"nth": str(number)}}
        world.put(RESOURCE_CLAIMS, asked | {"metadata": asked["metadata"] | noted})
        user = pod("p1", "c")
        world.put(PODS, user | {"metadata": user["metadata"] | noted})
        world.run_until_idle()
    assert world.metric("gcu_controller_unsatisfied_total") == before == 5
    world.put(RESOURCE_CLAIMS, asked | {"spec": claim("c")["spec"]})
    world.run_until_idle()
    assert world.node_of("c") == "a"


def for_a_class_of_somebody(expression: str, *slices: Object) -> World:
    """Pod `p` waits for a claim of the class `some`, which has that selector."""
    world = World(slices)
    world.put(DEVICE_CLASSES, some_class(expression))
    world.put(RESOURCE_CLAIMS, claim("c", [request(cls="some")]))
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == []
    return world


def some_class(expression: str) -> Object:
    return {
        "metadata": {"name": "some"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def test_a_class_that_is_corrected_brings_its_pods_up() -> None:
    """kube-scheduler says the same about the pod before and after, so that the pod stays as it
    is."""
    world = for_a_class_of_somebody(
        'device.driver == "gcu.enflame.co"', *pool("a", [device("whole", 0)])
    )
    world.put(DEVICE_CLASSES, some_class('device.driver == "gcu.enflame.com"'))
    assert world.run_until_idle() == ["c", "c status"]


def test_a_claim_that_is_ours_by_what_is_published_later_is_served() -> None:
    world = for_a_class_of_somebody('device.driver.startsWith("gcu.")')
    for each in pool("a", [device("whole", 0)]):
        world.put(RESOURCE_SLICES, each)
    world.after(FAIRNESS)
    assert world.node_of("c") == "a"


def test_pods_of_other_drivers_have_few_steps() -> None:
    world = for_a_class_of_somebody('device.driver == "gpu.example.com"')
    before = world.metric("gcu_controller_decision_wait_seconds_count")
    for _ in range(3):
        world.after(FAIRNESS)
    assert world.metric("gcu_controller_decision_wait_seconds_count") == before + 3
    world.remove(PODS, "p")
    world.run_until_idle()
    assert world.queue.next_wakeup() is None
