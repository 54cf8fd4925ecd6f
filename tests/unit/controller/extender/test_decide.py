"""Which nodes fit, which is best, which card: by the allocator's rules."""

from __future__ import annotations

import pytest

from controller.allocator.packing.policy import BINPACK, Policy
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.decide import UNREPORTED, filter_nodes, prioritize
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from tests.unit.controller.extender.build import (
    DRS,
    SHARED,
    WHOLE,
    address,
    card,
    hold,
    node,
    of_workload,
    placed,
    pod,
    view,
)

HALF = card(1, Mode.SHARED, hold("a", 2), hold("b", 2))
IN_DRS = card(2, Mode.DRS, hold("c", 3))
TAKEN = card(3, Mode.WHOLE, hold("d"))


def chosen(found: AnnotatedCluster, asking: Object, on: str = "n") -> list[int]:
    """Numbers of the cards that the pod would be placed on."""
    return [each.bus for each in placed(found, asking, on).cards]


@pytest.mark.parametrize(
    ("cards", "asking", "words"),
    [
        (
            (HALF, IN_DRS),
            pod("p", {SHARED: 3}),
            "2 cards: 1 in DRS mode, 1 with fewer than 3 free slices; 1 requested",
        ),
        ((HALF, IN_DRS, TAKEN), pod("p", {DRS: 6}), "1 held as a whole"),
        ((HALF, IN_DRS), pod("p", {WHOLE: 1}), "1 in DRS mode, 1 in shared mode"),
        ((card(1), TAKEN), pod("p", {WHOLE: 2}), "1 free, 1 held; 2 requested"),
        (
            (card(1),),
            pod("p", {DRS: 2}),
            "no profile has size 2; those of its cards are 1g.6gb, 3g.20gb, 6g.40gb",
        ),
        ((card(1),), pod("p", {SHARED: 7}), "asks for 7 slices, no card has more than 6"),
        ((card(1, problem="lost"),), pod("p", {SHARED: 1}), "1 unhealthy"),
        ((card(1, whole=False),), pod("p", {WHOLE: 1}), "none selected by"),
        (
            (card(1), card(2)),
            pod("p", {DRS: 6}, {DRS: 1}),
            "no card has room for DRS instances of sizes 6, 1 together",
        ),
        ((card(1),), pod("p", {SHARED: 1, WHOLE: 1}), "one kind of GCU"),
    ],
    ids=[
        "too few slices",
        "no size left",
        "every card in another mode",
        "too few cards",
        "no such profile",
        "more slices than any card has",
        "unhealthy",
        "not offered whole",
        "two instances that fit on no card together",
        "two kinds",
    ],
)
def test_a_node_that_cannot_take_the_pod_says_why(
    cards: tuple[NodeCard, ...], asking: Object, words: str
) -> None:
    found = filter_nodes(view(node("n", *cards)), BINPACK, asking, ["n"])
    assert found.fit == ()
    assert words in found.unfit["n"]


def test_the_sizes_of_an_instance_are_those_of_the_node_s_own_cards() -> None:
    nodes = [
        node("a", card(1)),
        node("b", card(1, profiles=("4g.30gb", "2g.8gb"), total=4), card(2, profiles=("2g.9gb",))),
        node("c", card(1)),
    ]
    found = filter_nodes(view(*nodes), BINPACK, pod("p", {DRS: 5}), ["a", "b", "c"])
    words = "no profile has size 5; those of its cards are "
    assert found.unfit == {
        "a": f"{words}1g.6gb, 3g.20gb, 6g.40gb",
        "b": f"{words}2g.8gb, 2g.9gb, 4g.30gb",
        "c": f"{words}1g.6gb, 3g.20gb, 6g.40gb",
    }


@pytest.mark.parametrize(
    ("cards", "asking", "numbers"),
    [
        ((card(4), HALF, IN_DRS), pod("p", {SHARED: 2}), [1]),
        ((card(4), HALF, IN_DRS), pod("p", {SHARED: 3}), [4]),
        ((card(4), HALF, IN_DRS), pod("p", {DRS: 1}), [2]),
        ((card(4), HALF, IN_DRS), pod("p", {DRS: 3}, {DRS: 1}), [4]),
        ((HALF, IN_DRS, card(4)), pod("p", {WHOLE: 1}), [4]),
        ((card(4), HALF), pod("p", {SHARED: 1}, {SHARED: 1}), [1]),
        (
            (card(4, bridges="a"), card(5, bridges="b"), card(6, bridges="b")),
            pod("p", {WHOLE: 2}),
            [5, 6],
        ),
        (
            (card(4, profiles=("2g.8gb",), total=4), card(5)),
            pod("p", {DRS: 2}),
            [4],
        ),
    ],
    ids=[
        "the least left that fits",
        "a free card where none in use fits",
        "beside another instance",
        "both instances on one card",
        "whole",
        "both containers on one card",
        "behind one switch",
        "the card that has a profile of just that size",
    ],
)
def test_the_card_that_fits_best(
    cards: tuple[NodeCard, ...], asking: Object, numbers: list[int]
) -> None:
    found = view(node("n", *cards))
    assert filter_nodes(found, BINPACK, asking, ["n"]).fit == ("n",)
    assert sorted(chosen(found, asking)) == numbers


