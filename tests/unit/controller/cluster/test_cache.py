"""What the cache keeps, and what it does not let in."""

from __future__ import annotations

import pytest

from controller.allocator.device import DeviceId
from controller.cluster.cache import ClusterCache
from controller.work.agenda import Key, Subject
from dra_driver.kube.api import Change
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import allocated, claim, device, pool
from tests.unit.controller.world import pod

CARD = DeviceId("gcu.enflame.com/a", "whole-0000-00-00-0")
KEY = Key(Subject.CLAIM, "default", "c")


@pytest.fixture
def cache() -> ClusterCache:
    return ClusterCache(Selectors())


def at(version: int, obj: Object, uid: str = "u") -> Object:
    metadata = obj["metadata"] | {"resourceVersion": str(version), "uid": uid}
    return obj | {"metadata": metadata}


def held() -> Object:
    return allocated("c", "a", CARD.name)


def test_holdings_follow_the_claims(cache: ClusterCache) -> None:
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(1, held()))
    assert cache.state().holdings.holds(CARD)
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(2, claim("c")))
    assert not cache.state().holdings.holds(CARD)
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(3, held()))
    cache.apply(RESOURCE_CLAIMS, Change.DELETED, at(4, held()))
    assert not cache.state().holdings.holds(CARD)


def test_an_older_version_is_not_let_in(cache: ClusterCache) -> None:
    """What our own write answered is known before the watch brings what was before it."""
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(10, held()))
    assert cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(9, claim("c"))) is None
    assert cache.replace(RESOURCE_CLAIMS, [at(9, claim("c"))]) == []
    assert cache.state().holdings.holds(CARD)


def test_versions_are_numbers(cache: ClusterCache) -> None:
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(9, claim("c")))
    assert cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(10, held())) is not None


def test_another_object_of_the_same_name_is_let_in(cache: ClusterCache) -> None:
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(10, held(), "first"))
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(11, claim("c"), "second"))
    assert cache.apply(RESOURCE_CLAIMS, Change.DELETED, at(10, held(), "first")) is None
    found = cache.claim(KEY)
    assert found is not None
    assert found["metadata"]["uid"] == "second"


def test_a_list_tells_what_vanished(cache: ClusterCache) -> None:
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(1, held()))
    [change] = cache.replace(RESOURCE_CLAIMS, [])
    assert (change.old is not None, change.new) == (True, None)
    assert not cache.state().holdings.holds(CARD)


def test_the_inventory_follows_the_slices(cache: ClusterCache) -> None:
    assert cache.state().inventory.by_id == {}
    [published] = pool("a", [device("whole", 0)])
    cache.apply(RESOURCE_SLICES, Change.ADDED, at(1, published))
    assert CARD in cache.state().inventory.by_id
    cache.apply(RESOURCE_SLICES, Change.DELETED, at(1, published))
    assert cache.state().inventory.by_id == {}


def test_pods_are_found_by_their_claims(cache: ClusterCache) -> None:
    cache.apply(PODS, Change.ADDED, at(1, pod("p", "c"), "p"))
    cache.apply(PODS, Change.ADDED, at(1, pod("q", "c", status={"phase": "Failed"}), "q"))
    assert [each["metadata"]["name"] for each in cache.pods_of(claim("c"))] == ["p"]
    cache.apply(PODS, Change.DELETED, at(2, pod("p", "c"), "p"))
    assert cache.pods_of(claim("c")) == []


def test_pods_without_claims_are_not_kept(cache: ClusterCache) -> None:
    assert cache.apply(PODS, Change.ADDED, at(1, pod("p"))) is None
    assert cache.pod(Key(Subject.POD, "default", "p")) is None
