"""A DeviceTaintRule keeps pods off devices, as a published taint does."""

from __future__ import annotations

import copy

import pytest

from controller.cache.cache import WATCHED
from dra_driver.kube.resources import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import DRIVER
from tests.unit.controller.allocator.build import claim, request, taint_rule
from tests.unit.controller.world import World, pod, unallocated

DRAIN = {"key": "example.com/drain", "effect": "NoSchedule"}
EVICT = DRAIN | {"effect": "NoExecute"}
ALL_OF_US = {"driver": DRIVER}


def rule(selector: Object | None = None, taint: Object = DRAIN) -> Object:
    return taint_rule("drain", ALL_OF_US if selector is None else selector, taint)


def wanted(world: World, name: str = "c", *, tolerations: tuple[Object, ...] = ()) -> None:
    world.put(RESOURCE_CLAIMS, claim(name, [request(tolerations=tolerations)]))
    world.put(PODS, pod(f"{name}-pod", name))


@pytest.mark.parametrize("taint", [DRAIN, EVICT], ids=["NoSchedule", "NoExecute"])
def test_nothing_of_the_driver_is_given_out_while_a_rule_taints_all(taint: Object) -> None:
    world = World()
    world.put(DEVICE_TAINT_RULES, rule(taint=taint))
    wanted(world)
    assert world.run_until_idle() == []
    text = "3 cards: 3 tainted example.com/drain by DeviceTaintRule drain; 1 requested"
    assert f"Pod c-pod: {text}" in world.recorder.notes
    world.remove(DEVICE_TAINT_RULES, "drain")
    assert world.run_until_idle() == ["c", "c status"]


def test_a_claim_goes_to_a_device_that_the_rule_leaves() -> None:
    world = World()
    world.put(DEVICE_TAINT_RULES, rule({"pool": f"{DRIVER}/a"}))
    wanted(world)
    world.run_until_idle()
    assert world.node_of("c") == "b"


def test_a_claim_that_tolerates_the_taint_is_served() -> None:
    world = World()
    world.put(DEVICE_TAINT_RULES, rule())
    wanted(world, tolerations=({"key": DRAIN["key"], "operator": "Exists"},))
    world.run_until_idle()
    assert world.node_of("c") == "a"


NOT_FOR_US: dict[str, Object] = {
    "another driver's devices": rule({"driver": "gpu.example.com"}),
    "an effect that only informs": rule(taint=DRAIN | {"effect": "None"}),
    "no selector": taint_rule("drain", None, DRAIN),
}


@pytest.mark.parametrize("other", NOT_FOR_US.values(), ids=NOT_FOR_US)
def test_rules_that_do_not_taint_our_devices(other: Object) -> None:
    world = World()
    world.put(DEVICE_TAINT_RULES, other)
    wanted(world)
    world.run_until_idle()
    assert world.node_of("c") == "a"


def test_an_evicted_pod_does_not_come_back_to_the_device() -> None:
    """kube-controller-manager deletes the pod, and takes the allocation back; what made the pod
    makes another one, for the same claim."""
    world = World()
    wanted(world)
    world.run_until_idle()
    assert world.node_of("c") == "a"
    device = allocation(world.claim("c"))["devices"]["results"][0]  # type: ignore[index]
    one = {"driver": DRIVER, "pool": device["pool"], "device": device["device"]}
    world.put(DEVICE_TAINT_RULES, rule(one, EVICT))
    assert world.run_until_idle() == [], "an allocation is left to who evicts its pod"
    world.remove(PODS, "c-pod")
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    world.put(PODS, pod("c-pod-2", "c"))
    assert world.run_until_idle() == []  # the quiet time
    world.after(60.0)
    assert world.node_of("c") == "b"


def test_the_status_of_a_rule_makes_no_pod_active() -> None:
    world = World()
    drain = world.put(DEVICE_TAINT_RULES, rule(taint=EVICT))
    wanted(world)
    world.run_until_idle()
    looks = world.metric("gcu_controller_unsatisfied_total")
    for message in ("2 pods need to be evicted", "1 pod needs to be evicted"):
        status = {"conditions": [{"type": "EvictionInProgress", "message": message}]}
        world.put(DEVICE_TAINT_RULES, copy.deepcopy(drain) | {"status": status})
        world.run_until_idle()
    assert world.metric("gcu_controller_unsatisfied_total") == looks


def test_nothing_is_decided_before_the_rules_are_known() -> None:
    world = World(listed=[each for each in WATCHED if each is not DEVICE_TAINT_RULES])
    wanted(world)
    assert world.run_until_idle() == []
