"""What the cache keeps, and what it does not let in."""

from __future__ import annotations

import pytest

from bench import lists
from controller.allocator.device import DeviceId
from controller.cache.cache import ClusterCache, Tombstones
from controller.cache.keys import Key, Subject
from controller.informers.decoders import decoders
from dra_driver.kube.api import Change
from dra_driver.kube.encode import encode
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
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
    assert cache.state().allocated.use(CARD)
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(2, claim("c")))
    assert not cache.state().allocated.use(CARD)
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(3, held()))
    cache.apply(RESOURCE_CLAIMS, Change.DELETED, at(4, held()))
    assert not cache.state().allocated.use(CARD)


def test_an_older_version_is_not_let_in(cache: ClusterCache) -> None:
    """What our own write answered is known before the watch brings what was before it."""
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(10, held()))
    assert cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(9, claim("c"))) is None
    assert list(cache.replace(RESOURCE_CLAIMS, [at(9, claim("c"))])) == []
    assert cache.state().allocated.use(CARD)


def test_an_object_is_present_as_long_as_it_has_its_name(cache: ClusterCache) -> None:
    assert cache.present(KEY, "u") is None
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(1, claim("c")))
    assert cache.present(KEY, "u") == cache.get(KEY)
    assert cache.present(KEY, "another") is None


def test_versions_are_numbers(cache: ClusterCache) -> None:
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(9, claim("c")))
    assert cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(10, held())) is not None


def test_another_object_of_the_same_name_is_let_in(cache: ClusterCache) -> None:
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(10, held(), "first"))
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(11, claim("c"), "second"))
    assert cache.apply(RESOURCE_CLAIMS, Change.DELETED, at(10, held(), "first")) is None
    found = cache.get(KEY)
    assert found is not None
    assert found["metadata"]["uid"] == "second"


def test_a_list_tells_what_vanished(cache: ClusterCache) -> None:
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(1, held()))
    [change] = cache.replace(RESOURCE_CLAIMS, [])
    assert (change.old is not None, change.new) == (True, None)
    assert not cache.state().allocated.use(CARD)


def test_what_is_gone_is_not_brought_back_by_what_was_read_before(cache: ClusterCache) -> None:
    """By the answer to a write, or by a new leader's list, which the watch has overtaken."""
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(1, held()))
    cache.apply(RESOURCE_CLAIMS, Change.DELETED, at(3, held()))
    assert cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(2, held())) is None
    assert not cache.state().allocated.use(CARD)
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(4, held(), uid="another"))
    assert cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(2, claim("c"))) is None
    assert cache.state().allocated.use(CARD)


@pytest.mark.parametrize("listed", [False, True])
def test_what_its_watch_tells_again_is_there(cache: ClusterCache, listed: bool) -> None:
    """As when a list was older than a new leader's, or a label is put on once more."""
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(2, held()))
    cache.replace(RESOURCE_CLAIMS, [])
    if listed:
        cache.replace(RESOURCE_CLAIMS, [at(2, held())])
    else:
        cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(2, held()))
    assert cache.state().allocated.use(CARD)


def test_no_more_is_remembered_of_what_is_gone_than_is_needed() -> None:
    gone = Tombstones()
    for number in range(20_000):
        gone.add(f"u{number}")
    assert "u0" not in gone
    assert all(f"u{number}" in gone for number in range(10_000, 20_000))


def test_the_inventory_follows_the_slices(cache: ClusterCache) -> None:
    assert cache.state().inventory.devices_of("a") == ()
    [published] = pool("a", [device("whole", 0)])
    cache.apply(RESOURCE_SLICES, Change.ADDED, at(1, published))
    assert [each.id for each in cache.state().inventory.devices_of("a")] == [CARD]
    cache.apply(RESOURCE_SLICES, Change.DELETED, at(1, published))
    assert cache.state().inventory.devices_of("a") == ()


def test_pods_are_found_by_their_claims(cache: ClusterCache) -> None:
    cache.apply(PODS, Change.ADDED, at(1, pod("p", "c"), "p"))
    cache.apply(PODS, Change.ADDED, at(1, pod("q", "c", status={"phase": "Failed"}), "q"))
    assert [each["metadata"]["name"] for each in cache.pods_of(claim("c"))] == ["p"]
    cache.apply(PODS, Change.DELETED, at(2, pod("p", "c"), "p"))
    assert cache.pods_of(claim("c")) == []


def test_pods_without_claims_are_not_kept(cache: ClusterCache) -> None:
    assert cache.apply(PODS, Change.ADDED, at(1, pod("p"))) is None
    assert cache.get(Key(Subject.POD, "default", "p")) is None


def _without_writer(claim: Object) -> Object:
    return claim | {"metadata": claim["metadata"] | {"managedFields": []}}


def _on_node(pod: Object, node: str) -> Object:
    return pod | {"spec": pod["spec"] | {"nodeName": node}}


@pytest.mark.parametrize(
    ("found", "running", "expected"),
    [
        pytest.param(lists.claim(1), lists.pod(1), [], id="all in use"),
        pytest.param(
            _without_writer(lists.claim(1)), lists.pod(1), ["claim-1"], id="another allocator's"
        ),
        pytest.param(lists.claim(1), _on_node(lists.pod(1), ""), ["pod-1"], id="not bound"),
        pytest.param(lists.claim(1), _on_node(lists.pod(1), "b"), ["pod-1"], id="bound elsewhere"),
        pytest.param(
            lists.claim(1) | {"status": {}}, lists.pod(1), ["claim-1", "pod-1"], id="unallocated"
        ),
        pytest.param(lists.claim(2), lists.pod(1), ["pod-1"], id="its claim is missing"),
    ],
)
def test_what_a_new_leader_reconciles(
    cache: ClusterCache, found: Object, running: Object, expected: list[str]
) -> None:
    for resource, each in ((RESOURCE_CLAIMS, found), (PODS, running)):
        cache.replace(resource, [decoders()[resource].decode(encode(each))])
    names = [each.new["metadata"]["name"] for each in cache.unfinished() if each.new is not None]
    assert sorted(names) == expected


