"""The allocation is written as upstream's own allocator writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.allocated_devices import allocations_of
from controller.allocator.claim_request import parse_claim
from controller.allocator.results import allocation_status
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from tests.unit.controller.allocator.build import (
    ALL_CLASSES,
    ANY,
    CLASSES,
    claim,
    device,
    device_class,
    first_available,
    plain,
    pool,
    request,
    state,
    stripped,
    without_shares,
)

PARAMETERS = {"apiVersion": API_VERSION, "kind": KIND}
OPAQUE = {"opaque": {"driver": "gcu.enflame.com", "parameters": PARAMETERS}}


DEVICES = [device(mode, bus) for bus in (0, 1) for mode in ("whole", "shared")]


def written(
    each: Object,
    classes: Mapping[str, Object] = CLASSES,
    *,
    slices: Sequence[Object] | None = None,
    held: Sequence[Object] = (),
) -> Object:
    published = pool("node-a", DEVICES) if slices is None else slices
    found = state(published, held, classes=classes)
    wanted = parse_claim(each, classes)
    outcome = allocate(found, [wanted], found.numbers.bit("node-a"))
    assert isinstance(outcome, Allocation)
    return allocation_status(
        wanted,
        outcome.assignments[0],
        outcome.node,
        classes,
        timestamp="2026-01-02T03:04:05Z",
        new_share_id=lambda: "share-1",
    )


def test_a_whole_card() -> None:
    assert written(claim("c")) == {
        "devices": {
            "results": [
                {
                    "request": "gcu",
                    "driver": "gcu.enflame.com",
                    "pool": "gcu.enflame.com/node-a",
                    "device": "whole-0000-00-00-0",
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
            ]
        },
        "allocationTimestamp": "2026-01-02T03:04:05Z",
    }


def test_a_share_tells_what_it_consumes() -> None:
    share = request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})
    [result] = written(claim("c", [share]))["devices"]["results"]
    assert result["shareID"] == "share-1"
    assert result["consumedCapacity"] == {"slices": "2"}


def amount(request: str, **given: int) -> Object:
    parameters = PARAMETERS | given
    opaque = {"driver": "gcu.enflame.com", "parameters": parameters}
    return {"source": "FromClaim", "opaque": opaque, "requests": [request]}


STRIPPED = pool(
    "node-a", [stripped(device(mode, bus)) for bus in (0, 1) for mode in ("shared", "drs")]
)
SHARED, DRS = "shared-gcu.enflame.com", "drs-gcu.enflame.com"
GRANTED: dict[str, tuple[list[Object], list[Object]]] = {
    "slices": ([request(cls=SHARED, capacity={"slices": "2"})], [amount("gcu", slices=2)]),
    "the default of slices": ([request(cls=SHARED)], [amount("gcu", slices=1)]),
    "a size between two": ([request(cls=DRS, capacity={"size": "2"})], [amount("gcu", size=3)]),
    "the default of sizes": ([request(cls=DRS)], [amount("gcu", size=1)]),
    "two requests": (
        [request("x", cls=SHARED, capacity={"slices": "4"}), request("y", cls=DRS)],
        [amount("x", slices=4), amount("y", size=1)],
    ),
    "two devices": ([request(cls=SHARED, count=2)], [amount("gcu", slices=1)]),
    "an alternative": (
        [first_available("r", request("big", cls=SHARED, count=3), request("few", cls=SHARED))],
        [amount("r/few", slices=1)],
    ),
}


@pytest.mark.parametrize(("requests", "config"), GRANTED.values(), ids=GRANTED)
def test_a_server_that_drops_shares_keeps_amounts_as_configuration(
    requests: list[Object], config: list[Object]
) -> None:
    wanted = claim("c", requests)
    status = written(wanted, slices=STRIPPED)
    assert status["devices"]["config"] == config
    stored = wanted | {"status": {"allocation": without_shares(status)}}
    assert allocations_of(stored) == allocations_of(wanted | {"status": {"allocation": status}})


def test_what_is_held_there_is_counted() -> None:
    asked = claim("c", [request(cls=SHARED, capacity={"slices": "4"})])
    held = asked | {"status": {"allocation": without_shares(written(asked, slices=STRIPPED))}}
    fits = claim("d", [request(cls=SHARED, capacity={"slices": "2"})])
    [same] = written(fits, slices=STRIPPED, held=[held])["devices"]["results"]
    other = claim("e", [request(cls=SHARED, capacity={"slices": "3"})])
    [next_card] = written(other, slices=STRIPPED, held=[held])["devices"]["results"]
    assert (same["device"], next_card["device"]) == ("shared-0000-00-00-0", "shared-0000-01-00-0")


def test_one_request_cannot_get_two_amounts_there() -> None:
    other = stripped(device("drs", 1))
    other["attributes"]["profiles"] = {"string": "2g.12gb,6g.40gb"}
    slices = pool("node-a", [stripped(device("drs", 0)), other])
    with pytest.raises(Refused, match="request gcu would get size 1 of one card and size 2 of"):
        written(claim("c", [request(cls=DRS, count=2)]), slices=slices)


def test_tolerations_are_copied() -> None:
    toleration = {"key": "example.com/x", "operator": "Exists", "effect": "NoSchedule"}
    [result] = written(claim("c", [request(tolerations=[toleration])]))["devices"]["results"]
    assert result["tolerations"] == [toleration]


def test_config_comes_from_class_and_claim() -> None:
    classes = {"gcu.enflame.com": device_class("gcu.enflame.com", "whole", config=[OPAQUE])}
    both = claim(
        "c",
        [request("x"), request("y")],
        config=[OPAQUE, OPAQUE | {"requests": ["y"]}, OPAQUE | {"requests": ["other"]}],
    )
    assert written(both, classes)["devices"]["config"] == [
        {"source": "FromClass", "requests": ["x", "y"], **OPAQUE},
        {"source": "FromClaim", **OPAQUE},
        {"source": "FromClaim", "requests": ["y"], **OPAQUE},
    ]


def test_config_of_several_requests_stands_once_for_each() -> None:
    several = claim("c", [request("x"), request("y")], config=[OPAQUE | {"requests": ["x", "y"]}])
    entry = {"source": "FromClaim", "requests": ["x", "y"], **OPAQUE}
    assert written(several)["devices"]["config"] == [entry, entry]


def test_administrative_access_is_told() -> None:
    [result] = written(claim("c", [request(adminAccess=True)]))["devices"]["results"]
    assert result["adminAccess"] is True


def test_a_subrequest_is_named_and_brings_its_own_configuration() -> None:
    shared = "shared-gcu.enflame.com"
    classes = {
        "gcu.enflame.com": device_class("gcu.enflame.com", "whole", config=[OPAQUE]),
        shared: device_class(shared, "shared", config=[OPAQUE]),
    }
    subs = request("many", count=3), request("few", cls=shared)
    named = [["r"], ["r/few"], ["r/many"], ["r/few", "r"]]
    either = claim(
        "c",
        [first_available("r", *subs), request("other")],
        config=[OPAQUE | {"requests": each} for each in named],
    )
    devices = written(either, classes)["devices"]
    assert [each["request"] for each in devices["results"]] == ["r/few", "other"]
    assert [(each["source"], each["requests"]) for each in devices["config"]] == [
        ("FromClass", ["r/few"]),
        ("FromClass", ["other"]),
        ("FromClaim", ["r"]),
        ("FromClaim", ["r/few"]),
        ("FromClaim", ["r/few", "r"]),
    ]


def test_binding_conditions_are_copied() -> None:
    conditions: Object = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
    slices = pool("node-a", [plain("p", **conditions)])
    [result] = written(claim("c", [request(cls=ANY)]), ALL_CLASSES, slices=slices)["devices"][
        "results"
    ]
    assert result.items() >= conditions.items()
