"""The search for nodes for a group: rollback, order, bounds, steps, and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from controller.allocator.packing.policy import SchedulerPolicy
from controller.cache.cache import ClusterCache
from controller.filter.node_filter import NodeFilter
from controller.filter.predictions import Predictions
from controller.groups import search as searching
from controller.groups.request import (
    GroupPlaced,
    GroupRequest,
    GroupUnplaced,
    free_cards_needed,
)
from controller.groups.reservation import GroupReserver
from controller.groups.search import GroupSearch
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_SCHEDULER, CLASS_SHARED
from dra_driver.selector.selector import Selectors
from tests.control_plane.cards import in_all_modes
from tests.control_plane.objects import resource_slices
from tests.unit.controller.allocator.build import CLASSES, claim, request
from tests.unit.controller.world import node, pod

RACKS: Final = {"a": "r1", "b": "r1", "c": "r2", "d": "r2"}


class Fleet:
    """Nodes by name with so many whole cards each, and a label `rack`."""

    def __init__(self, cards: dict[str, int], cpu: dict[str, str] | None = None) -> None:
        self.cache = ClusterCache(Selectors(), for_scheduler=True)
        state = self.cache.state()
        predictions = Predictions(self.cache)
        allowance = state.selectors.allowance
        self.nodes = NodeFilter(self.cache, state.numbers, allowance, predictions)
        self.placer = Placer(self.cache, self.nodes, SchedulerPolicy())
        unpredicted = NodeFilter(self.cache, state.numbers, allowance)
        self.reserver = GroupReserver(state, unpredicted, SchedulerPolicy())
        self._put(DEVICE_CLASSES, *CLASSES.values())
        for name, count in cards.items():
            devices = in_all_modes(*range(count), allocator=ALLOCATOR_SCHEDULER)
            self._put(RESOURCE_SLICES, *resource_slices(name, devices))
            made = node(name)
            made["metadata"]["labels"] = {"rack": RACKS.get(name, "r3")}
            amounts = {"cpu": (cpu or {}).get(name, "16"), "memory": "64Gi", "pods": "110"}
            made["status"]["allocatable"] = amounts
            self._put(NODES, made)
        self._members = 0

    def members(self, *requests: Object, cpu: str = "1", **spec: Any) -> list[PodClaims]:
        """One for each request."""
        return [self._member(each, cpu, spec) for each in requests]

    def _member(self, asked: Object, cpu: str, spec: dict[str, Any]) -> PodClaims:
        self._members += 1
        name = f"p{self._members}"
        made, user = claim(f"c-{name}", [asked]), pod(name, f"c-{name}", **spec)
        user["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu}
        self._put(RESOURCE_CLAIMS, made)
        self._put(PODS, user)
        claims = self.cache.claims_of(_stored(user))
        assert claims is not None
        return self.placer.read(_stored(user), claims)

    def search(self, members: Sequence[PodClaims], *near: str, **how: Any) -> GroupSearch:
        request = GroupRequest(members, **{"quorum": len(members)} | how)
        return GroupSearch(request, self.cache, self.placer, self.nodes, near)

    def hold(self, name: str, count: int) -> None:
        """Somebody has so many cards of the node."""
        found = self.search(self.members(*cards(count)), excluded=~self.bit(name))
        ended(found)
        found.keep()

    def bit(self, *names: str) -> int:
        return self.cache.state().numbers.set_of(names)

    def free(self) -> int:
        """Cards of which nothing counts as allocated."""
        state = self.cache.state()
        state.refresh()
        return sum(state.fleet.at(number).free for number in range(len(state.fleet)))

    def _put(self, resource: Resource, *objects: Object) -> None:
        for each in objects:
            self.cache.apply(resource, Change.ADDED, _stored(each))


def _stored(obj: Object) -> Object:
    name = obj["metadata"]["name"]
    return obj | {"metadata": {"uid": f"uid-{name}", "resourceVersion": "1"} | obj["metadata"]}


def cards(*counts: int) -> list[Object]:
    return [request(count=each) for each in counts]


def ended(found: GroupSearch) -> GroupPlaced | GroupUnplaced:
    while not found.advance():
        pass
    assert found.outcome is not None
    return found.outcome


def nodes_of(found: GroupSearch) -> list[str]:
    outcome = ended(found)
    assert isinstance(outcome, GroupPlaced), outcome
    return sorted(each.node for each in outcome.placements)


def why(found: GroupSearch) -> str:
    outcome = ended(found)
    assert isinstance(outcome, GroupUnplaced), outcome
    return outcome.reason


def test_what_does_not_fit_is_rolled_back() -> None:
    fleet = Fleet({"a": 2, "b": 1})
    assert why(fleet.search(fleet.members(*cards(1, 1, 1, 1)))) == (
        "3 of 4 pods fit together; short of 1 of gcu.enflame.com: 3 cards: 3 held; 1 requested"
    )
    assert fleet.free() == 3


def test_members_count_for_each_other_until_it_is_undone() -> None:
    fleet = Fleet({"a": 2})
    found = fleet.search(fleet.members(*cards(1, 1)))
    assert nodes_of(found) == ["a", "a"]
    assert fleet.free() == 0
    found.undo()
    assert fleet.free() == 2


def test_what_is_kept_is_not_undone() -> None:
    fleet = Fleet({"a": 2})
    found = fleet.search(fleet.members(*cards(1, 1)))
    ended(found)
    assert [each.node for each in found.keep()] == ["a", "a"]
    found.undo()
    assert fleet.free() == 0


def test_the_kind_that_finds_no_place_comes_first_next_time() -> None:
    """The large ones would fill both nodes on which the small one may run."""
    fleet = Fleet({"a": 4, "c": 4})
    large = fleet.members(*cards(2, 2, 2))
    selector = {"rack": "r1"}
    small = fleet.members(*cards(1, 1), nodeSelector=selector)
    assert nodes_of(fleet.search([*large, *small])) == ["a", "a", "a", "c", "c"]


def test_quorum_is_enough_and_the_rest_is_left() -> None:
    fleet = Fleet({"a": 2})
    members = fleet.members(*cards(1, 1, 1))
    outcome = ended(fleet.search(members, quorum=2))
    assert isinstance(outcome, GroupPlaced)
    assert len(outcome.placements) == 2
    assert list(outcome.left) == members[2:]


def test_cpu_of_the_others_counts() -> None:
    fleet = Fleet({"a": 4}, {"a": "3"})
    assert why(fleet.search(fleet.members(*cards(1, 1), cpu="2"))) == (
        "1 of 2 pods fit together; short of 1 of gcu.enflame.com: no node fits the pod: 1 node: 1 "
        "without free cpu"
    )


def test_shares_of_cards_count_too() -> None:
    fleet = Fleet({"a": 1, "b": 1})
    share = request(cls=CLASS_SHARED, capacity={"slices": "4"})
    assert nodes_of(fleet.search(fleet.members(share, share))) == ["a", "b"]


@pytest.mark.parametrize(
    ("near", "nodes"),
    [
        pytest.param([], ["a", "c"], id="fewest nodes"),
        pytest.param(["rack"], ["c", "d"], id="of as few those that share a label"),
    ],
)
def test_near_each_other(near: list[str], nodes: list[str]) -> None:
    fleet = Fleet({"a": 2, "b": 1, "c": 2, "d": 2})
    assert sorted(set(nodes_of(fleet.search(fleet.members(*cards(1, 1, 1, 1)), *near)))) == nodes


@pytest.mark.parametrize(
    ("held", "size", "nodes"),
    [
        pytest.param({"b": 4, "c": 6}, 4, ["b"], id="a node that it fills"),
        pytest.param({"b": 4, "c": 6}, 2, ["c"], id="the fullest"),
        pytest.param({"b": 4, "c": 6}, 10, ["a", "c"], id="the rest of a gang"),
        pytest.param({"b": 6, "c": 6}, 3, ["a"], id="never two nodes in place of one"),
    ],
)
def test_empty_nodes_stay_free(held: dict[str, int], size: int, nodes: list[str]) -> None:
    fleet = Fleet({"a": 8, "b": 8, "c": 8})
    for name, count in held.items():
        fleet.hold(name, count)
    assert sorted(set(nodes_of(fleet.search(fleet.members(*cards(*[1] * size)))))) == nodes


def test_a_label_never_costs_a_node() -> None:
    fleet = Fleet({"a": 2, "b": 1, "c": 2, "d": 1})
    found = fleet.search(fleet.members(*cards(1, 1, 1, 1)), "rack")
    assert set(nodes_of(found)) == {"a", "c"}


def test_beside_members_that_have_a_node() -> None:
    """First on their node, then near it."""
    fleet = Fleet({"a": 1, "b": 1, "c": 1, "d": 1})
    members = fleet.members(*cards(1, 1))
    found = fleet.search(members, "rack", quorum=0, beside=fleet.bit("c"))
    assert nodes_of(found) == ["c", "d"]


def test_reserved_nodes_are_left() -> None:
    fleet = Fleet({"a": 1, "b": 1})
    assert nodes_of(fleet.search(fleet.members(*cards(1)), excluded=fleet.bit("a"))) == ["b"]


@pytest.mark.parametrize(
    ("fleet", "cpu", "nodes"),
    [
        pytest.param({"a": 2, "b": 2, "c": 1, "d": 1}, {}, ["a", "b"], id="most pods"),
        pytest.param(
            {"a": 2, "b": 2, "c": 4, "d": 4}, {}, ["a", "b"], id="of equal ones the first"
        ),
        pytest.param({"a": 4, "b": 4, "c": 4}, {}, ["c"], id="most cpu requested with the group's"),
        pytest.param({"a": 3, "c": 4, "d": 4}, {"a": "4"}, ["c"], id="more pods before more cpu"),
        pytest.param({"a": 2, "c": 3, "d": 1}, {"a": "2"}, ["c", "d"], id="all pods"),
    ],
)
def test_of_the_domains_of_a_topology_key(
    fleet: dict[str, int], cpu: dict[str, str], nodes: list[str]
) -> None:
    found = Fleet(fleet, cpu)
    members = found.members(*cards(1, 1, 1, 1))
    how = {"quorum": 2, "topology_key": "rack"}
    assert sorted(set(nodes_of(found.search(members, **how)))) == nodes


def test_domains_without_enough_free_cards_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as many as one likes, and the domain that has room may be the last."""
    monkeypatch.setattr(searching, "MOST_PLACEMENTS", 1)
    fleet = Fleet({"a": 2, "c": 2, "e": 4}, {"a": "2", "c": "2"})
    members = fleet.members(*cards(1, 1, 1))
    assert nodes_of(fleet.search(members, topology_key="rack")) == ["e", "e", "e"]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(request(cls=CLASS_SHARED), id="shares"),
        pytest.param(request(tolerations=[{"operator": "Exists"}]), id="tolerations"),
    ],
)
def test_which_cards_need_not_be_free(asked: Object) -> None:
    fleet = Fleet({"a": 1})
    assert free_cards_needed(fleet.members(asked, asked), 2) == 0
    assert free_cards_needed(fleet.members(asked, *cards(3, 2)), 2) == 2