def put_node(cache: ClusterCache) -> None:
    status = {"allocatable": {"cpu": "8", "memory": "1Gi", "pods": "1"}}
    cache.apply(NODES, Change.ADDED, at(1, {"metadata": {"name": "a"}, "status": status}))


def is_taken(cache: ClusterCache) -> bool:
    """Whether the node's only place for a pod is."""
    roomy = cache.assigned.usage().resources.nodes_with("pods", 1)
    return "a" not in cache.state().numbers.names(roomy)


def test_pods_without_claims_take_room(cache: ClusterCache) -> None:
    put_node(cache)
    assert not is_taken(cache)
    cache.apply(PODS, Change.ADDED, at(1, pod("p", nodeName="a")))
    assert is_taken(cache)
    cache.apply(PODS, Change.DELETED, at(2, pod("p", nodeName="a")))
    assert not is_taken(cache)
    cache.replace(PODS, [at(3, pod("q", nodeName="a"))])
    assert is_taken(cache)
    cache.replace(PODS, [])
    assert not is_taken(cache)


def test_a_pod_that_loses_our_gate_still_takes_room(cache: ClusterCache) -> None:
    put_node(cache)
    gated = pod("p", schedulingGates=[{"name": SCHEDULING_GATE}])
    cache.apply(PODS, Change.ADDED, at(1, gated))
    assert not is_taken(cache)
    assert cache.apply(PODS, Change.MODIFIED, at(2, pod("p", nodeName="a"))) is not None
    assert is_taken(cache)


def test_a_pod_takes_room_where_its_claims_are(cache: ClusterCache) -> None:
    put_node(cache)
    cache.apply(PODS, Change.ADDED, at(1, pod("p", "c")))
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(1, claim("c")))
    assert not is_taken(cache)
    cache.assume(at(1, on_a("c")))
    assert is_taken(cache)
    cache.forget(at(1, claim("c")))
    assert not is_taken(cache)
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(2, on_a("c")))
    assert is_taken(cache)
    cache.apply(PODS, Change.DELETED, at(2, pod("p", "c")))
    assert not is_taken(cache)
    cache.apply(PODS, Change.ADDED, at(3, pod("q", "c"), "q"))
    assert is_taken(cache)
    cache.apply(PODS, Change.MODIFIED, at(4, pod("q", "c", nodeName="b"), "q"))
    assert not is_taken(cache)


def on_a(name: str) -> Object:
    """The claim, allocated to node `a` alone."""
    found = held() | {"metadata": claim(name)["metadata"]}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    written = found["status"]["allocation"] | {"nodeSelector": selector}
    return found | {"status": found["status"] | {"allocation": written}}


def test_of_two_claims_of_one_name_each_is_assumed_and_forgotten_by_itself(
    cache: ClusterCache,
) -> None:
    """The first was being written when it was deleted and made again."""
    other = DeviceId(CARD.pool, "whole-0000-01-00-0")
    cache.assume(at(1, held(), "first"))
    cache.apply(RESOURCE_CLAIMS, Change.ADDED, at(2, claim("c"), "second"))
    cache.assume(at(2, allocated("c", "a", other.name), "second"))
    assert cache.state().allocated.use(CARD)
    assert cache.state().allocated.use(other)
    cache.forget(at(1, held(), "first"))
    assert not cache.state().allocated.use(CARD)
    assert cache.state().allocated.use(other)
    cache.forget(at(2, held(), "second"))
    assert not cache.state().allocated.use(other)


def test_no_word_of_an_older_object_replaces_a_newer_one_of_its_name(cache: ClusterCache) -> None:
    cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(7, held(), "second"))
    assert cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, at(5, claim("c"), "first")) is None
    assert cache.apply(RESOURCE_CLAIMS, Change.DELETED, at(6, claim("c"), "first")) is None
    assert cache.state().allocated.use(CARD)


def test_a_list_tells_of_what_has_the_name_of_another_object(cache: ClusterCache) -> None:
    """Of pods, too, of which the new one is none of our business."""
    put_node(cache)
    cache.apply(PODS, Change.ADDED, at(1, pod("p", "c", nodeName="a"), "first"))
    [changed] = cache.replace(PODS, [at(2, pod("p"), "second")])
    assert changed.new is None
    assert cache.pods_of(claim("c")) == []
    assert not is_taken(cache)


def test_a_pod_that_went_gives_its_room_back_and_not_its_namesakes(cache: ClusterCache) -> None:
    put_node(cache)
    cache.apply(PODS, Change.ADDED, at(2, pod("p", nodeName="a"), "second"))
    cache.apply(PODS, Change.DELETED, at(1, pod("p"), "first"))
    assert is_taken(cache)
    cache.apply(PODS, Change.DELETED, at(3, pod("p"), "second"))
    assert not is_taken(cache)
    cache.apply(PODS, Change.ADDED, at(4, pod("p", "c", nodeName="a"), "third"))
    cache.apply(PODS, Change.ADDED, at(5, pod("p", "c"), "fourth"))
    assert not is_taken(cache)
