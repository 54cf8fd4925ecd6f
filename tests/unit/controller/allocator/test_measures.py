"""A request by memory and compute gets the smallest part of a card that covers both."""

from __future__ import annotations

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.claim_request import parse_claim
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.model.names import CLASS_PART, CLASS_WHOLE, DRIVER
from tests.unit.controller.allocator.build import (
    ALL_CLASSES,
    allocated,
    claim,
    device,
    device_class,
    pool,
    request,
    state,
)
from tests.unit.controller.allocator.decide import DRS, MODES, SHARED, cards, decide, names

# A card has 42976 MiB: six slices of 7162 MiB, or instances of 6, 20 and 40 GiB.


def asking(cls: str, **measures: object) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **measures}
    config = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    return claim("c", [request(cls=cls)], config=config)


def consumed(wanted: Object, *devices: Object) -> dict[str, str]:
    """Of the only device that is chosen."""
    found = state(pool("a", devices))
    parsed = parse_claim(wanted, found.classes)
    outcome = allocate(found, [parsed], found.numbers.set_of(["a"]))
    assert isinstance(outcome, Allocation)
    [[chosen]] = outcome.assignments
    fit = chosen.request.device_request.capacity_fit(chosen.device.kind)
    assert fit is not None
    return {name: amount.text for name, amount in fit.consumed.items()}


@pytest.mark.parametrize(
    ("measures", "slices"),
    [
        ({"memory": "1Mi"}, "1"),
        ({"memory": "7162Mi"}, "1"),
        ({"memory": "7163Mi"}, "2"),
        ({"cores": 16}, "1"),
        ({"cores": 17}, "2"),
        ({"cores": 24}, "2"),
        ({"cores": 50}, "3"),
        ({"cores": 99}, "6"),
        ({"memory": "7Gi", "cores": 50}, "3"),
        ({"memory": "30Gi", "cores": 50}, "5"),
    ],
    ids=str,
)
def test_slices_of_a_shared_card(measures: dict[str, object], slices: str) -> None:
    assert consumed(asking(SHARED, **measures), device("shared", 0)) == {"slices": slices}


@pytest.mark.parametrize(
    ("measures", "size"),
    [
        ({"memory": "6Gi"}, "1"),
        ({"memory": "6145Mi"}, "3"),
        ({"cores": 16}, "1"),
        ({"cores": 17}, "3"),
        ({"cores": 50}, "3"),
        ({"cores": 51}, "6"),
        ({"memory": "6Gi", "cores": 51}, "6"),
    ],
    ids=str,
)
def test_the_size_of_an_instance(measures: dict[str, object], size: str) -> None:
    assert consumed(asking(DRS, **measures), device("drs", 0)) == {"size": size}


def test_entries_for_one_request_add_up() -> None:
    """A later entry leaves what it does not say, as it does with slices and packing."""
    wanted = asking(SHARED, cores=50)
    wanted["spec"]["devices"]["config"] += asking(SHARED, memory="7Gi")["spec"]["devices"]["config"]
    assert consumed(wanted, device("shared", 0)) == {"slices": "3"}
    wanted["spec"]["devices"]["config"] += asking(SHARED, cores=60)["spec"]["devices"]["config"]
    assert consumed(wanted, device("shared", 0)) == {"slices": "4"}


STRANGE = {
    "profiles of another form": ("drs", {"profiles": {"string": "small,large"}}, {}),
    "memory that is no number": ("shared", {"memoryPerSliceMiB": {"string": "much"}}, {}),
    "more slices than memory holds": ("shared", {}, {"slices": {"value": "1e18"}}),
    "no size": ("drs", {}, {"size": {"value": "0"}}),
}


@pytest.mark.parametrize(("mode", "attributes", "capacity"), STRANGE.values(), ids=STRANGE)
def test_a_device_that_no_agent_publishes_keeps_no_other_from_serving(
    mode: str, attributes: Object, capacity: Object
) -> None:
    strange = device(mode, 0)
    strange["attributes"] |= attributes
    strange["capacity"] |= capacity
    slices = [*pool("a", [strange]), *pool("b", [device(mode, 1)])]
    assert decide(slices, [], asking(CLASS_PART, cores=10)) == ("b", [f"{mode}-0000-01"])


def test_each_model_is_cut_in_its_own_way() -> None:
    """Half a card is two of four slices, and three of six."""
    half = asking(SHARED, cores=50)
    assert consumed(half, device("shared", 0, slices=4)) == {"slices": "2"}
    assert consumed(half, device("shared", 0, slices=6)) == {"slices": "3"}


@pytest.mark.parametrize(("isolation", "mode"), [("best-effort", "shared"), ("fixed-share", "drs")])
def test_isolation_picks_the_mode(isolation: str, mode: str) -> None:
    wanted = asking(CLASS_PART, cores=30, isolation=isolation)
    assert decide(pool("a", cards(1, *MODES)), [], wanted) == ("a", [f"{mode}-0000-00-0"[:-2]])


