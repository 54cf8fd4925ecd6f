"""On a node, the devices that kube-scheduler takes: the first of its slices that fit."""

from __future__ import annotations

import pytest

from controller.allocator.packing.policy import BINPACK, SchedulerPolicy
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.names import CLASS_ADMIN, DRIVER, TAINT_ADMINISTRATORS
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import (
    ANY,
    allocated,
    card,
    claim,
    device,
    first_available,
    pool,
    request,
    state,
)
from tests.unit.controller.allocator.decide import (
    DRS,
    SHARE,
    SHARED,
    cards,
    decide,
    names,
    whole,
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
    share = claim("c", [request(cls=SHARED, capacity=SHARE)])
    shared = [*AS_AGENTS_PUBLISH, *pool("b", cards(2, "shared"))]
    for policy, node in ((BINPACK, "a"), (SchedulerPolicy(), "b")):  # a has the fuller card
        chosen = decide(shared, [SHARES_ON_0], share, policy=policy)
        assert chosen == (node, ["shared-0000-00"])
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


def test_requests_choose_in_their_order() -> None:
    """The controller would serve the second one first, which has no other choice."""
    first = request("first", count=2)
    picky = request("picky", selector=f'device.attributes["{DRIVER}"].card == "{card(0)}"')
    held = [allocated("w", "a", *names("whole", 3))]
    chosen = decide(AS_AGENTS_PUBLISH, held, claim("c", [first, picky]), policy=SchedulerPolicy())
    assert chosen == ("a", whole(2, 1, 0))


def test_a_later_alternative_before_other_devices() -> None:
    """kube-scheduler keeps the first device, and takes the next alternative beside it; the
    controller changes the device."""
    cards_of_two = pool("a", [*cards(2, "shared"), *cards(1, "drs")])
    wanted = claim(
        "c",
        [
            request("share", cls=SHARED, capacity=SHARE),
            first_available("any", request("drs", cls=DRS), request("share", cls=SHARED)),
        ],
    )
    taken = {
        policy: decide(cards_of_two, [], wanted, policy=policy)
        for policy in (SchedulerPolicy(), BINPACK)
    }
    assert taken == {
        SchedulerPolicy(): ("a", ["shared-0000-00", "shared-0000-00"]),
        BINPACK: ("a", ["shared-0000-01", "drs-0000-00"]),
    }


def test_administrators_need_a_free_card() -> None:
    """Beside their own claim's devices, too (kubernetes#140729)."""
    monitor = request("monitor", adminAccess=True)
    both = [claim("c", [request(count=3)]), claim("m", [monitor])]
    assert decide(AS_AGENTS_PUBLISH, [], *both, policy=SchedulerPolicy()) == (
        "a",
        whole(3, 2, 1, 0),
    )


def counted(found: Object) -> Object:
    """The device as kube-scheduler allocates it."""
    counters = [{"counterSet": found["name"], "counters": {"card": {"value": "1"}}}]
    return found | {"taints": [], "consumesCounters": counters}


def for_admins(bus: int) -> Object:
    return device("admin", bus) | {
        "taints": [{"key": TAINT_ADMINISTRATORS, "effect": "NoSchedule"}]
    }


FOR_ADMINS = pool("a", [*map(counted, cards(2, "whole")), *map(for_admins, range(2))])
MONITOR = request(
    "monitor",
    cls=CLASS_ADMIN,
    adminAccess=True,
    tolerations=[{"key": TAINT_ADMINISTRATORS, "operator": "Exists"}],
    allocationMode="All",
)


def taken(held: list[Object], *wanted: Object) -> tuple[str, list[str]] | str:
    return decide(FOR_ADMINS, held, *wanted, policy=SchedulerPolicy(), for_scheduler=True)


def test_administrators_have_devices_that_need_no_free_card() -> None:
    """They count for nobody, and nobody else gets them."""
    both = ["admin-0000-00", "admin-0000-01"]
    held = [allocated(name, "a", *names("whole", bus)) for bus, name in enumerate("wv")]
    for holders in (held, []):
        assert taken(holders, claim("m", [MONITOR])) == ("a", both)
    for cls in (ANY, CLASS_ADMIN):
        assert taken(held, claim("c", [request(cls=cls)]))[0] != "a"
    admins = [allocated("m", "a", *names("admin", 0, 1), adminAccess=True)]
    wanted = [claim("m", [MONITOR]), claim("c", [request(count=2)])]
    assert taken(admins, *wanted) == ("a", [*both, *whole(0, 1)])


def test_a_card_gives_two_devices_to_a_request_that_tolerates_the_administrators_taint() -> None:
    both = [*whole(0, 1), "admin-0000-00", "admin-0000-01"]
    reads_own = f'device.attributes["{DRIVER}"].card != ""'
    for selector in ("true", reads_own):
        wanted = request(cls=ANY, count=4, selector=selector, tolerations=[{"operator": "Exists"}])
        assert taken([], claim("c", [wanted])) == ("a", both)


def test_the_administrators_device_makes_no_card_less_free() -> None:
    known = state(FOR_ADMINS, [], selectors=Selectors(), for_scheduler=True)
    known.refresh()
    assert {signature.free for signature in known.fleet.with_cards} == {True}


def test_all_devices_or_none() -> None:
    """A device that has too little left counts, too."""
    wanted = claim("c", [request(cls=SHARED, capacity={"slices": "6"}, allocationMode="All")])
    shared = pool("a", cards(2, "shared"))
    assert decide(shared, [], wanted, policy=SchedulerPolicy())[0] == "a"
    assert decide(shared, [SHARES_ON_0], wanted, policy=SchedulerPolicy())[0] != "a"
    assert decide(shared, [SHARES_ON_0], wanted)[0] != "a"


def test_of_equally_full_nodes_the_one_where_first_fit_is_near() -> None:
    """On the first node the last two cards are of two switches."""
    apart = [allocated("w", "a", *names("whole", 3))]
    near = [allocated("v", "b", *names("whole", 0))]
    nodes = [*AS_AGENTS_PUBLISH, *pool("b", [*reversed(cards(4, "whole"))])]
    chosen = decide(
        nodes, [*apart, *near], claim("c", [request(count=2)]), policy=SchedulerPolicy()
    )
    assert chosen == ("b", whole(3, 2))
