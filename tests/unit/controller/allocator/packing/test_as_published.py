"""On a node, the devices that kube-scheduler takes: the first of its slices that fit."""

from __future__ import annotations

import pytest

from controller.allocator.packing.policy import SchedulerPolicy
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.names import DRIVER
from tests.unit.controller.allocator.build import allocated, claim, pool, request
from tests.unit.controller.allocator.decide import (
    SHARE,
    SHARED,
    cards,
    decide,
    names,
)

AS_AGENTS_PUBLISH = pool(
    "a", [*cards(4, "shared"), *reversed(cards(4, "whole"))]
)  # shared from the first card, whole from the last
SHARES_ON_0 = allocated("s", "a", *names("shared", 0), consumed=SHARE)
SHARES_ON_1 = allocated("t", "a", *names("shared", 1), consumed={"slices": "4"})


@pytest.mark.parametrize(
    ("held", "wanted", "taken"),
    [
        pytest.param([], request(), names("whole", 3), id="whole, from the last"),
        pytest.param(
            [allocated("w", "a", *names("whole", 3))],
            request(count=2),
            names("whole", 2, 1),
            id="two cards of two switches, although two of one are free",
        ),
        pytest.param(
            [SHARES_ON_0, SHARES_ON_1],
            request(cls=SHARED, capacity=SHARE),
            names("shared", 0),
            id="the first with room, not the fullest",
        ),
        pytest.param(
            [SHARES_ON_0],
            request(cls=SHARED, capacity={"slices": "6"}),
            names("shared", 1),
            id="the next where the first has no room",
        ),
    ],
)
def test_the_first_that_fit(held: list[Object], wanted: Object, taken: list[str]) -> None:
    chosen = decide(AS_AGENTS_PUBLISH, held, claim("c", [wanted]), policy=SchedulerPolicy())
    assert chosen == ("a", [name.removesuffix("-00-0") for name in taken])


def test_the_fuller_node_comes_first() -> None:
    nodes = [*AS_AGENTS_PUBLISH, *pool("b", cards(2, "whole"))]
    assert decide(nodes, [], claim("c"), policy=SchedulerPolicy()) == (
        "b",
        ["whole-0000-00"],
    )
    emptier = SchedulerPolicy(nodes=Packing.SPREAD)
    held = [allocated("w", "b", *names("whole", 0))]
    assert decide(nodes, held, claim("c"), policy=emptier) == ("a", ["whole-0000-03"])


def packed(**packing: str) -> Object:
    """A claim for a share that says how it is packed."""
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": packing}
    config = {"opaque": {"driver": DRIVER, "parameters": parameters}}
    return claim("c", [request(cls=SHARED, capacity=SHARE)], config=[config])


def test_what_a_claim_says_about_nodes_decides_which_one_is_named() -> None:
    nodes = [*AS_AGENTS_PUBLISH, *pool("b", cards(2, "shared"))]
    for spread, node in (({}, "b"), ({"nodes": "spread"}, "a")):
        found = decide(nodes, [], packed(**spread), policy=SchedulerPolicy())
        assert found is not None
        assert found[0] == node


def test_what_a_claim_says_about_cards_has_no_effect() -> None:
    """kube-scheduler does not read it."""
    wanted = packed(cards="spread")
    chosen = decide(AS_AGENTS_PUBLISH, [SHARES_ON_0], wanted, policy=SchedulerPolicy())
    assert chosen == ("a", ["shared-0000-00"])
