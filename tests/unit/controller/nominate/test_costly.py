"""Pods without room that kube-scheduler does not see, as it would try them for too long."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import claim, first_available, request
from tests.unit.controller.nominate.test_group_nominator import Cluster
from tests.unit.controller.test_pod_groups import OURS
from tests.unit.controller.world import pod

FORTY = f"[{','.join(['1'] * 40)}]"
LOOPS = f"{FORTY}.all(a, {FORTY}.all(b, {FORTY}.all(c, a==b)))"


def cards(requests: int, *, count: int = 1) -> Object:
    """A claim with so many requests, each for so many cards."""
    return claim("c", [request(f"r{each}", count=count) for each in range(requests)])


def choices(requests: int, alternatives: int) -> Object:
    subs = [request(f"s{each}") for each in range(alternatives)]
    return claim("c", [first_available(f"r{each}", *subs) for each in range(requests)])


@pytest.mark.parametrize(
    ("asked", "is_seen"),
    [
        (claim("c", [request(count=9)]), True),
        (cards(4), True),
        (cards(5), False),
        (cards(2, count=4), True),
        (cards(3, count=4), False),
        (choices(2, 4), True),
        (choices(3, 8), False),
        (claim("c", [request(count=9, selector=LOOPS)]), False),
    ],
    ids=[
        "a request",
        "four requests",
        "five requests",
        "two of four cards",
        "three of four cards",
        "alternatives",
        "requests with alternatives",
        "a costly selector",
    ],
)
def test_while_it_waits_for_room(asked: Object, is_seen: bool) -> None:
    world = Cluster({"a": 1}, nomination_waiting=4)
    world.put(RESOURCE_CLAIMS, asked)
    world.put(PODS, pod("p", "c", schedulingGates=[OURS]))
    world.run_until_idle()
    assert world.named("p") == [""]
    assert world.gated("p") == ([] if is_seen else ["p"])


def test_all_claims_of_a_pod_count() -> None:
    world = Cluster({"a": 3}, nomination_waiting=4)
    for number in range(5):
        world.put(RESOURCE_CLAIMS, claim(f"c{number}"))
    world.put(PODS, pod("p", *(f"c{number}" for number in range(5)), schedulingGates=[OURS]))
    world.run_until_idle()
    assert world.gated("p") == ["p"]
