"""The clock that starts at an allocation: who gives devices back, to whom, and when."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controller.allocating.bind_clock import UNUSED_LIMIT
from controller.cache.claims import MANAGER, given_up
from controller.cache.pods import BINDING_LIMIT
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.errors import Conflict, Unavailable
from dra_driver.kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object, allocation
from tests.unit.controller.allocator.build import allocated, claim, device, pool
from tests.unit.controller.fake_api import written_by
from tests.unit.controller.world import (
    PATIENCE,
    QUIET,
    RETRY,
    World,
    pod,
    reserved,
    unallocated,
)

SCHEDULER_ERROR = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulerError",
    "message": 'running PreBind plugin "DynamicResources": Duplicate value',
}
VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def one_card(*names: str, **spec: Any) -> World:
    """A node with one card, and pods that each want it, in this order; the first with `spec`."""
    world = World(pool("a", [device("whole", 0)]))
    for name in names:
        put(world, name, **(spec if name == names[0] else {}))
    world.run_until_idle()
    return world


def put(world: World, name: str, **spec: Any) -> None:
    world.ask(name, f"c-{name}", **spec)


def holders(world: World) -> list[str]:
    """The pods whose claims are allocated."""
    return [
        name.removeprefix("c-")
        for (resource, name), found in sorted(world.api.live.items(), key=lambda each: each[0][1])
        if resource is RESOURCE_CLAIMS and allocation(found) is not None
    ]


def has_status(world: World, name: str, **status: object) -> None:
    found = copy.deepcopy(world.api.live[PODS, name])
    found["status"] |= status
    world.put(PODS, found)
    world.run_until_idle()


def is_bound(world: World, name: str, node: str = "a") -> None:
    world.put(RESOURCE_CLAIMS, reserved(world.claim(f"c-{name}"), name))
    found = copy.deepcopy(world.api.live[PODS, name])
    found["spec"]["nodeName"] = node
    world.put(PODS, found)
    world.run_until_idle()


def test_a_pod_that_no_scheduler_tries_gives_its_card_to_one_that_waits() -> None:
    world = one_card("first", "second", schedulerName="batch")
    world.after(PATIENCE - 0.1)
    assert holders(world) == ["first"]
    world.recorder.notes.clear()
    world.after(0.1)
    assert holders(world) == ["second"]
    note = (
        "pod default/first held whole-0000-00-00-0 of node a for 30 s and was not bound, because "
        "no scheduler has tried the pod; its schedulerName is batch. They are released for pod "
        "default/second, which waits. Nothing is allocated for pod default/first in the next 60 s, "
        "or until a scheduler reports on it"
    )
    assert f"Pod first: {note}" in world.recorder.notes
    assert f"ResourceClaim c-first: {note}" in world.recorder.notes


def test_one_that_comes_later_gets_it_too() -> None:
    world = one_card("first")
    world.after(2 * PATIENCE)
    assert holders(world) == ["first"]
    put(world, "second")
    world.run_until_idle()
    world.after(PATIENCE)
    assert holders(world) == ["second"]


def test_an_error_of_binding_is_no_reason_to_keep_a_card() -> None:
    world = one_card("first", "second")
    has_status(world, "first", conditions=[SCHEDULER_ERROR])
    world.recorder.notes.clear()
    world.after(PATIENCE)
    assert holders(world) == ["second"]
    assert "default-scheduler says SchedulerError: running PreBind" in world.recorder.notes[0]
    assert "until a scheduler" not in world.recorder.notes[0]


def test_with_nobody_waiting_it_is_kept_for_minutes() -> None:
    world = one_card("first")
    for _ in range(10):
        world.after(UNUSED_LIMIT / 10 - 0.1)
    assert holders(world) == ["first"]
    world.after(1.0)
    assert holders(world) == []


def test_nor_is_it_released_for_a_pod_that_cannot_use_it() -> None:
    world = one_card("first")
    put(world, "elsewhere", nodeSelector={"zone": "x"})
    world.after(PATIENCE)
    world.after(PATIENCE)
    assert holders(world) == ["first"]


def test_pauses_grow() -> None:
    """RETRY is both the first and the longest pause here."""
    world = one_card("first")
    world.after(UNUSED_LIMIT)
    assert holders(world) == []
    world.after(RETRY - 0.1)
    assert holders(world) == []
    world.after(0.1)
    assert holders(world) == ["first"]


def test_a_scheduler_that_comes_back_ends_the_pause() -> None:
    world = one_card("first")
    world.after(UNUSED_LIMIT)
    condition = SCHEDULER_ERROR | {
        "reason": "Unschedulable",
        "message": "cannot allocate all claims",
    }
    has_status(world, "first", conditions=[condition])
    assert holders(world) == []
    world.after(QUIET)
    assert holders(world) == ["first"]


def test_two_pods_that_nobody_binds_do_not_take_turns() -> None:
    world = one_card("first", "second")
    world.after(PATIENCE)
    assert holders(world) == ["second"]
    world.after(RETRY)  # the first one waits again
    for _ in range(4):
        world.after(PATIENCE)
        assert holders(world) == ["second"]
    world.after(UNUSED_LIMIT - RETRY - 4 * PATIENCE)
    assert holders(world) == ["first"]


def test_of_several_holders_one_gives_its_card_to_one_pod() -> None:
    world = World(pool("a", [device("whole", 0), device("whole", 1)]))
    for name in ("first", "second", "third"):
        put(world, name)
    world.run_until_idle()
    world.after(PATIENCE)
    assert len(holders(world)) == 2
    assert "third" in holders(world)
    world.after(PATIENCE)
    assert len(holders(world)) == 2


def test_a_slow_cluster_loses_nothing() -> None:
    """Kube-scheduler took 25 s for each of the last pods."""
    world = World(pool("a", [device("whole", 0), device("whole", 1)]))
    for name in ("bound", "slow", "waits"):
        put(world, name)
    world.run_until_idle()
    world.after(25.0)
    is_bound(world, "bound")
    world.after(25.0 - 0.1)
    assert holders(world) == ["bound", "slow"]
    world.after(0.2)
    assert holders(world) == ["bound", "waits"]


def test_what_is_being_bound_is_kept() -> None:
    world = one_card("first", "second")
    has_status(world, "first", nominatedNodeName="a")
    world.after(BINDING_LIMIT - 0.1)
    assert holders(world) == ["first"]
    world.after(0.2)
    assert holders(world) == ["second"]


@pytest.mark.parametrize(("minor", "is_kept"), [(34, True), (35, False)])
def test_late_volumes_are_waited_for_where_no_node_is_nominated(
    minor: int, *, is_kept: bool
) -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.api.release = ServerVersion(1, minor)
    world.put_unseen(PERSISTENT_VOLUME_CLAIMS, volume_claim())
    put(world, "first", volumes=VOLUMES)
    world.run_until_idle()
    put(world, "second")
    world.run_until_idle()
    world.after(PATIENCE)
    assert holders(world) == ["first" if is_kept else "second"]
    if is_kept:
        world.after(BINDING_LIMIT - PATIENCE)
        assert holders(world) == ["second"]


def volume_claim() -> Object:
    return {"metadata": {"namespace": "default", "name": "data"}, "spec": {}}


def test_a_claim_of_two_pods_that_nobody_binds_is_released_too() -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, claim("both"))
    for name in ("one", "two"):
        world.put(PODS, pod(name, "both"))
    world.run_until_idle()
    put(world, "third")
    world.run_until_idle()
    world.after(PATIENCE)
    assert holders(world) == ["third"]


def test_what_was_reserved_meanwhile_stays() -> None:
    world = one_card("first", "second")
    world.put_unseen(RESOURCE_CLAIMS, reserved(world.claim("c-first"), "first"))
    world.put(RESOURCE_CLAIMS, world.claim("c-first"))
    world.after(UNUSED_LIMIT)
    assert holders(world) == ["first"]


def test_pods_of_other_schedulers_are_refused_where_the_served_ones_are_named() -> None:
    world = World(scheduler_names="default-scheduler, mine")
    put(world, "theirs", schedulerName="batch")
    put(world, "ours", schedulerName="mine")
    world.run_until_idle()
    assert holders(world) == ["ours"]
    assert world.recorder.notes[0] == (
        "Pod theirs: pod default/theirs has schedulerName batch, and GCUs are allocated only for "
        "pods whose schedulerName is default-scheduler or mine; create it again with such a name, "
        "or add batch to controller.schedulerNames of the chart"
    )


def test_a_claim_is_kept_while_another_pod_is_bound_with_it() -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, claim("both"))
    for name in ("one", "two"):
        world.put(PODS, pod(name, "both"))
    world.run_until_idle()
    put(world, "third")
    has_status(world, "two", nominatedNodeName="a")
    world.after(PATIENCE)
    assert holders(world) == ["both"]


def test_the_clock_of_a_second_allocation_starts_anew() -> None:
    """The server stored it, and its answer was lost."""
    world = one_card("first")
    world.after(UNUSED_LIMIT)
    write = world.api.replace

    def lost(resource: Resource, body: Object, *, subresource: str = "") -> Object:
        stored = write(resource, body, subresource=subresource)
        if subresource == "status":
            world.api.replace = write  # type: ignore[method-assign]
            raise Unavailable("no answer")
        return stored

    world.api.replace = lost  # type: ignore[method-assign]
    world.after(RETRY)
    world.after(QUIET)
    assert holders(world) == ["first"]


@pytest.mark.parametrize("error", [Unavailable("503"), Conflict("changed", status=409)])
def test_a_release_that_fails_is_tried_again(error: Exception) -> None:
    world = one_card("first", "second", schedulerName="batch")
    world.after(PATIENCE - 0.1)
    world.api.write_errors = [error]
    world.after(0.1)
    world.after(PATIENCE)
    assert holders(world) == ["second"]


def test_nothing_is_released_for_a_pod_that_avoids_the_node() -> None:
    """It failed there; and another card is free."""
    world = World(pool("a", [device("whole", 0), device("whole", 1)]))
    put(world, "avoids")
    world.run_until_idle()
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c-avoids")))
    world.run_until_idle()
    put(world, "holds")
    world.run_until_idle()
    world.after(PATIENCE)
    assert holders(world) == ["holds"]


def test_a_claim_that_kube_scheduler_cleared_of_a_group_counts_as_given_up() -> None:
    """It was reserved for the PodGroup."""
    claimed = allocated("c", "a", "whole-0000-00-00-0")
    claimed["status"]["reservedFor"] = [{"resource": "podgroups", "name": "g", "uid": "uid-g"}]
    claimed["metadata"] |= {"uid": "uid-c", "managedFields": written_by(MANAGER)}
    waiting = pod("p", "c")
    assert given_up(claimed, unallocated(claimed), waiting, "uid-g")
    assert not given_up(claimed, unallocated(claimed), waiting, "")
