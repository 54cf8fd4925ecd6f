"""What a claim by memory and compute is stored as where kube-scheduler allocates."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from prometheus_client import CollectorRegistry

from controller.allocator.packing.policy import BINPACK, Policy
from controller.cache.published_kinds import PublishedKinds
from controller.webhook.capacity_writer import CapacityWriter
from controller.webhook.limits import LimitRules
from controller.webhook.review import Review
from controller.webhook.service import CAPACITY, WebhookService, with_dra
from dra_driver.asks.templates import devices_named
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import CLASS_DRS, CLASS_PART, CLASS_SHARED, CLASS_WHOLE, DRIVER
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import (
    ALL_CLASSES,
    claim,
    device,
    first_available,
    pool,
    request,
)
from tests.unit.controller.webhook.patching import admitted, patched
from tests.unit.controller.webhook.test_amounts import entry

S60 = [device(mode, 0) for mode in ("whole", "shared", "drs")]
"""42,976 MiB: six slices of 7,162 MiB, or instances of 6, 20 and 40 GiB."""


def of_model(name: str, memory: int, *profiles: str, slices: int = 6) -> list[Object]:
    """The devices of a card of another model, divided in six."""
    found = [device(mode, 1, slices=slices) for mode in ("whole", "shared", "drs")]
    for each in found:
        attributes = each["attributes"]
        attributes["model"], attributes["memoryMiB"] = {"string": name}, {"int": memory}
        if "profiles" in attributes:
            attributes["profiles"] = {"string": ",".join(profiles)}
        if "memoryPerSliceMiB" in attributes:
            attributes["memoryPerSliceMiB"] = {"int": memory // slices}
    return found


L600 = of_model("L600", 144_000, "1g.22gb", "3g.68gb", "6g.136gb")
"""Slices of 24,000 MiB."""
COPY = of_model("S61", 42_976, "1g.6gb", "3g.20gb", "6g.40gb")
FEW = of_model("S60", 42_976, "1g.6gb", "3g.20gb", "6g.40gb", slices=4)
"""The model of `S60`, in four slices of 10,744 MiB."""
MODEL = f'device.attributes["{DRIVER}"].model == "{{}}"'


def published(*cards: Sequence[Object]) -> PublishedKinds:
    """A node for each of the cards, and all DeviceClasses."""
    found = PublishedKinds()
    found.slices.on_replace(
        [each for number, card in enumerate(cards) for each in pool(f"n{number}", card)]
    )
    found.classes.on_replace(list(ALL_CLASSES.values()))
    return found


def writes(
    made: Object, *cards: Sequence[Object], policy: Policy = BINPACK, stored: Object | None = None
) -> Object:
    """``spec.devices`` after the webhook."""
    write = CapacityWriter(published(*cards), policy)
    before = copy.deepcopy(made)
    after = patched(made, write(Review("u", made, stored)))
    assert made == before
    found: Object = after["spec"]["devices"]
    return found


def of_kind(card: Sequence[Object], mode: str) -> str:
    """The selector that chooses cards that are divided like this one."""
    [found] = [each["attributes"] for each in card if each["name"].startswith(mode)]
    divided = (
        f'profiles == "{found["profiles"]["string"]}"'
        if mode == "drs"
        else f"memoryPerSliceMiB == {found['memoryPerSliceMiB']['int']}"
    )
    of = f'device.attributes["{DRIVER}"].'
    return f'{of}type == "{mode}" && {of}model == "{found["model"]["string"]}" && {of}{divided}'


def form(cls: str, capacity: str, amount: int, *selectors: str, **more: Any) -> Object:
    """A form as it is written; `selectors` are its own, and then the one that was added."""
    found: Object = {
        "deviceClassName": cls,
        "allocationMode": "ExactCount",
        "count": 1,
        "capacity": {"requests": {capacity: str(amount)}},
    }
    if selectors:
        found["selectors"] = [{"cel": {"expression": each}} for each in selectors]
    return found | more


class Case(NamedTuple):
    """One request `gcu` for the class, with this GcuConfig; and what it becomes: `exactly` without
    a name, or subrequests by their names."""

    cls: str
    config: Mapping[str, Any]
    cards: Sequence[Sequence[Object]]
    expected: Mapping[str, Object]


S60_SLICES, S60_SIZE = of_kind(S60, "shared"), of_kind(S60, "drs")
L600_SLICES, L600_SIZE = of_kind(L600, "shared"), of_kind(L600, "drs")
CASES = {
    "slices of one model": Case(
        CLASS_SHARED,
        {"memory": "7Gi"},
        [S60],
        {"": form(CLASS_SHARED, "slices", 2, S60_SLICES)},
    ),
    "by compute": Case(
        CLASS_SHARED, {"cores": 50}, [S60], {"": form(CLASS_SHARED, "slices", 3, S60_SLICES)}
    ),
    "by both": Case(
        CLASS_SHARED,
        {"memory": "7Gi", "cores": 50},
        [S60],
        {"": form(CLASS_SHARED, "slices", 3, S60_SLICES)},
    ),
    "an instance of one model": Case(
        CLASS_DRS, {"memory": "7Gi"}, [S60], {"": form(CLASS_DRS, "size", 3, S60_SIZE)}
    ),
    "two models that differ": Case(
        CLASS_DRS,
        {"memory": "20Gi"},
        [S60, L600],
        {
            "size-3": form(CLASS_DRS, "size", 3, S60_SIZE),
            "size-1": form(CLASS_DRS, "size", 1, L600_SIZE),
        },
    ),
    "two models that need the same": Case(
        CLASS_DRS,
        {"memory": "7Gi"},
        [S60, COPY],
        {"": form(CLASS_DRS, "size", 3, f"({S60_SIZE}) || ({of_kind(COPY, 'drs')})")},
    ),
    "one model, divided in two ways": Case(
        CLASS_SHARED,
        {"memory": "10Gi"},
        [S60, FEW],
        {
            "slices-2": form(CLASS_SHARED, "slices", 2, S60_SLICES),
            "slices-1": form(CLASS_SHARED, "slices", 1, of_kind(FEW, "shared")),
        },
    ),
    "a model that has nothing as large": Case(
        CLASS_SHARED,
        {"memory": "100Gi"},
        [S60, L600],
        {"": form(CLASS_SHARED, "slices", 5, L600_SLICES)},
    ),
    "any part, best-effort": Case(
        CLASS_PART,
        {"cores": 30, "isolation": "best-effort"},
        [S60],
        {"": form(CLASS_PART, "slices", 2, S60_SLICES)},
    ),
    "any part, fixed-share": Case(
        CLASS_PART,
        {"cores": 30, "isolation": "fixed-share"},
        [S60],
        {"": form(CLASS_PART, "size", 3, S60_SIZE)},
    ),
    "any part: what leaves least of a card first": Case(
        CLASS_PART,
        {"memory": "7Gi"},
        [S60],
        {
            "size-3": form(CLASS_PART, "size", 3, S60_SIZE),
            "slices-2": form(CLASS_PART, "slices", 2, S60_SLICES),
        },
    ),
    "slices in the configuration": Case(
        CLASS_SHARED, {"slices": 2}, [], {"": form(CLASS_SHARED, "slices", 2)}
    ),
    "a size in the configuration": Case(
        CLASS_PART, {"size": 2}, [], {"": form(CLASS_PART, "size", 2)}
    ),
    "slices and an isolation": Case(
        CLASS_PART,
        {"slices": 2, "isolation": "best-effort"},
        [],
        {"": form(CLASS_PART, "slices", 2)},
    ),
    "best-effort alone": Case(
        CLASS_PART, {"isolation": "best-effort"}, [], {"": form(CLASS_PART, "slices", 1)}
    ),
    "fixed-share alone": Case(
        CLASS_PART, {"isolation": "fixed-share"}, [], {"": form(CLASS_PART, "size", 1)}
    ),
    "packing alone": Case(
        CLASS_SHARED,
        {"packing": {"nodes": "spread"}},
        [],
        {"": {key: each for key, each in form(CLASS_SHARED, "", 0).items() if key != "capacity"}},
    ),
}


def forms(devices: Object, nth: int = 0) -> Mapping[str, Object]:
    """Of a request, as in `Case`."""
    asked = devices["requests"][nth]
    if "exactly" in asked:
        return {"": asked["exactly"]}
    assert asked.keys() == {"name", "firstAvailable"}
    return {
        each["name"]: {field: value for field, value in each.items() if field != "name"}
        for each in asked["firstAvailable"]
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_request(case: Case) -> None:
    config = [entry("gcu", **case.config)]
    made = claim("c", [request(cls=case.cls)], config=config)
    found = writes(made, *case.cards)
    assert forms(found) == case.expected
    assert list(forms(found)) == list(case.expected)
    assert found["config"] == config
    # It may be called again, and by another time other cards are known.
    after = made | {"spec": {"devices": found}}
    assert writes(after, *case.cards) == found
    assert writes(made, COPY, FEW, stored=after) == found


def test_policies_prefer_different_parts() -> None:
    made = claim("c", [request(cls=CLASS_PART)], config=[entry(memory="7Gi")])
    spread = Policy(Packing.BINPACK, Packing.SPREAD)
    assert list(forms(writes(made, S60, policy=spread))) == ["slices-2", "size-3"]
    made = claim(
        "c",
        [request(cls=CLASS_PART)],
        config=[entry(memory="7Gi", packing={"cards": "spread"})],
    )
    assert list(forms(writes(made, S60))) == ["slices-2", "size-3"]


def test_what_was_written_can_be_evaluated_on_every_device() -> None:
    """An expression that fails on one device fails a claim in kube-scheduler."""
    made = claim("c", [request(cls=CLASS_PART)], config=[entry(memory="20Gi")])
    cards = (S60, L600, FEW)
    chosen = []
    for name, written in forms(writes(made, *cards)).items():
        expression = written["selectors"][0]["cel"]["expression"]
        chosen += [
            (name, each["attributes"]["model"]["string"], each["attributes"]["type"]["string"])
            for card in cards
            for each in card
            if Selectors().matches(expression, SelectorInput.of(DRIVER, each))
        ]
    assert sorted(chosen) == [
        ("size-1", "L600", "drs"),
        ("size-3", "S60", "drs"),
        ("size-3", "S60", "drs"),
        ("slices-1", "L600", "shared"),
        ("slices-2", "S60", "shared"),
        ("slices-3", "S60", "shared"),
    ]


def test_a_selector_of_the_request_chooses_the_cards() -> None:
    """One that reads a card's own attributes leaves all."""
    only = MODEL.format("L600")
    made = claim("c", [request(cls=CLASS_SHARED, selector=only)], config=[entry(memory="20Gi")])
    expected = form(CLASS_SHARED, "slices", 1, only, L600_SLICES)
    assert forms(writes(made, S60, L600)) == {"": expected}
    card = f'device.attributes["{DRIVER}"].card == "0000:01:00.0"'
    made = claim("c", [request(cls=CLASS_SHARED, selector=card)], config=[entry(memory="20Gi")])
    assert list(forms(writes(made, S60, L600))) == ["slices-3", "slices-1"]


