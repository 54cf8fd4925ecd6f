"""While kube-scheduler allocates, the controller reports what is allocated twice, and no more."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_SCHEDULER, SCHEDULING_GATE
from tests.unit.controller.allocator.build import allocated, claim, device, pool
from tests.unit.controller.world import World, pod

CONFLICTS = "gcu_controller_conflicting_allocations"


@pytest.fixture
def world() -> World:
    card = [device(mode, 0) for mode in ("whole", "shared", "drs")]
    return World(pool("a", card), allocator=ALLOCATOR_SCHEDULER)


def test_nothing_is_allocated_or_released(world: World) -> None:
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(RESOURCE_CLAIMS, allocated("theirs", "a", "whole-0000-00-00-0"))
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == []
    assert world.after(3600) == []
    assert world.recorder.notes == []
    assert world.metric("gcu_controller_waiting_pods") == 0


def test_our_gate_is_lifted_at_once(world: World) -> None:
    world.ask("p", "c", schedulingGates=[{"name": SCHEDULING_GATE}])
    assert world.run_until_idle() == ["p patch"]


def test_templates_for_limits_are_made(world: World) -> None:
    waiting = pod("p")
    waiting["spec"]["resourceClaims"] = [
        {"name": "gcu", "resourceClaimTemplateName": "enflame-shared-gcu-2"}
    ]
    world.put(PODS, waiting)
    assert world.run_until_idle() == ["enflame-shared-gcu-2 create"]
    assert (RESOURCE_CLAIM_TEMPLATES, "enflame-shared-gcu-2") in world.api.live


def shares(name: str, slices: int) -> Object:
    return allocated(name, "a", "shared-0000-00-00-0", consumed={"slices": str(slices)})


@pytest.mark.parametrize(
    ("second", "conflict"),
    [
        pytest.param(
            allocated("second", "a", "whole-0000-00-00-0"),
            "whole-0000-00-00-0 and shared-0000-00-00-0 of pool gcu.enflame.com/a are allocated at "
            "the same time",
            id="another mode",
        ),
        pytest.param(
            shares("second", 4),
            "more of shared-0000-00-00-0 of pool gcu.enflame.com/a is allocated than there is",
            id="too many slices",
        ),
    ],
)
def test_what_is_allocated_twice_is_reported_until_it_ends(
    world: World, second: Object, conflict: str
) -> None:
    world.put(RESOURCE_CLAIMS, shares("first", 3))
    world.put(RESOURCE_CLAIMS, shares("beside", 2))
    world.run_until_idle()
    assert world.metric(CONFLICTS) == 0
    world.put(RESOURCE_CLAIMS, second)
    world.run_until_idle()
    assert world.metric(CONFLICTS) == 1
    [note] = world.recorder.notes
    assert note == f"ResourceClaim second: {conflict}. Delete this claim and its pod"
    world.remove(RESOURCE_CLAIMS, "second")
    world.run_until_idle()
    assert world.metric(CONFLICTS) == 0


def test_the_claim_that_stays_is_not_allocated_twice_any_more(world: World) -> None:
    """A new leader finds both, and people delete one of them."""
    world.fence.close()
    world.put(RESOURCE_CLAIMS, shares("first", 3))
    world.put(RESOURCE_CLAIMS, allocated("second", "a", "whole-0000-00-00-0"))
    world.run_until_idle()
    world.lead("2")
    world.run_until_idle()
    assert world.metric(CONFLICTS) == 2
    world.remove(RESOURCE_CLAIMS, "second")
    world.run_until_idle()
    assert world.metric(CONFLICTS) == 0


def test_a_replica_that_follows_counts_no_claims(world: World) -> None:
    world.put(RESOURCE_CLAIMS, shares("first", 3))
    world.put(RESOURCE_CLAIMS, shares("second", 4))
    world.run_until_idle()
    assert world.metric(CONFLICTS) == 2
    world.fence.close()
    world.run_until_idle()
    assert world.metric(CONFLICTS) == 0