@pytest.mark.parametrize(
    ("isolation", "node"), [("best-effort", "a"), ("fixed-share", "b"), (None, "a")]
)
def test_each_node_may_have_its_isolation(isolation: str | None, node: str) -> None:
    """By the modes of its cards (`cards.rules`)."""
    nodes = [*pool("a", cards(1, "shared")), *pool("b", cards(1, "drs"))]
    asked = {"cores": 10, **({"isolation": isolation} if isolation else {})}
    found = decide(nodes, [], asking(CLASS_PART, **asked))
    assert found[0] == node
    other = pool("a", cards(1, "shared")) if node == "b" else pool("b", cards(1, "drs"))
    if isolation:
        offered = "drs (isolation fixed-share)" if node == "a" else "shared (isolation best-effort)"
        assert decide(other, [], asking(CLASS_PART, **asked)) == (
            "1 device, none selected by DeviceClass part-gcu.enflame.com and the request; "
            f"1 requested; these cards are offered as {offered} only"
        )


def test_without_isolation_the_better_fit_is_chosen() -> None:
    """A tenth is one slice of a shared card that is in use, rather than an instance of an empty
    card."""
    held = [allocated("h", "a", *names("shared", 1), consumed={"slices": "1"})]
    found = decide(pool("a", cards(2, *MODES)), held, asking(CLASS_PART, cores=10))
    assert found == ("a", ["shared-0000-01"])


def test_what_is_held_counts() -> None:
    held = [allocated("h", "a", *names("shared", 0), consumed={"slices": "4"})]
    found = decide(pool("a", cards(1, "shared")), held, asking(SHARED, cores=40))
    assert found == "1 card: 1 with fewer than 3 free slices; 1 requested"


TOO_MUCH = {
    "more memory than a shared card has": (
        asking(SHARED, memory="50Gi"),
        "; asks for 51200Mi of memory, no card has more than 42972Mi",
    ),
    "more memory than the largest instance": (
        asking(DRS, memory="41Gi"),
        "; asks for 41984Mi of memory, no card has more than 40960Mi",
    ),
}


@pytest.mark.parametrize(("wanted", "words"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_the_reason_names_what_is_too_much(wanted: Object, words: str) -> None:
    found = decide(pool("a", cards(2, *MODES)), [], wanted)
    assert isinstance(found, str)
    assert found.endswith(words)


def test_more_compute_than_an_instance_can_have() -> None:
    """The largest profile is half of the card."""
    half = device("drs", 0)
    half["attributes"]["profiles"] = {"string": "1g.6gb,3g.20gb"}
    half["capacity"]["size"]["requestPolicy"]["validValues"] = ["1", "3"]
    found = decide(pool("a", [half]), [], asking(DRS, cores=51))
    assert found == (
        "1 card: 1 too small; 1 requested; asks for 51 % of the cores, no card has more than 50"
    )


def test_a_whole_card_has_no_parts() -> None:
    with pytest.raises(Refused, match=r"memory, and gcu\.enflame\.com is of whole cards"):
        parse_claim(asking(CLASS_WHOLE, memory="6Gi"), ALL_CLASSES)


def beside(wanted: Object, cls: str, **capacity: str) -> Object:
    """The claim with that in ``capacity.requests``, as a webhook writes it."""
    wanted["spec"]["devices"]["requests"] = [request(cls=cls, capacity=capacity)]
    return wanted


def test_a_capacity_beside_them_is_what_is_consumed() -> None:
    wanted = beside(asking(SHARED, cores=30), SHARED, slices="3")
    assert consumed(wanted, device("shared", 0)) == {"slices": "3"}
    wanted = beside(asking(CLASS_PART, memory="7Gi"), CLASS_PART, size="3")
    assert consumed(wanted, *(device(mode, 0) for mode in MODES)) == {"size": "3"}


@pytest.mark.parametrize(
    ("measures", "reason"),
    [
        (
            {"memory": "20Gi"},
            (
                "1 card: 1 too small; 1 requested; asks for 20480Mi of memory, no card has more "
                "than 7162Mi"
            ),
        ),
        (
            {"memory": "7Gi", "cores": 20},
            (
                "1 card: 1 too small; 1 requested; asks for 20 % of the cores, no card has more "
                "than 16; asks for 7168Mi of memory, no card has more than 7162Mi"
            ),
        ),
    ],
    ids=str,
)
def test_a_capacity_that_is_less_gets_nothing(measures: dict[str, object], reason: str) -> None:
    wanted = beside(asking(SHARED, **measures), SHARED, slices="1")
    assert decide(pool("a", cards(1, "shared")), [], wanted) == reason


def test_two_entries_with_amounts_and_measures_are_refused() -> None:
    wanted = asking(SHARED, cores=30)
    wanted["spec"]["devices"]["config"] += asking(SHARED, slices=2)["spec"]["devices"]["config"]
    with pytest.raises(Refused, match="its GcuConfig asks for slices, cores; leave one"):
        parse_claim(wanted, ALL_CLASSES)


def test_measures_in_a_class_are_refused() -> None:
    config = asking(SHARED, cores=30)["spec"]["devices"]["config"]
    classes = {SHARED: device_class(SHARED, "shared", config=config)}
    with pytest.raises(Refused, match="asks for cores in its configuration"):
        parse_claim(claim("c", [request(cls=SHARED)]), classes)
