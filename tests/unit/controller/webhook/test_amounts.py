"""Where the amounts of a claim's requests stand after the webhook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from controller.webhook.amounts import move_amounts
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import CLASS_DRS, CLASS_SHARED, CLASS_WHOLE, DEVICE_CLASSES, DRIVER
from tests.unit.controller.webhook.patching import patched

OWN = "inference.example.com"
CLASSES = (*DEVICE_CLASSES, OWN)


def form(device_class: str, **capacity: str) -> Object:
    found: Object = {"deviceClassName": device_class}
    return found | ({"capacity": {"requests": capacity}} if capacity else {})


def exactly(name: str, device_class: str, **capacity: str) -> Object:
    return {"name": name, "exactly": form(device_class, **capacity)}


def first(name: str, *subs: tuple[str, Object]) -> Object:
    return {"name": name, "firstAvailable": [{"name": sub, **each} for sub, each in subs]}


def entry(*requests: str, driver: str = DRIVER, **fields: Any) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **fields}
    named = {"requests": list(requests)} if requests else {}
    return {"opaque": {"driver": driver, "parameters": parameters}} | named


def claim(requests: list[Object], config: list[Object]) -> Object:
    devices: Object = {"requests": requests} | ({"config": config} if config else {})
    return {"kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {"devices": devices}}


def template(requests: list[Object], config: list[Object]) -> Object:
    spec = {"metadata": {"labels": {}}, "spec": claim(requests, config)["spec"]}
    return {"kind": "ResourceClaimTemplate", "metadata": {"generateName": "t-"}, "spec": spec}


class Case(NamedTuple):
    requests: list[Object]
    config: list[Object]
    moved: list[Object]
    left: Mapping[str, str] = {}


SPREAD: Object = {"packing": {"nodes": "spread"}}
NIC = form("nic.example.com", bandwidth="10Gi")
CASES = {
    "slices": Case(
        [exactly("a", CLASS_SHARED, slices="2")],
        [],
        [entry("a", slices=2)],
    ),
    "by the full name": Case(
        [exactly("a", CLASS_SHARED, **{f"{DRIVER}/slices": "2"})],
        [],
        [entry("a", slices=2)],
    ),
    "a size": Case([exactly("a", CLASS_DRS, size="3")], [], [entry("a", size=3)]),
    "a class of one's own": Case([exactly("a", OWN, slices="2")], [], [entry("a", slices=2)]),
    "another spelling": Case(
        [exactly("a", CLASS_SHARED, slices="2000m")], [], [entry("a", slices=2)]
    ),
    "a part is rounded up": Case(
        [exactly("a", CLASS_SHARED, slices="1500m")], [], [entry("a", slices=2)]
    ),
    "zero is the least that there is": Case(
        [exactly("a", CLASS_SHARED, slices="0")], [], [entry("a", slices=1)]
    ),
    "requests of the same amount have one entry": Case(
        [
            exactly("a", CLASS_SHARED, slices="2"),
            exactly("b", CLASS_DRS, size="3"),
            exactly("c", CLASS_SHARED, slices="2"),
        ],
        [],
        [entry("a", "c", slices=2), entry("b", size=3)],
    ),
    "alternatives": Case(
        [
            first(
                "r",
                ("many", form(CLASS_SHARED, slices="4")),
                ("part", form(CLASS_DRS, size="6")),
                ("card", form(CLASS_WHOLE)),
            )
        ],
        [],
        [entry("r/many", slices=4), entry("r/part", size=6)],
    ),
    "nothing is asked": Case([exactly("a", CLASS_SHARED)], [], []),
    "another driver's request": Case(
        [{"name": "n", "exactly": NIC}, exactly("a", CLASS_SHARED, slices="2")],
        [],
        [entry("a", slices=2)],
        {"n": "10Gi"},
    ),
    "another driver's claim": Case([{"name": "n", "exactly": NIC}], [], [], {"n": "10Gi"}),
    "beside other configuration": Case(
        [exactly("a", CLASS_SHARED, slices="2")],
        [entry("a", **SPREAD), entry(driver="nic.example.com")],
        [entry("a", **SPREAD), entry(driver="nic.example.com"), entry("a", slices=2)],
    ),
    "both forms": Case(
        [exactly("a", CLASS_SHARED, slices="2")],
        [entry("a", slices=2)],
        [entry("a", slices=2)],
    ),
    "both forms, for all requests": Case(
        [exactly("a", CLASS_SHARED, slices="2"), exactly("b", CLASS_SHARED, slices="2")],
        [entry(slices=2)],
        [entry(slices=2)],
    ),
    "the later entry is the one that agrees": Case(
        [exactly("a", CLASS_SHARED, slices="2")],
        [entry(slices=3), entry("a", slices=2)],
        [entry(slices=3), entry("a", slices=2)],
    ),
    "the other form alone": Case(
        [exactly("a", CLASS_SHARED)], [entry("a", slices=2)], [entry("a", slices=2)]
    ),
}


def capacities(spec: Object) -> dict[str, str]:
    """By request what it asks by capacity."""
    return {
        request["name"]: next(iter(each["capacity"]["requests"].values()))
        for request in spec["devices"]["requests"]
        for each in [request.get("exactly"), *request.get("firstAvailable", ())]
        if each and "capacity" in each
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("make", [claim, template])
def test_moved(case: Case, make: Any) -> None:
    made = make(case.requests, case.config)
    after = patched(made, move_amounts(made, CLASSES))
    spec = after["spec"].get("spec") or after["spec"]
    assert spec["devices"].get("config", []) == case.moved
    assert capacities(spec) == case.left
    assert move_amounts(after, CLASSES) == []  # it may be called again


@pytest.mark.parametrize("spec", [{}, {"devices": {}}, {"devices": {"requests": None}}], ids=str)
def test_a_claim_without_requests(spec: Object) -> None:
    assert move_amounts({"kind": "ResourceClaim", "metadata": {}, "spec": spec}, CLASSES) == []


REFUSED = {
    "two amounts": (
        [exactly("a", CLASS_SHARED, slices="3")],
        [entry("a", slices=2)],
        Refused,
        "ResourceClaim c, request a: its GcuConfig asks for slices 2, .* for 3; ask for the same",
    ),
    "another capacity": (
        [exactly("a", CLASS_WHOLE, memory="40Gi")],
        [],
        Refused,
        "request a: the capacity memory cannot be requested here.*; select devices by their attr",
    ),
    "two amounts of one capacity": (
        [exactly("a", CLASS_SHARED, **{"slices": "2", f"{DRIVER}/slices": "3"})],
        [],
        Refused,
        "ResourceClaim c, request a: it asks for slices 2 and for gcu.enflame.com/slices 3",
    ),
    "another domain's capacity": (
        [exactly("a", CLASS_SHARED, **{"a/b/c": "2"})],
        [],
        Refused,
        "ResourceClaim c, request a: no device of gcu.enflame.com has the capacity a/b/c",
    ),
    "no quantity": (
        [exactly("a", CLASS_SHARED, slices="few")],
        [],
        InvalidValue,
        "'few' is not a quantity",
    ),
    "configuration that is not understood": (
        [exactly("a", CLASS_SHARED, slices="2")],
        [entry("a", slice=2)],
        InvalidValue,
        "of ResourceClaim c is not understood: the field slice is unknown",
    ),
}


@pytest.mark.parametrize(("requests", "config", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(
    requests: list[Object], config: list[Object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        move_amounts(claim(requests, config), CLASSES)


TOLERATING = {"tolerations": [{"key": "example.com/any", "operator": "Exists"}]}
DISTINCT: Object = {"distinctAttribute": "gcu.enflame.com/card"}


@pytest.mark.parametrize(
    ("requests", "constraints", "message"),
    [
        pytest.param(
            [{"name": "a", "exactly": form(CLASS_WHOLE) | TOLERATING}],
            [],
            "ResourceClaim c, request a: .* drop tolerations",
            id="tolerations",
        ),
        pytest.param(
            [first("a", ("one", NIC), ("two", form(CLASS_WHOLE) | TOLERATING))],
            [],
            "request a/two: .* drop tolerations",
            id="tolerations of an alternative",
        ),
        pytest.param([exactly("a", CLASS_WHOLE)], [DISTINCT], "drop distinctA", id="distinct"),
        pytest.param(
            [first("a", ("one", form(CLASS_WHOLE))), {"name": "n", "exactly": NIC}],
            [DISTINCT | {"requests": ["n", "a"]}],
            "drop distinctAttribute; remove it",
            id="distinct, by the request's name",
        ),
    ],
)
def test_what_the_server_drops_without_a_substitute_is_refused(
    requests: list[Object], constraints: list[Object], message: str
) -> None:
    made = claim(requests, [])
    made["spec"]["devices"]["constraints"] = constraints
    with pytest.raises(Refused, match=message):
        move_amounts(made, CLASSES)


def test_what_others_ask_for_is_not_refused() -> None:
    nic = {"name": "n", "exactly": NIC | TOLERATING}
    made = claim([nic, exactly("a", CLASS_WHOLE)], [])
    made["spec"]["devices"]["constraints"] = [
        DISTINCT | {"requests": ["n"]},
        {"matchAttribute": "gcu.enflame.com/pcieSwitch", "requests": ["a"]},
    ]
    assert move_amounts(made, CLASSES) == []