def test_a_class_of_ones_own() -> None:
    made = claim("c", [request(cls="any.example.com")], config=[entry(memory="20Gi")])
    assert list(forms(writes(made, S60))) == ["size-3", "slices-3"]


def test_the_rest_of_a_request_stays() -> None:
    """A subrequest has no `adminAccess`."""
    tolerations = [{"key": "example.com/any", "operator": "Exists"}]
    asked = request(cls=CLASS_DRS, count=2, tolerations=tolerations, adminAccess=False)
    made = claim("c", [asked], config=[entry(memory="20Gi")])
    assert forms(writes(made, S60, L600)) == {
        "size-3": form(CLASS_DRS, "size", 3, S60_SIZE, count=2, tolerations=tolerations),
        "size-1": form(CLASS_DRS, "size", 1, L600_SIZE, count=2, tolerations=tolerations),
    }
    asked = request(cls=CLASS_DRS, allocationMode="All")
    made = claim("c", [asked], config=[entry(memory="20Gi")])
    assert [each["allocationMode"] for each in forms(writes(made, S60, L600)).values()] == [
        "All",
        "All",
    ]


NIC: Object = {"name": "nic", "exactly": {"deviceClassName": "nic.example.com"}}


def test_several_requests_and_other_drivers() -> None:
    """An entry without requests is for all of this driver's. Names of requests stay."""
    made = claim(
        "c",
        [
            NIC,
            request("one", cls=CLASS_SHARED),
            request("two", cls=CLASS_DRS),
            request("by-capacity", cls=CLASS_SHARED, capacity={"slices": "4"}),
            request("card"),
        ],
        config=[
            entry("one", "two", memory="20Gi"),
            entry("by-capacity", slices=4),
            entry(packing={"nodes": "spread"}),
        ],
        constraints=[{"matchAttribute": f"{DRIVER}/card", "requests": ["one", "two"]}],
    )
    found = writes(made, S60, L600)
    assert found["requests"][0] == NIC
    assert list(forms(found, 1)) == ["slices-3", "slices-1"]
    assert list(forms(found, 2)) == ["size-3", "size-1"]
    assert found["requests"][3:] == made["spec"]["devices"]["requests"][3:]
    for field in ("config", "constraints"):
        assert found[field] == made["spec"]["devices"][field]


