"""What counts as held, whoever tells it, and until when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.allocator.packing.policy import Policy
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.decide import UNREPORTED, filter_nodes
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import CardKind, Hold, NodeCard
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from tests.unit.controller.extender.build import (
    DRS,
    SHARED,
    WHOLE,
    address,
    card,
    container,
    hold,
    node,
    placed,
    pod,
    problem,
    slices_left,
    view,
)

ONE, TWO = str(address(1)), str(address(2))


@pytest.mark.parametrize(
    ("reported", "bound", "left"),
    [
        (card(1), pod("a", {SHARED: 2}, on="n", cards=ONE), 4),
        (card(1, Mode.SHARED, hold("a", 2)), pod("a", {SHARED: 2}, on="n", cards=ONE), 4),
        (card(1, Mode.SHARED, hold("a", 2)), pod("a", {SHARED: 2}, on="n"), 4),
        (card(1, Mode.SHARED, hold("a", 2)), pod("a", {SHARED: 2}, {SHARED: 1}, on="n"), 3),
        (card(1, Mode.SHARED, hold("a", 2)), pod("a", {SHARED: 2}, on="n", cards=TWO), 4),
        (
            card(1, Mode.SHARED, hold("a", 1)),
            pod("a", {SHARED: 1}, init=(container("i", {SHARED: 4}),), on="n"),
            2,
        ),
        (card(1, Mode.SHARED, Hold("", "", 2)), pod("a", {SHARED: 2}, on="n", cards=ONE), 4),
        (card(1, Mode.SHARED, Hold("", "", 2)), pod("a", {SHARED: 1}, on="n", cards=ONE), 3),
        (card(1, Mode.SHARED, Hold("", "", 2)), pod("a", {SHARED: 2}, on="n"), 0),
        (
            card(1, Mode.SHARED, Hold("", "", 2)),
            pod("a", {SHARED: 2}, {SHARED: 1}, on="n", cards=ONE),
            3,
        ),
        (card(1, Mode.SHARED, hold("a", 2)), pod("b", {SHARED: 1}, on="n", cards=ONE), 3),
        (card(1, Mode.SHARED, hold("a", 2)), pod("b", {SHARED: 1}, on="other", cards=ONE), 4),
        (card(1), pod("a", {DRS: 1}, on="n", cards=ONE), 0),
        (card(1), pod("a", {WHOLE: 1}, on="n", cards=ONE), 0),
        (card(1), pod("a", {"cpu": "1"}, on="n"), 6),
        (card(1), pod("a", {SHARED: 2}), 6),
        (card(1), pod("a", {SHARED: 2}, on="n", cards=ONE, phase="Failed"), 6),
    ],
    ids=[
        "bound by us, not reported yet",
        "bound by us, and reported",
        "bound past us, and reported",
        "its second container not reported yet",
        "reported elsewhere than hinted",
        "an init container's rest, which nobody tells",
        "reported of nobody, as much as it asks",
        "reported of nobody, and not as much as it asks",
        "reported of nobody, and bound past us",
        "reported of nobody, one of its two containers",
        "beside another pod",
        "on another node",
        "in another mode",
        "whole",
        "nothing of ours",
        "not bound",
        "ended before it was reported",
    ],
)
def test_what_is_held_beside_a_pod(reported: NodeCard, bound: Object, left: int) -> None:
    assert slices_left(view(node("n", reported), bound)) == left


def test_a_pod_bound_past_us_keeps_the_node_until_it_is_told() -> None:
    found = view(node("n", card(1), card(2)), pod("a", {SHARED: 1}, on="n"))
    assert problem(found, "n") == "which cards default/a has is not reported yet"
    assert slices_left(found) == 0
    found.put_node(node("n", card(1, Mode.SHARED, hold("a")), card(2)))
    assert problem(found, "n") == ""
    assert slices_left(found) == 6


@pytest.mark.parametrize(
    ("others", "left"),
    [((hold("b", 2),), 6), ((hold("b", 4),), 5), ((hold("b", 2), hold("ended", 2)), 6)],
    ids=["room beside it", "no room beside it", "room that an ended pod has left"],
)
def test_where_the_rest_of_a_pod_counts_that_came_to_another_card(
    others: tuple[Hold, ...], left: int
) -> None:
    """Its first container has two slices of card 1; it was placed on card 2."""
    bound = pod("a", {SHARED: 2}, {SHARED: 1}, on="n", cards=TWO)
    ended = pod("ended", {SHARED: 2}, on="n", phase="Failed")
    reported = node("n", card(1, Mode.SHARED, hold("a", 2), *others), card(2))
    assert slices_left(view(reported, bound, ended)) == left


def test_what_is_told_of_nobody_is_no_pods_that_was_placed_elsewhere() -> None:
    """Two pods that ask for the same: one has come, and the other one's place is kept."""
    found = view(
        node("n", card(1, Mode.SHARED, Hold("", "", 4)), card(2)),
        pod("to-come", {SHARED: 4}, on="n", cards=TWO),
        pod("come", {SHARED: 4}, on="n", cards=ONE),
    )
    assert slices_left(found) == 2


@pytest.mark.parametrize("first", [hold("a"), Hold("", "", 1)], ids=["of it", "of nobody"])
def test_cards_of_a_pod_that_are_told_one_after_the_other(first: Hold) -> None:
    found = view(
        node("n", card(1, Mode.WHOLE, first), card(2), card(3)),
        pod("a", {WHOLE: 2}, on="n", cards=f"{ONE},{TWO}"),
    )
    whole = pod("p", {WHOLE: 1})
    assert placed(found, whole).cards == (address(3),)


