from __future__ import annotations

import copy

import pytest

from controller.cache.cache import ClusterCache
from controller.reconcile.reporter import MOST_USERS, warnings_about
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import claim
from tests.unit.controller.world import World, pod

POD = pod("user")


def claim_for(*uids: str) -> Object:
    metadata = {"name": "shared", "namespace": "default", "uid": "uid-shared"}
    reserved = [{"resource": "pods", "name": uid, "uid": uid} for uid in uids]
    return {"metadata": metadata, "status": {"reservedFor": reserved}}


OTHERS = [f"uid-{number}" for number in range(MOST_USERS)]
CASES = {
    "nobody uses it": (claim_for(), False),
    "room for one more": (claim_for(*OTHERS[1:]), False),
    "full": (claim_for(*OTHERS), True),
    "full, and the pod is among its users": (claim_for(*OTHERS[1:], "uid-user"), False),
}


@pytest.mark.parametrize(("shared", "is_full"), CASES.values(), ids=CASES)
def test_crowded_out(shared: Object, is_full: bool) -> None:
    told = dict(warnings_about(POD, {"x": claim_for(), "y": shared}, ClusterCache(Selectors())))
    assert list(told) == ["GcuClaimFull"] * is_full
    for note in told.values():
        assert note.startswith("claim default/shared is in use by 256 pods")


def test_it_is_told_on_pods_that_are_not_bound() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, claim("shared"))
    world.put(PODS, pod("late", "shared"))
    world.put(PODS, pod("bound", "shared", nodeName="a"))
    world.settle()
    full = copy.deepcopy(world.claim("shared"))
    full["status"]["reservedFor"] = claim_for(*OTHERS)["status"]["reservedFor"]
    world.put(RESOURCE_CLAIMS, full)
    world.settle()
    [told] = world.ears.told
    assert told.startswith("Pod late: claim default/shared is in use by 256 pods")
