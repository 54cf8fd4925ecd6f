"""What counts as allocated because a pod was named."""

from __future__ import annotations

import pytest

from controller.allocator.device import DeviceId
from controller.cache import pods
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key
from controller.nominate.nominations import Nominations, Settled
from dra_driver.kube.api import Change
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.world import pod

NAMED = pods.key_of(pod("p"))
CARD, OTHER_CARD = "whole-0000-01-00-0", "whole-0000-02-00-0"


class World:
    """A pod that was named for node `a`, and is expected to get CARD."""

    def __init__(self) -> None:
        self.cache = ClusterCache(Selectors())
        self._version = 0
        self.pod = self.put(pod("p", "c"))
        self.put(claim("c"))
        self.nominations = Nominations(self.cache, limit=9)
        self.nominations.add(self.pod, "a", [allocated("c", "a", CARD)])

    def put(self, obj: Object) -> Object:
        """The watch reports it."""
        self._version += 1
        stored = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self._version)}}
        self.cache.apply(
            PODS if "containers" in obj["spec"] else RESOURCE_CLAIMS, Change.ADDED, stored
        )
        return stored

    def seen(self, found: Object | None) -> Settled | None:
        """The claim has another step."""
        return self.nominations.on_claim(Key.of_claim(claim("c")), found)

    def held(self) -> list[str]:
        held, pool = self.cache.state().allocated, f"{DRIVER}/a"
        return [each for each in (CARD, OTHER_CARD) if held.use(DeviceId(pool, each)) is not None]


def test_until_the_claim_is_allocated() -> None:
    world = World()
    assert world.held() == [CARD]
    assert world.seen(claim("c")) is None  # a new leader's term, or a label
    assert world.held() == [CARD]
    assert world.seen(world.put(allocated("c", "a", CARD))) == Settled(NAMED, "a", as_expected=True)
    assert world.held() == [CARD]


def test_other_devices_are_told() -> None:
    world = World()
    settled = world.seen(world.put(allocated("c", "a", OTHER_CARD)))
    assert settled == Settled(NAMED, "a", as_expected=False)
    assert world.held() == [OTHER_CARD]


def test_of_a_bound_pod_until_its_claim_changes() -> None:
    """The watch of claims may be later than that of pods."""
    world = World()
    world.nominations.end(pods.key_of(world.pod), is_bound=True)
    assert world.held() == [CARD]
    world.seen(world.put(allocated("c", "a", CARD)))
    assert world.held() == [CARD]


@pytest.mark.parametrize("is_left", [True, False], ids=["freed", "deleted"])
def test_an_allocation_that_came_and_went(is_left: bool) -> None:
    """Before the claim had another step. Pods that wait may have the devices."""
    world = World()
    world.nominations.end(pods.key_of(world.pod), is_bound=True)
    world.put(allocated("c", "a", CARD))
    freed = world.put(claim("c"))
    assert world.seen(freed if is_left else None) == Settled(NAMED, "a", as_expected=False)
    assert world.held() == []


def test_a_refused_pod_holds_nothing() -> None:
    world = World()
    assert world.nominations.end(pods.key_of(world.pod)) is not None
    assert world.held() == []
    assert world.nominations.end(pods.key_of(world.pod)) is None


@pytest.mark.parametrize(("device", "nodes"), [(CARD, {"a"}), (OTHER_CARD, set())])
def test_devices_that_another_claim_got(device: str, nodes: set[str]) -> None:
    """Of a pod that was not named, or whose own devices a third one got."""
    world = World()
    assert world.nominations.nodes_of(allocated("x", "a", device)) == nodes
    assert world.nominations.nodes_of(allocated("c", "a", device)) == set()


def test_only_what_is_expected_last_counts() -> None:
    world = World()
    world.nominations.add(world.pod, "a", [allocated("c", "a", OTHER_CARD)])
    assert world.nominations.nodes_of(allocated("x", "a", CARD)) == set()
    assert world.nominations.nodes_of(allocated("x", "a", OTHER_CARD)) == {"a"}
    world.nominations.withdraw(pods.key_of(world.pod))
    assert world.nominations.nodes_of(allocated("x", "a", OTHER_CARD)) == set()


def test_beyond_the_limit_pods_wait_in_their_order() -> None:
    nominations = Nominations(ClusterCache(Selectors()), limit=1)
    first, second, third = (pod(name) for name in ("first", "second", "third"))
    assert nominations.admit(pods.key_of(first))
    nominations.add(first, "a", [])
    for waiting in (second, third, second):
        assert not nominations.admit(pods.key_of(waiting))
    assert nominations.next_to_admit() is None
    nominations.end(pods.key_of(first))
    assert nominations.next_to_admit() == pods.key_of(second)
    nominations.forget_request(pods.key_of(second))
    assert nominations.next_to_admit() == pods.key_of(third)
    nominations.clear()
    assert nominations.next_to_admit() is None


def test_who_has_lost_what_was_expected_comes_last() -> None:
    """What is there now is what the others were named for."""
    world = World()
    later = world.put(pod("later", "d"))
    world.put(claim("d"))
    world.nominations.add(later, "a", [allocated("d", "a", OTHER_CARD)])
    assert world.nominations.on("a") == [NAMED, pods.key_of(later)]
    world.nominations.withdraw(NAMED)
    assert world.nominations.on("a") == [pods.key_of(later), NAMED]