def test_the_domain_of_bound_members_is_the_only_one() -> None:
    fleet = Fleet({"a": 1, "b": 1, "c": 2, "d": 2})
    found = fleet.search(
        fleet.members(*cards(1)), quorum=0, topology_key="rack", beside=fleet.bit("a")
    )
    assert nodes_of(found) == ["a"]


def test_a_topology_key_that_no_node_has() -> None:
    fleet = Fleet({"a": 1})
    assert why(fleet.search(fleet.members(*cards(1)), topology_key="block")) == (
        "no pod fits in one domain of block; short of 1 of gcu.enflame.com: no node has the label "
        "block"
    )


def test_others_are_decided_between_two_steps() -> None:
    fleet = Fleet(dict.fromkeys("abcdefghij", 8), dict.fromkeys("abcdefghij", "64"))
    found = fleet.search(fleet.members(*cards(*[1] * 80)))
    steps = 1
    while not found.advance():
        steps += 1
    assert steps == 2
    assert isinstance(found.outcome, GroupPlaced)


def test_beyond_the_bound_members_are_placed_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_MEMBERS", 2)
    fleet = Fleet({"a": 2})
    assert nodes_of(fleet.search(fleet.members(*cards(1, 1, 1)))) == ["a", "a"]


def test_a_search_ends_after_so_many_placements(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on with what it has: no further domain is tried."""
    monkeypatch.setattr(searching, "MOST_PLACEMENTS", 1)
    fleet = Fleet({"a": 3, "b": 1, "c": 4}, {"c": "64"})
    members = fleet.members(*cards(2, 2))
    assert "(best is rack=r1)" in why(fleet.search(members, topology_key="rack"))
