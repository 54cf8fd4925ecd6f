"""How long pods take from their creation until they are allocated, and until they run."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.world import World, pod, reserved

CARD = "whole-0000-00-00-0"
RUNNING = "gcu_controller_running_duration_seconds"
ALLOCATED = "gcu_controller_allocation_duration_seconds"


def created(name: str, *claims: str, phase: str = "Pending") -> Object:
    """Ten seconds ago: in `World` it is midnight of 2026-01-02."""
    found = pod(name, *claims, status={"phase": phase}, nodeName="a")
    found["metadata"]["creationTimestamp"] = "2026-01-01T23:59:50Z"
    return found


def samples(world: World, name: str) -> tuple[float, float]:
    """The number of samples, and their sum in seconds."""
    return world.metric(f"{name}_count"), world.metric(f"{name}_sum")


@pytest.mark.parametrize("allocator", [ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER])
def test_until_a_pod_runs(allocator: str) -> None:
    world = World(allocator=allocator)
    world.put(RESOURCE_CLAIMS, reserved(allocated("c", "a", CARD), "p"))
    for phase in ("Pending", "Running", "Running"):
        world.put(PODS, created("p", "c", phase=phase))
        world.run_until_idle()
    assert samples(world, RUNNING) == (1, 10)


@pytest.mark.parametrize(
    ("leads", "phases", "claims"),
    [
        pytest.param(False, ("Pending", "Running"), ["c"], id="another replica leads"),
        pytest.param(True, ("Running",), ["c"], id="nobody saw it start"),
        pytest.param(True, ("Pending", "Succeeded"), ["c"], id="nobody saw it run"),
        pytest.param(True, ("Pending", "Running"), ["other"], id="devices of another driver"),
    ],
)
def test_what_is_not_counted(*, leads: bool, phases: tuple[str, ...], claims: list[str]) -> None:
    world = World()
    if not leads:
        world.fence.close()
    world.put(RESOURCE_CLAIMS, reserved(allocated("c", "a", CARD), "p"))
    world.put(
        RESOURCE_CLAIMS, reserved(allocated("other", "a", "x", driver="nic.example.com"), "p")
    )
    for phase in phases:
        world.put(PODS, created("p", *claims, phase=phase))
        world.run_until_idle()
    assert samples(world, RUNNING) == (0, 0)


def test_until_kube_scheduler_has_allocated_all_claims() -> None:
    world = World(allocator=ALLOCATOR_SCHEDULER)
    for name in ("first", "second"):
        world.put(RESOURCE_CLAIMS, claim(name))
    world.put(PODS, created("p", "first", "second"))
    world.run_until_idle()
    counts = []
    for name in ("first", "second"):
        world.put(RESOURCE_CLAIMS, reserved(allocated(name, "a", CARD), "p"))
        world.run_until_idle()
        counts.append(samples(world, ALLOCATED))
    assert counts == [(0, 0), (1, 10)]