def test_subrequests_that_are_named() -> None:
    """Each is named where it was; one that became several by all of them."""
    made = claim(
        "c",
        [
            first_available(
                "gcu",
                request("isolated", cls=CLASS_DRS),
                request("shared", cls=CLASS_SHARED),
                request("card"),
            )
        ],
        config=[
            entry("gcu/isolated", memory="20Gi"),
            entry("gcu/shared", slices=3),
            entry("gcu", packing={"nodes": "spread"}),
        ],
        constraints=[
            {"matchAttribute": f"{DRIVER}/model", "requests": ["gcu/card", "gcu/isolated"]},
            {"matchAttribute": f"{DRIVER}/model"},
        ],
    )
    found = writes(made, S60, L600)
    assert forms(found) == {
        "isolated-size-3": form(CLASS_DRS, "size", 3, S60_SIZE),
        "isolated-size-1": form(CLASS_DRS, "size", 1, L600_SIZE),
        "shared": form(CLASS_SHARED, "slices", 3),
        "card": request("card")["exactly"],
    }
    became = ["gcu/isolated-size-3", "gcu/isolated-size-1"]
    assert [each.get("requests") for each in found["config"]] == [became, ["gcu/shared"], ["gcu"]]
    assert [each.get("requests") for each in found["constraints"]] == [
        ["gcu/card", *became],
        None,
    ]
    stored = made | {"spec": {"devices": found}}
    assert writes(made, COPY, stored=stored) == found
    one = writes(made, S60)
    assert list(forms(one)) == ["isolated", "shared", "card"]
    assert one["config"] == made["spec"]["devices"]["config"]


