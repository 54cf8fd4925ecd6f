"""Who has GCUs, from claims and Nodes as the API server has them."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold, NodeCard, render_cards
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS, DRIVER
from dra_driver.model.pci import PciAddress
from dra_driver.uninstall.check import card_line, cards_in_use, claims_with_gcus


def claim(name: str, *pools: str, driver: str = DRIVER, pods: tuple[str, ...] = ()) -> Object:
    """A claim with one device of each pool; without pools it is not allocated."""
    results = [
        {"request": "gcu", "driver": driver, "pool": pool, "device": "whole-0000-01-00-0"}
        for pool in pools
    ]
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    status: dict[str, Any] = {"reservedFor": reserved}
    if results:
        status["allocation"] = {"devices": {"results": results}}
    return {"metadata": {"namespace": "default", "name": name, "uid": name}, "status": status}


NODE_1, NODE_2 = f"{DRIVER}/node-1", f"{DRIVER}/node-2"


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (
            claim("a", NODE_1, pods=("p",)),
            "claim default/a: 1 device of node-1, used by pod default/p",
        ),
        (
            claim("a", NODE_1, NODE_1, pods=("p", "q")),
            "claim default/a: 2 devices of node-1, used by pod default/p, pod default/q",
        ),
        (
            claim("a", NODE_2, NODE_1),
            "claim default/a: 2 devices of node-1, node-2, used by no pod yet",
        ),
    ],
    ids=["one pod", "several", "allocated only"],
)
def test_a_claim_with_gcus_is_told_with_its_users(made: Object, line: str) -> None:
    assert claims_with_gcus([made]) == [line]


@pytest.mark.parametrize(
    "made",
    [
        claim("a"),
        claim("a", "pool", driver="gpu.example.com", pods=("p",)),
        {"metadata": {"namespace": "default", "name": "new", "uid": "new"}},
    ],
    ids=["not allocated", "another driver's", "without a status"],
)
def test_other_claims_are_nobodys_concern(made: Object) -> None:
    assert claims_with_gcus([made]) == []


def test_they_are_sorted_by_name() -> None:
    found = claims_with_gcus([claim(name, NODE_1) for name in "cab"])
    assert [line.partition(":")[0][-1] for line in found] == ["a", "b", "c"]


SHARED = NodeCard(
    PciAddress(0, 1, 0, 0),
    index=0,
    minor=0,
    slices=6,
    mode=Mode.SHARED,
    held=(Hold("uid-b", "main", 2), Hold("uid-a", "main", 1), Hold("uid-b", "side", 1)),
)
FREE = NodeCard(PciAddress(0, 2, 0, 0), index=1, minor=1, slices=6)
EMPTYING = NodeCard(PciAddress(0, 3, 0, 0), index=2, minor=2, total=6, mode=Mode.DRS)
STARTING = NodeCard(
    PciAddress(0, 4, 0, 0), index=3, minor=3, mode=Mode.WHOLE, held=(Hold("", "", 1),)
)
NAMES = {"uid-a": "pod default/a", "uid-b": "pod team/b"}


def node(name: str, *cards: NodeCard) -> Object:
    return {"metadata": {"name": name, "annotations": {ANNOTATION_CARDS: render_cards(cards)}}}


def test_cards_in_use_are_listed_with_their_pods() -> None:
    found = cards_in_use(
        [node("b", EMPTYING, FREE, STARTING), node("a", SHARED), {"metadata": {"name": "c"}}]
    )
    assert [card_line(name, card, NAMES) for name, card in found] == [
        "node a: card 0000:01:00.0, shared, used by pod default/a, pod team/b",
        "node b: card 0000:03:00.0, drs, used by no pod any more",
        "node b: card 0000:04:00.0, whole, used by a pod that has just started or ended",
    ]


def test_what_cannot_be_read_is_not_taken_for_nothing() -> None:
    told = {"metadata": {"name": "a", "annotations": {ANNOTATION_CARDS: "{"}}}
    with pytest.raises(InvalidValue, match="cannot be read"):
        cards_in_use([told])
