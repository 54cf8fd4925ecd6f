"""A pod is read live before its claim is allocated again: the watch may be late."""

from __future__ import annotations

import pytest

from controller.queue.event_queue import ResourceEvent
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Conflict
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import allocated, claim, device, pool
from tests.unit.controller.world import QUIET, World, node, pod, unallocated

CARD = "whole-0000-00-00-0"


def released(slices: list[Object] | None = None, users: str = "p") -> World:
    """A world in which claim `c` of these pods was on node a, until kube-scheduler cleared it."""
    world = World(slices)
    world.put(RESOURCE_CLAIMS, claim("c"))
    for name in users:
        world.put(PODS, pod(name, "c"))
    world.run_until_idle()
    assert world.node_of("c") == "a"
    world.api.reads.clear()
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    world.run_until_idle()
    return world


def test_the_deciding_thread_does_not_wait_for_it() -> None:
    world = released()
    world.pool.is_paused = True
    world.after(QUIET)
    assert world.api.reads == []
    world.pool.resume()
    assert world.api.reads == ["pods p"]
    world.run_until_idle()
    assert world.node_of("c") == "b"


def test_no_other_pod_gets_its_devices_during_the_read() -> None:
    world = released()
    for name, on in (("x", "a"), ("y", "b")):
        world.put(RESOURCE_CLAIMS, allocated(name, on, CARD))
    world.run_until_idle()
    world.pool.is_paused = True
    world.after(QUIET)
    world.ask("q", "d")
    world.run_until_idle()
    world.pool.resume()
    world.run_until_idle()
    assert (world.node_of("c"), world.node_of("d")) == ("b", None)


def test_it_is_not_read_while_nothing_can_be_had() -> None:
    world = released(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, allocated("other", "a", CARD))
    world.after(QUIET)
    for number in range(10):
        world.put(NODES, node(f"new-{number}"))
        world.run_until_idle()
    assert world.api.reads == []


def test_a_pod_that_was_bound_meanwhile_is_served_on_its_node() -> None:
    world = released()
    world.api.put(PODS, pod("p", "c", nodeName="a"))  # the watch has not delivered it yet
    world.after(QUIET)
    assert world.node_of("c") == "a"


def test_the_pod_that_was_read_counts_until_the_watch_delivers_it() -> None:
    world = released()
    bound = world.put_unseen(PODS, pod("p", "c", nodeName="a"))
    world.put(RESOURCE_CLAIMS, allocated("other", "a", CARD))
    world.after(QUIET)
    world.put(NODES, node("new"))
    assert world.run_until_idle() == []
    assert world.api.reads == ["pods p"]
    world.events.put(ResourceEvent(PODS, Change.MODIFIED, bound))
    world.remove(RESOURCE_CLAIMS, "other")
    world.run_until_idle()
    assert world.node_of("c") == "a"


@pytest.mark.parametrize("how", ["replaced", "deleted"])
def test_a_pod_that_went_meanwhile_gets_nothing(how: str) -> None:
    """Nor do two that share a claim bring each other up for ever."""
    world = released(users="pq")
    for name in "pq":
        other = pod(name, "c")
        other["metadata"]["uid"] = f"another-{name}"
        world.api.put(PODS, other)
        if how == "deleted":
            del world.api.live[PODS, name]
    assert world.after(QUIET) == []
    assert sorted(world.api.reads) == ["pods p", "pods q"]


def test_others_may_have_what_a_pod_that_went_would_have_got() -> None:
    world = released(pool("a", [device("whole", 0)]))
    world.pool.is_paused = True
    world.after(600.0)
    world.ask("q", "d")
    world.run_until_idle()
    del world.api.live[PODS, "p"]
    world.pool.resume()
    world.run_until_idle()
    assert world.node_of("d") == "a"


def test_a_pod_that_was_first_read_to_have_failed_waits_no_longer() -> None:
    """What follows from that is not lost when the watch tells of the same version."""
    world = released(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, allocated("other", "a", CARD))
    world.after(600.0)
    assert world.metric("gcu_controller_waiting_pods") == 1
    failed = world.put_unseen(PODS, pod("p", "c", status={"phase": "Failed"}))
    world.remove(RESOURCE_CLAIMS, "other")
    assert world.run_until_idle() == []
    assert world.api.reads == ["pods p"]
    world.events.put(ResourceEvent(PODS, Change.MODIFIED, failed))
    world.run_until_idle()
    assert world.metric("gcu_controller_waiting_pods") == 0


def test_it_is_read_before_each_try() -> None:
    world = released()
    world.api.write_errors = [Conflict("changed", status=409)]
    assert world.after(QUIET) == ["c status"]
    world.api.put(PODS, pod("p", "c", nodeName="a"))  # the watch has not delivered it yet
    world.after(1.0)
    assert world.node_of("c") == "a"