@pytest.mark.parametrize("number", [8, 9])
def test_as_many_alternatives_as_a_request_can_have(number: int) -> None:
    cards = [of_model(f"M{n}", 10_000 * n, "1g.1gb", slices=n) for n in range(1, number + 1)]
    made = claim("c", [request(cls=CLASS_SHARED)], config=[entry(cores=99)])
    if number == 8:
        assert len(forms(writes(made, *cards))) == 8
        return
    words = (
        "^claim default/c, request gcu: the cards of this cluster differ, so it would need 9 "
        "alternatives, and a request can have 8; select fewer models"
    )
    with pytest.raises(Refused, match=words):
        writes(made, *cards)


REFUSED: dict[str, tuple[Object, Sequence[Sequence[Object]], str]] = {
    "no card is known": (
        claim("c", [request(cls=CLASS_SHARED)], config=[entry(memory="7Gi")]),
        [],
        (
            "^claim default/c, request gcu asks for memory 7168Mi, and no part of a card is known "
            "yet, so it cannot be turned into slices or a size; create the claim again once an "
        ),
    ),
    "whole cards alone": (
        claim("c", [request(cls=CLASS_SHARED)], config=[entry(memory="7Gi")]),
        [[device("whole", 0)]],
        "no part of a card is known yet",
    ),
    "none that its selectors choose": (
        claim(
            "c",
            [request(cls=CLASS_SHARED, selector=MODEL.format("L600"))],
            config=[entry(memory="7Gi")],
        ),
        [S60],
        "no part of a card is published that its class and selectors choose",
    ),
    "more than any has": (
        claim("c", [request(cls=CLASS_PART)], config=[entry(memory="50Gi", cores=10)]),
        [S60],
        (
            "request gcu asks for memory 51200Mi and cores 10, which no part of a card covers: "
            r"S60 \(1g.6gb, 3g.20gb, 6g.40gb\); S60 \(6 slices of 7162 MiB\); ask for less"
        ),
    ),
    "of a whole card": (
        claim("c", [request(cls=CLASS_WHOLE)], config=[entry(memory="7Gi")]),
        [S60],
        "memory, and gcu.enflame.com is of whole cards; request part-gcu",
    ),
    "administrative access": (
        claim("c", [request(cls=CLASS_SHARED, adminAccess=True)], config=[entry(cores=20)]),
        [S60],
        "request gcu: adminAccess is for whole cards, and its GcuConfig asks for cores 20; request",
    ),
    "administrative access to slices": (
        claim("c", [request(cls=CLASS_SHARED, adminAccess=True)], config=[entry(slices=2)]),
        [S60],
        "adminAccess is for whole cards, and its GcuConfig asks for slices 2",
    ),
    "a capacity that is less": (
        claim(
            "c",
            [request(cls=CLASS_SHARED, capacity={"slices": "1"})],
            config=[entry(memory="7Gi")],
        ),
        [S60, L600],
        (
            r"its capacity.requests are less than its GcuConfig asks for \(memory 7168Mi\) on "
            r"S60 \(6 slices of 7162 MiB\); leave capacity.requests out"
        ),
    ),
    "two amounts": (
        claim(
            "c",
            [request(cls=CLASS_SHARED, capacity={"slices": "1"})],
            config=[entry(slices=2)],
        ),
        [S60],
        "its GcuConfig asks for slices 2, and its capacity.requests for 1",
    ),
}


