"""A controller that has just allocated the claims of a pod."""

from __future__ import annotations

from dra_driver.model.claims.claim import Object
from tests.unit.controller.world import World


def granted(*names: str, slices: list[Object] | None = None) -> World:
    """A world in which pod `p` has its claims on node a, or b where a has too few cards."""
    world = World(slices)
    world.ask("p", *(names or ("c",)))
    world.run_until_idle()
    return world