@pytest.mark.parametrize(
    "end",
    [
        lambda found: found.drop_pod("uid-a"),
        lambda found: found.put_pod(pod("a", {SHARED: 2}, on="n", phase="Succeeded")),
    ],
    ids=["deleted", "finished"],
)
def test_what_an_ended_pod_held_is_free_in_the_same_mode_only(
    end: Callable[[AnnotatedCluster], None],
) -> None:
    reported = node("n", card(1, Mode.SHARED, hold("a", 2)))
    found = view(reported, pod("a", {SHARED: 2}, on="n", cards=ONE))
    end(found)
    assert slices_left(found) == 6
    refused = filter_nodes(found, Policy(), pod("p", {DRS: 1}), ["n"])
    assert refused.unfit["n"] == "1 card: 1 in shared mode; 1 requested"
    found.put_node(node("n", card(1)))
    assert filter_nodes(found, Policy(), pod("p", {DRS: 1}), ["n"]).fit == ("n",)


def test_a_pod_that_nobody_knows_holds_what_is_told_of_it() -> None:
    assert slices_left(view(node("n", card(1, Mode.SHARED, hold("a", 2))))) == 4


def test_a_whole_card_is_held_until_its_agent_says_otherwise() -> None:
    found = view(node("n", card(1, Mode.WHOLE, hold("a"))), pod("a", {WHOLE: 1}, on="n"))
    found.drop_pod("uid-a")
    refused = filter_nodes(found, Policy(), pod("p", {WHOLE: 1}), ["n"])
    assert refused.unfit["n"] == "1 card: 1 held; 1 requested"


def test_a_node_that_tells_nothing_readable_takes_no_pod() -> None:
    found = view(node("n", card(1)))
    found.put_node({"metadata": {"name": "n", "annotations": {ANNOTATION_CARDS: "{"}}})
    assert "cannot be read" in problem(found, "n")
    assert slices_left(found) == 0
    found.put_node(node("n", card(1, profiles=("big",))))
    assert "'big' is not a profile name" in problem(found, "n")
    found.put_node({"metadata": {"name": "n"}})
    assert problem(found, "n") == UNREPORTED


def test_a_node_that_went_and_came_back_is_what_it_says_now() -> None:
    found = view(node("n", card(1)), pod("a", {SHARED: 2}, on="n", cards=ONE))
    found.drop_node("n")
    assert problem(found, "n") == UNREPORTED
    found.put_node(node("n", card(1)))
    assert slices_left(found) == 4
    found.drop_pod("uid-a")
    found.drop_node("n")
    found.put_node(node("n", card(1)))
    assert slices_left(found) == 6


def test_what_is_assumed_ends_with_what_the_watch_tells() -> None:
    found = view(node("n", card(1)), node("m", card(1)))
    asking = pod("a", {SHARED: 4})
    found.assume(placed(found, asking))
    assert found.is_assumed("uid-a")
    assert found.pods() == frozenset()
    assert not found.has_pod("uid-a")
    found.put_pod(asking)  # an older state of it, still unbound
    assert slices_left(found) == 2
    found.put_pod(pod("a", {SHARED: 4}, on="m", cards=ONE))
    assert not found.is_assumed("uid-a")
    assert found.pods() == {"uid-a"}
    assert found.has_pod("uid-a")
    assert (slices_left(found), slices_left(found, "m")) == (6, 2)
    found.forget("uid-a")
    assert slices_left(found, "m") == 2


def test_a_hint_that_somebody_else_wrote_is_none() -> None:
    found = view(node("n", card(1)), pod("a", {SHARED: 1}, on="n", cards="card one"))
    assert problem(found, "n") == "which cards default/a has is not reported yet"


@pytest.mark.parametrize("kind", [WHOLE, SHARED, DRS])
def test_a_pod_that_was_bound_by_hand_may_ask_for_any_number(kind: str) -> None:
    """The API server takes it, and only the node's kubelet refuses it."""
    found = view(node("n", card(1)), pod("a", {kind: 10**15}, on="n"))
    assert problem(found, "n") == "which cards default/a has is not reported yet"
    found.put_pod(pod("a", {kind: 10**15}, on="n", phase="Failed"))
    assert (problem(found, "n"), slices_left(found)) == ("", 6)


def test_kinds_of_cards_are_of_the_nodes_with_the_labels() -> None:
    found = AnnotatedCluster()

    def put(name: str, pool: str, *cards: NodeCard) -> None:
        reported = node(name, *cards)
        reported["metadata"]["labels"] = {"pool": pool}
        found.put_node(reported)

    four = card(3, slices=4)
    put("a", "x", card(1), card(2))
    put("b", "y", four)
    found.put_node({"metadata": {"name": "no-agent", "labels": {"pool": "z"}}})
    six, few = CardKind.of(card(1)), CardKind.of(four)
    assert found.card_kinds({}) == {six, few}
    assert found.card_kinds({"pool": "x"}) == {six}
    assert found.card_kinds({"pool": "z"}) == set()
    put("b", "x", four)  # only its labels are others
    assert found.card_kinds({"pool": "x"}) == {six, few}
    found.put_node({"metadata": {"name": "a", "annotations": {ANNOTATION_CARDS: "{"}}})
    assert found.card_kinds({}) == {few}
    found.drop_node("b")
    assert found.card_kinds({}) == set()
