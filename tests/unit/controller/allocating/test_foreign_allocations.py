"""Allocations of our devices by others are told, counted as used and never taken back."""

from __future__ import annotations

import copy

import pytest

from controller.cache.claims import MANAGER
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import TAINT_CHANGING
from tests.unit.controller.allocator.build import TAINT, allocated, device, pool
from tests.unit.controller.fake_api import written_by
from tests.unit.controller.world import World, pod


def past_us(world: World) -> Object:
    theirs = allocated("x", "a", "whole-0000-00-00-0")
    theirs["metadata"]["managedFields"] = written_by("kube-scheduler")
    return world.put(RESOURCE_CLAIMS, theirs)


def test_reported_once_with_writer_and_devices() -> None:
    world = World()
    found = past_us(world)
    world.run_until_idle()
    [told] = world.recorder.notes
    assert told.startswith(
        "ResourceClaim x: gcu.enflame.com/a/whole-0000-00-00-0 was allocated by kube-scheduler, "
        "past the controller"
    )
    assert world.metric("gcu_controller_foreign_allocations") == 1
    world.remove(RESOURCE_CLAIMS, found["metadata"]["name"])
    world.run_until_idle()
    assert world.metric("gcu_controller_foreign_allocations") == 0


def test_one_that_ends_while_another_replica_leads_is_not_counted() -> None:
    world = World()
    past_us(world)
    world.run_until_idle()
    world.fence.close()
    world.remove(RESOURCE_CLAIMS, "x")
    world.run_until_idle()
    assert world.metric("gcu_controller_foreign_allocations") == 0
    world.lead("2")
    world.run_until_idle()
    assert world.metric("gcu_controller_foreign_allocations") == 0


def test_counted_as_used() -> None:
    world = World(pool("a", [device("whole", 0)]))
    past_us(world)
    world.ask("p", "c")
    world.run_until_idle()
    assert world.node_of("c") is None


def test_ours_and_other_drivers_are_not_reported() -> None:
    world = World()
    ours = allocated("c", "a", "whole-0000-00-00-0")
    ours["metadata"]["managedFields"] = written_by(MANAGER)
    world.put(RESOURCE_CLAIMS, ours)
    world.put(PODS, pod("p", "c"))
    theirs = copy.deepcopy(allocated("y", "a", "gpu-0"))
    theirs["status"]["allocation"]["devices"]["results"][0]["driver"] = "gpu.example.com"
    world.put(RESOURCE_CLAIMS, theirs)
    world.run_until_idle()
    assert world.node_of("c") == "a"
    assert world.recorder.notes == []


COUNTERS = {"consumesCounters": [{"counterSet": "0000-00", "counters": {"card": {"value": "1"}}}]}
CHANGING = {"taints": [TAINT, {"key": TAINT_CHANGING, "effect": "NoSchedule"}]}


@pytest.mark.parametrize("form", [COUNTERS, CHANGING, COUNTERS | CHANGING], ids=str)
def test_what_kube_scheduler_gave_before_the_controller_allocated_is_not_reported(
    form: Object,
) -> None:
    """A card in use keeps its form until its last claim ends."""
    world = World(pool("a", [device("whole", 0) | form, device("whole", 1)]))
    past_us(world)
    world.run_until_idle()
    assert world.recorder.notes == []
    assert world.metric("gcu_controller_foreign_allocations") == 0


def test_of_several_devices_those_are_named_that_are_the_controllers() -> None:
    world = World(pool("a", [device("whole", 0) | COUNTERS, device("whole", 1)]))
    theirs = allocated("x", "a", "whole-0000-00-00-0", "whole-0000-01-00-0")
    theirs["metadata"]["managedFields"] = written_by("kube-scheduler")
    world.put(RESOURCE_CLAIMS, theirs)
    world.run_until_idle()
    [told] = world.recorder.notes
    assert told.startswith("ResourceClaim x: gcu.enflame.com/a/whole-0000-01-00-0 was allocated by")
