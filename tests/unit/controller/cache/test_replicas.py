"""Replicas of one workload keep apart, where the policy or their claims say spread."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from controller.allocator.device import CardKey
from controller.allocator.packing.policy import Policy
from controller.cache import pods
from controller.cache.cache import ClusterCache
from dra_driver.kube.api import Change
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import Object, claim_names, results
from dra_driver.model.claims.packing import Packing
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import allocated, claim, device, pool, request
from tests.unit.controller.allocator.decide import SHARED, names
from tests.unit.controller.world import World, pod

BINPACK, SPREAD = Packing.BINPACK, Packing.SPREAD
BOTH, NODES, CARDS = Policy(SPREAD, SPREAD), Policy(nodes=SPREAD), Policy(cards=SPREAD)
# Spread without a look at replicas would always take node a: two cards of b are somebody's.
OTHERS = allocated("others", "b", *names("whole", 2, 3))


def world(policy: Policy) -> World:
    cards = [device(mode, bus) for bus in range(4) for mode in ("whole", "shared")]
    made = World([*pool("a", cards), *pool("b", cards)], policy=policy)
    made.put(RESOURCE_CLAIMS, OTHERS)
    return made


def replica(
    world: World, name: str, workload: str | None = "rs", config: list[Object] | None = None
) -> None:
    """A pod of the workload with a claim of two slices."""
    asked = request(cls=SHARED, capacity={"slices": "2"})
    world.put(RESOURCE_CLAIMS, claim(name, [asked], config=config or []))
    made = pod(f"pod-{name}", name)
    if workload is not None:
        owners = [{"kind": "Other", "uid": "x"}, {"uid": workload, "controller": True}]
        made["metadata"]["ownerReferences"] = owners
    world.put(PODS, made)


def place(world: World, name: str) -> str:
    """Node and card of the replica, such as ``a1``."""
    [result] = results(world.claim(name))
    return f"{result.pool[-1]}{int(result.device.split('-')[2], 16)}"


def test_all_at_once_while_nothing_is_written_yet() -> None:
    found = world(BOTH)
    found.pool.is_paused = True
    for number in range(4):
        replica(found, f"c{number}")
    found.run_until_idle()
    found.pool.resume()
    found.run_until_idle()
    assert {place(found, f"c{number}") for number in range(4)} == {"a0", "b0", "a1", "b1"}


@pytest.mark.parametrize("workload", ["another", None], ids=["another workload", "no workload"])
def test_only_replicas_keep_apart(workload: str | None) -> None:
    found = world(BOTH)
    replica(found, "one", workload)
    replica(found, "two")
    found.run_until_idle()
    assert (place(found, "one")[0], place(found, "two")[0]) == ("a", "a")


def test_pods_by_hand_are_no_replicas_of_each_other() -> None:
    found = world(BOTH)
    replica(found, "one", None)
    replica(found, "two", None)
    found.run_until_idle()
    assert (place(found, "one"), place(found, "two")) == ("a0", "a1")


def test_a_replica_that_has_ended_keeps_nobody_away() -> None:
    found = world(BOTH)
    replica(found, "one")
    found.run_until_idle()
    found.remove(PODS, "pod-one")
    replica(found, "two")
    found.run_until_idle()
    assert place(found, "two")[0] == "a"


def test_a_replica_of_before_a_new_template_keeps_nobody_away() -> None:
    """Its ReplicaSet is another one; a pod made by hand may have become its own."""
    found = world(BOTH)
    replica(found, "one")
    replica(found, "two")
    found.run_until_idle()
    adopted = found.api.live[PODS, "pod-one"]
    adopted["metadata"]["ownerReferences"] = [{"uid": "other", "controller": True}]
    found.put(PODS, adopted)
    replica(found, "three", "other")
    found.run_until_idle()
    assert [place(found, name)[0] for name in ("one", "two", "three")] == ["a", "b", "b"]


@pytest.mark.parametrize("shown", [claim_names, pods.is_done], ids=lambda each: each.__name__)
def test_a_look_costs_no_more_with_more_replicas(
    shown: Callable[[Object], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Job may have thousands, and each of them is looked at."""
    looks: list[Object] = []

    def counted(pod: Object) -> Any:
        looks.append(pod)
        return shown(pod)

    monkeypatch.setattr(pods, shown.__name__, counted)

    def cost_among(count: int) -> int:
        """Of which some have cards and the others wait."""
        found = world(BOTH)
        for number in range(count):
            replica(found, f"c{number}")
            found.run_until_idle()
        looks.clear()
        replica(found, "last")
        found.run_until_idle()
        return len(looks)

    assert cost_among(60) == cost_among(30)