def test_nodes_are_kept_in_their_order_and_the_fullest_is_preferred() -> None:
    found = view(
        node("empty", card(1)), node("full", TAKEN), node("fits", HALF), node("roomy", card(1))
    )
    asking = pod("p", {SHARED: 2})
    names = ["roomy", "full", "unknown", "fits", "empty"]
    filtered = filter_nodes(found, BINPACK, asking, names)
    assert filtered.fit == ("roomy", "fits", "empty")
    assert list(filtered.unfit) == ["full", "unknown"]
    assert filtered.unfit["unknown"] == UNREPORTED
    scores = prioritize(found, BINPACK, asking, filtered.fit)
    assert scores == {"fits": 10, "empty": 9, "roomy": 8}


def test_many_nodes_are_judged_as_few_are() -> None:
    nodes = [node(f"n{n:02}", HALF if n % 2 else TAKEN) for n in range(40)]
    asking = pod("p", {SHARED: 2})
    names = [each["metadata"]["name"] for each in nodes]
    filtered = filter_nodes(view(*nodes), BINPACK, asking, names)
    assert filtered.fit == tuple(names[1::2])
    assert set(filtered.unfit) == set(names[::2])


@pytest.mark.parametrize(
    "asking", [pod("p", {"cpu": "1"}), pod("p", {SHARED: 0})], ids=["nothing of ours", "no slices"]
)
def test_pods_that_ask_for_nothing_go_anywhere(asking: Object) -> None:
    assert filter_nodes(AnnotatedCluster(), BINPACK, asking, ["a", "b"]).fit == ("a", "b")
    assert prioritize(AnnotatedCluster(), BINPACK, asking, ["a", "b"]) == {"a": 0, "b": 0}


def test_a_pod_whose_place_has_gone_is_refused_with_node_and_reason() -> None:
    asking = pod("p", {SHARED: 3})
    with pytest.raises(Refused, match=r"node n: 1 card: 1 with fewer than 3 free slices"):
        chosen(view(node("n", HALF)), asking)
    with pytest.raises(Refused, match=f"node n: {UNREPORTED}"):
        chosen(AnnotatedCluster(), asking)


def test_what_is_being_bound_counts_for_all_pods_but_itself() -> None:
    found = view(node("n", card(1)))
    first, second = pod("p", {SHARED: 4}), pod("q", {SHARED: 3})
    tenant = placed(found, first)
    assert tenant.cards == (address(1),)
    found.assume(tenant)
    assert filter_nodes(found, BINPACK, first, ["n"]).fit == ("n",)
    assert filter_nodes(found, BINPACK, second, ["n"]).fit == ()
    found.forget("uid-p")
    assert filter_nodes(found, BINPACK, second, ["n"]).fit == ("n",)


def test_spread_keeps_replicas_of_one_workload_apart() -> None:
    """On the emptier node, and on the emptier card, is a replica."""
    spread = Policy(nodes=Packing.SPREAD, cards=Packing.SPREAD)
    found = view(
        node("a", card(1), card(2)),
        node("b", card(3), card(4)),
        of_workload("w", pod("r", {SHARED: 1}, on="a", cards=str(address(1)))),
        pod("o", {SHARED: 3}, on="a", cards=str(address(2))),
        pod("p", {SHARED: 3}, on="b", cards=str(address(3))),
        pod("q", {SHARED: 3}, on="b", cards=str(address(4))),
    )
    replica, stranger = of_workload("w", pod("s", {SHARED: 1})), pod("t", {SHARED: 1})
    nodes = ["a", "b"]
    assert prioritize(found, spread, stranger, nodes) == {"a": 10, "b": 9}
    assert prioritize(found, spread, replica, nodes) == {"a": 9, "b": 10}
    assert prioritize(found, BINPACK, replica, nodes) == prioritize(found, BINPACK, stranger, nodes)
    for asking, bus in ((stranger, 1), (replica, 2)):
        assert placed(found, asking, "a", spread).cards == (address(bus),)


def test_spread_keeps_a_replica_apart_from_one_that_is_being_bound() -> None:
    spread = Policy(nodes=Packing.SPREAD, cards=Packing.SPREAD)
    found = view(node("a", card(1), card(2)), pod("o", {SHARED: 3}, on="a", cards=str(address(2))))
    for name, bus in (("r", 1), ("s", 2)):
        made = placed(found, of_workload("w", pod(name, {SHARED: 1})), "a", spread)
        assert made.cards == (address(bus),)
        found.assume(made)
