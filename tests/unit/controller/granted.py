"""A controller that has just allocated the claims of a pod."""

from __future__ import annotations

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import claim
from tests.unit.controller.world import World, pod


def granted(*names: str, slices: list[Object] | None = None) -> World:
    """A world in which pod `p` has its claims on node a, or b where a has too few cards."""
    world = World(slices)
    for name in names or ("c",):
        world.put(RESOURCE_CLAIMS, claim(name))
    world.put(PODS, pod("p", *(names or ("c",))))
    world.run_until_idle()
    return world
