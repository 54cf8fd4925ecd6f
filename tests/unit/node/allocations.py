"""Claims as an allocator writes them that does not look at what others hold."""

from __future__ import annotations

from random import Random
from typing import Any

from dra_driver.model.claims.claim import Object
from dra_driver.model.mode import Mode
from tests.unit.node.drs_world import DrsWorld, instance, overseer, share, slices, whole
from tests.unit.node.world import claim, pod


class Allocations:
    """Any claim for a card (by its place in `CARDS`), under the name that is given."""

    def __init__(self, random: Random, world: DrsWorld) -> None:
        self._random = random
        self._world = world
        self._made = 0

    def make(self, name: str, card: int) -> Object:
        """Shares are this allocation's own, whatever else a claim of the name has or had."""
        self._made += 1
        kinds = (whole, self._slices, self._instance, self._pair, overseer)
        made = self._random.choice(kinds)(name, card)
        for each in made["status"]["allocation"]["devices"]["results"]:
            if "shareID" in each:
                each["shareID"] += f"-{self._made}"
        return made

    def like(self, former: Object, card: int) -> Object | None:
        """One that the same claim could have instead; None where none was met."""
        for _ in range(10):
            made = self.make(former["metadata"]["name"], card)
            if _form(made) == _form(former):
                return made
        return None

    def _slices(self, name: str, card: int) -> Object:
        return slices(name, card, self._random.choice((1, 1, 2, 2, 3, 6)))

    def _instance(self, name: str, card: int) -> Object:
        return instance(name, card, self._random.choice((1, 1, 1, 3, 3, 6)))

    def _pair(self, name: str, card: int) -> dict[str, Any]:
        """Two requests for two containers."""
        self._world.api.pods["team", f"pod-{name}"] = pod(
            {"x": name}, ("x/l",), ("x/r",), name=f"pod-{name}"
        )
        sizes = self._random.choice(((1, 1), (1, 3), (3, 3)))
        shares = [
            share(card, Mode.DRS, size, f"{name}-{side}", side)
            for size, side in zip(sizes, "lr", strict=True)
        ]
        return claim(name, *shares, pods=(f"pod-{name}",))


def _form(made: Object) -> list[tuple[str, bool]]:
    results = made["status"]["allocation"]["devices"]["results"]
    return [(each["request"], "adminAccess" in each) for each in results]
