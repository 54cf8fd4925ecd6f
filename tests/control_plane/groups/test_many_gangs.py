"""A hundred gangs and single pods that come at random, on cards that fit exactly."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import Final

import pytest

from controller.cache import pods
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.nominating import NAMES_NODES, machines, nominating
from tests.control_plane.objects import claim, pod_with
from tests.control_plane.pod_groups import OUR_GATE, PodGroups, member_of
from tests.seed import SEED

pytestmark = [pytest.mark.control_plane, pytest.mark.matrix]

__all__ = ["nominating"]  # a fixture

_GANGS: Final = 100
_SIZE: Final = 4
_SINGLES: Final = 50
_LIMIT: Final = 500.0  # seconds


class Crowd:
    """All pods of the test, each with a claim for a card. Who is bound ends soon."""

    def __init__(self, scene: Scene, groups: PodGroups) -> None:
        self._scene = scene
        self._groups = groups
        self._half_since: dict[str, float] = {}  # gangs of which some pods are bound
        self.longest_half = 0.0

    def come(self, name: str, size: int) -> None:
        """A gang of so many; a single pod if that is 1."""
        spec: Object = {"schedulingGates": OUR_GATE}
        if size > 1:
            self._groups.make(name, least=size)
            spec |= member_of(name)
        for number in range(size):
            pod = f"{name}-{number}"
            self._scene.api.create(RESOURCE_CLAIMS, claim(pod, self._scene.namespace))
            made = pod_with(pod, self._scene.namespace, pod, **spec)
            self._scene.api.create(PODS, made)

    def end_bound(self) -> list[str]:
        """End the pods of gangs, and the single pods, that are bound as a whole; return their
        names. A gang of which some pods are bound is on its way: kube-scheduler binds them one
        after the other."""
        found: dict[str, list[Object]] = defaultdict(list)
        for pod in self._scene.api.list(PODS, namespace=self._scene.namespace).items:
            found[pod["metadata"]["name"].rpartition("-")[0]].append(pod)
        ended = []
        for name, members in found.items():
            bound = sum(bool(pods.node_name(pod)) for pod in members)
            if bound == len(members) == (_SIZE if name.startswith("gang") else 1):
                ended.append(name)
                self._half_since.pop(name, None)
            elif bound:
                since = self._half_since.setdefault(name, time.monotonic())
                self.longest_half = max(self.longest_half, time.monotonic() - since)
        self._scene.hands.for_all(self._end, [pod for name in ended for pod in found[name]])
        return ended

    def _end(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        self._scene.hands.end(name)
        self._scene.api.delete(RESOURCE_CLAIMS, name, namespace=self._scene.namespace)


def test_all_are_served_and_none_is_half_bound(
    scene: Scene, groups: PodGroups, start_controller: Start
) -> None:
    """Forty cards: ten gangs at a time."""
    flags = (*NAMES_NODES, "--fairness-patience=10")
    start_controller(*flags).wait_for_log("begins")
    machines(scene, 5, *range(8))
    crowd, chance = Crowd(scene, groups), random.Random(SEED)
    coming = [(f"gang{n}", _SIZE) for n in range(_GANGS)] + [
        (f"one{n}", 1) for n in range(_SINGLES)
    ]
    chance.shuffle(coming)
    left, limit = {name for name, _ in coming}, time.monotonic() + _LIMIT
    while left:
        assert time.monotonic() < limit, f"never bound: {sorted(left)}"
        for name, size in coming[: chance.randint(0, 6)]:
            crowd.come(name, size)
            coming.remove((name, size))
        left -= {*crowd.end_bound()}
    assert crowd.longest_half < 10.0