@pytest.mark.parametrize(("made", "cards", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_in_words(made: Object, cards: Sequence[Sequence[Object]], words: str) -> None:
    with pytest.raises(Refused, match=words):
        writes(made, *cards)


def test_a_configuration_that_is_not_understood() -> None:
    made = claim("c", [request(cls=CLASS_SHARED)], config=[entry(memory="7Gi", core=20)])
    with pytest.raises(InvalidValue, match="claim default/c is not understood: the field core"):
        writes(made, S60)


def test_a_claim_without_a_name_yet() -> None:
    """As kube-controller-manager makes it from a template."""
    made = claim("c", [request(cls=CLASS_SHARED)], config=[entry(memory="7Gi")])
    made["metadata"] = {"namespace": "team", "generateName": "pod-gcu-"}
    assert forms(writes(made, S60))[""]["capacity"] == {"requests": {"slices": "2"}}
    with pytest.raises(Refused, match=r"^claim team/pod-gcu-, request gcu asks"):
        writes(made)


def test_selectors_that_cost_too_much() -> None:
    text = "[1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, {0}.all(b, {0}.all(c, {0}.all(d, true))))"
    costly = text.format("[1, 2, 3, 4, 5, 6, 7, 8, 9]")
    times = iter(range(1_000_000))
    made = claim("c", [request(cls=CLASS_SHARED, selector=costly)], config=[entry(memory="7Gi")])
    write = CapacityWriter(published(S60), BINPACK, clock=lambda: float(next(times)))
    with pytest.raises(Refused, match="its selectors are too costly to evaluate"):
        write(Review("u", made))


CHANGED: dict[str, tuple[Object, Object]] = {
    "an amount": (entry(memory="7Gi"), entry(memory="14Gi")),
    "another way to ask": (entry(memory="7Gi"), entry(slices=1)),
}


@pytest.mark.parametrize(("before", "after"), CHANGED.values(), ids=CHANGED)
def test_a_change_stays_a_change(before: Object, after: Object) -> None:
    """The API server refuses it: the spec of a claim never changes."""
    made = claim("c", [request(cls=CLASS_SHARED)], config=[before])
    stored = made | {"spec": {"devices": writes(made, S60)}}
    changed = claim("c", [request(cls=CLASS_SHARED)], config=[after])
    assert writes(changed, S60, stored=stored) != stored["spec"]["devices"]
    selected = claim(
        "c", [request(cls=CLASS_SHARED, selector=MODEL.format("S60"))], config=[before]
    )
    assert writes(selected, S60, stored=stored) != stored["spec"]["devices"]


def test_an_update_of_what_was_never_written() -> None:
    """The claim is from a time when the controller allocated."""
    made = claim("c", [request(cls=CLASS_SHARED)], config=[entry(memory="7Gi")])
    labelled = copy.deepcopy(made)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert writes(labelled, stored=made) == made["spec"]["devices"]
    changed = claim("c", [request(cls=CLASS_SHARED)], config=[entry(memory="9Gi")])
    assert writes(changed, S60, stored=made) == changed["spec"]["devices"]


def test_what_is_published_changes() -> None:
    made = claim("c", [request(cls=CLASS_DRS)], config=[entry(memory="20Gi")])
    found = published(S60)
    write = CapacityWriter(found, BINPACK)

    def names() -> list[str]:
        return list(forms(patched(made, write(Review("u", made)))["spec"]["devices"]))

    [other] = pool("other", L600)
    assert names() == [""]
    found.slices.on_event(Change.ADDED, other)
    assert names() == ["size-3", "size-1"]
    found.slices.on_event(Change.MODIFIED, other | {"spec": other["spec"] | {"devices": 7}})
    assert names() == [""]
    found.slices.on_event(Change.MODIFIED, other)
    found.slices.on_event(Change.DELETED, other)
    assert names() == [""]
    [theirs] = pool("theirs", L600, driver="gpu.example.com")
    found.slices.on_event(Change.ADDED, theirs)
    found.slices.on_event(Change.ADDED, pool("counters", [])[0])
    assert names() == [""]
    found.classes.on_event(Change.DELETED, ALL_CLASSES[CLASS_DRS])
    with pytest.raises(Refused, match=r"DeviceClass drs-gcu\.enflame\.com does not exist"):
        names()


def test_devices_that_no_agent_publishes_are_left_out() -> None:
    strange = [device("shared", 3), device("drs", 3)]
    del strange[0]["attributes"]["model"]
    strange[1]["attributes"]["profiles"] = {"string": "small"}
    made = claim("c", [request(cls=CLASS_PART)], config=[entry(memory="7Gi")])
    assert writes(made, strange, S60) == writes(made, S60)


def test_the_claim_of_limits_by_memory_and_compute() -> None:
    devices = devices_named("enflame-best-effort-20480m-7168m")
    made = claim("c")
    made["spec"]["devices"] = devices
    found = writes(made, S60, L600)
    assert [list(forms(found, nth)) for nth in (0, 1)] == [
        ["slices-3", "slices-1"],
        ["slices-2", "slices-1"],
    ]


@pytest.mark.parametrize("spec", [{}, {"devices": {}}, {"devices": {"requests": None}}], ids=str)
def test_a_claim_without_requests(spec: Object) -> None:
    made = claim("c") | {"spec": spec}
    assert CapacityWriter(published(S60), BINPACK)(Review("u", made)) == []


def test_an_api_server_is_answered() -> None:
    rules = LimitRules(frozenset(), "default-scheduler", drop_node_selector=True)
    write = CapacityWriter(published(S60), BINPACK)
    mutations = with_dra((), rules, translates=lambda: True, capacity=write)
    answer = WebhookService(mutations, CollectorRegistry()).answers[CAPACITY]
    made = claim("c", [request(cls=CLASS_SHARED)], config=[entry(memory="7Gi")])
    assert forms(admitted(answer, made)["spec"]["devices"])[""]["capacity"] == {
        "requests": {"slices": "2"}
    }