def test_a_device_that_vanished_from_its_slice_is_still_the_replicas() -> None:
    found = world(NODES)
    replica(found, "one")
    found.run_until_idle()
    published = found.api.live[RESOURCE_SLICES, "a-1-0"]
    held = names("shared", 0)[0]
    left = [each for each in published["spec"]["devices"] if each["name"] != held]
    found.put(RESOURCE_SLICES, {**published, "spec": {**published["spec"], "devices": left}})
    replica(found, "two")
    found.run_until_idle()
    assert (place(found, "one"), place(found, "two")) == ("a0", "b0")


def test_what_the_pod_itself_holds_keeps_it_from_nothing() -> None:
    found = World(pool("a", [device("shared", bus) for bus in range(2)]), policy=CARDS)
    found.put(RESOURCE_CLAIMS, allocated("x", "a", *names("shared", 0), consumed={"slices": "2"}))
    found.put(RESOURCE_CLAIMS, allocated("y", "a", *names("shared", 1), consumed={"slices": "3"}))
    found.put(RESOURCE_CLAIMS, claim("more", [request(cls=SHARED, capacity={"slices": "1"})]))
    owned = pod("p", "x", "more")
    owned["metadata"]["ownerReferences"] = [{"uid": "rs", "controller": True}]
    found.put(PODS, owned)
    found.run_until_idle()
    assert place(found, "more") == "a0"


class History:
    """Pods p to s and claims c to f come, change, go and are replaced by chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._told: dict[str, Object] = {}
        self._assumed: dict[str, Object] = {}
        self._version = 0
        self._uids = {name: name for name in "pqrscdef"}
        self.cache = ClusterCache(Selectors())

    def step(self) -> None:
        name = self._chance.choice("pqrscdef")
        self._version += 1
        if name in self._told and self._chance.random() < 0.2:
            self.cache.apply(_kind(name), Change.DELETED, self._told.pop(name))
        elif name in self._assumed:
            self.cache.forget(self._assumed.pop(name))
        else:
            self._put(name)

    def cards(self, cache: ClusterCache) -> dict[str, dict[CardKey, int]]:
        pods = {name: each for name, each in self._told.items() if name in "pqrs"}
        return {name: dict(cache.cards_of_replicas(each)) for name, each in pods.items()}

    def anew(self) -> ClusterCache:
        """What is told now, and nothing before."""
        cache = ClusterCache(Selectors())
        for name, each in self._told.items():
            cache.apply(_kind(name), Change.ADDED, each)
        for each in self._assumed.values():
            cache.assume(each)
        return cache

    def _put(self, name: str) -> None:
        made = self._pod(name) if name in "pqrs" else self._claim(name)
        if self._chance.random() < 0.1:
            self._uids[name] = f"{name}{self._version}"
        made["metadata"] |= {"uid": self._uids[name], "resourceVersion": str(self._version)}
        if name not in "pqrs" and self._chance.random() < 0.3:
            self.cache.assume(self._assumed.setdefault(name, made))
        else:
            self._told[name] = made
            self.cache.apply(_kind(name), Change.ADDED, made)

    def _pod(self, name: str) -> Object:
        made = pod(name, *self._chance.sample("cdef", 2))
        made["status"]["phase"] = self._chance.choice(["Pending", "Succeeded"])
        owner = {"uid": self._chance.choice(["rs", "job"]), "controller": True}
        made["metadata"]["ownerReferences"] = self._chance.choice([[owner], [owner], []])
        return made

    def _claim(self, name: str) -> Object:
        held = names("whole", self._chance.randrange(2))
        return self._chance.choice([claim(name), allocated(name, self._chance.choice("ab"), *held)])


def _kind(name: str) -> Resource:
    return PODS if name in "pqrs" else RESOURCE_CLAIMS


@pytest.mark.parametrize("seed", range(30))
def test_counted_step_by_step_it_is_what_it_is_counted_at_once(seed: int) -> None:
    chance = random.Random(seed)
    history = History(chance)
    for _ in range(80):
        history.step()
        if chance.random() < 0.5:
            history.cards(history.cache)
    assert history.cards(history.cache) == history.cards(history.anew())
