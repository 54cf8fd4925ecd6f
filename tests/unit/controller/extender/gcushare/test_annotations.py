from __future__ import annotations

import json
from typing import Any

import pytest

from controller.extender.gcushare.annotations import assigned, describe
from controller.extender.limit_request import LimitRequest
from controller.extender.node_allocations import BoundPod
from dra_driver.model.devices.node_cards import HeldInstance, Hold
from dra_driver.model.mode import Mode
from tests.unit.controller.extender.build import (
    DRS,
    SHARED,
    WHOLE,
    address,
    card,
    container,
    hold,
    pod,
)


def tenant(mode: Mode, total: int, *cards: int) -> BoundPod:
    request = LimitRequest(mode, (("c0", total),), total)
    return BoundPod("uid", "default/p", "n", request, tuple(map(address, cards)), "uid")


def test_a_shared_card_is_described_as_the_vendor_does() -> None:
    found = describe(tenant(Mode.SHARED, 2, 3), [card(1), card(3)], 1_700_000_000_000_000_001)
    assert found == {
        "gcu.enflame.com/assigned-cards": "0000:03:00.0",
        "enflame.com/gcu-assigned-minor": "13",
        "enflame.com/gcu-assigned-index": "3",
        "enflame.com/gcu-request-size": "2",
        "enflame.com/gcu-assigned": "false",
        "assigned-containers": '{"c0":{"allocated":false,"request":2}}',
        "enflame.com/gcu-assigned-time": "1700000000000000001",
    }


def test_whole_cards_have_our_own_annotation_alone() -> None:
    found = describe(tenant(Mode.WHOLE, 2, 1, 3), [card(1), card(3)], 1)
    assert found == {"gcu.enflame.com/assigned-cards": "0000:01:00.0,0000:03:00.0"}


INSTANCE = HeldInstance("1g.6gb", 0, 2, "7f2d")
DIVIDED = {
    "allocated": True,
    "request": 1,
    "profileID": "0",
    "profileName": "1g.6gb",
    "instanceID": "2",
    "instanceUUID": "7f2d",
}


@pytest.mark.parametrize(
    ("limits", "mode", "held", "containers"),
    [
        ([{SHARED: 2}], Mode.SHARED, [hold("a", 2)], {"c0": {"allocated": True, "request": 2}}),
        ([{DRS: 1}], Mode.DRS, [Hold("uid-a", "c0", 1, INSTANCE)], {"c0": DIVIDED}),
        ([{DRS: 1}], Mode.DRS, [hold("a")], {"c0": {"allocated": True, "request": 1}}),
        ([{SHARED: 1}, {SHARED: 1}], Mode.SHARED, [hold("a")], None),
        ([{SHARED: 1}], Mode.SHARED, [hold("b"), Hold("", "", 1)], None),
        ([{WHOLE: 1}], Mode.WHOLE, [hold("a")], None),
        ([{SHARED: 1, DRS: 1}], Mode.SHARED, [hold("a")], None),
        ([{"cpu": 1}], Mode.SHARED, [], None),
    ],
    ids=[
        "slices",
        "an instance",
        "an instance that is not reported of",
        "one container of two",
        "others",
        "a whole card",
        "a pod that no node serves",
        "a pod of others",
    ],
)
def test_what_a_pod_has(
    limits: list[dict[str, int]], mode: Mode, held: list[Hold], containers: Any
) -> None:
    found = assigned(pod("a", *limits, on="n"), [card(1), card(3, mode, *held)])
    if containers is None:
        assert found == {}
        return
    assert json.loads(found["assigned-containers"]) == containers
    assert {key: value for key, value in found.items() if key != "assigned-containers"} == {
        "enflame.com/gcu-assigned": "true",
        "enflame.com/gcu-assigned-minor": "13",
        "enflame.com/gcu-assigned-index": "3",
        "enflame.com/gcu-request-size": str(containers["c0"]["request"]),
    }


def test_a_pod_keeps_the_numbers_of_a_card_that_is_gone() -> None:
    gone = card(3, Mode.SHARED, hold("a", 2), index=-1, minor=-1, problem="lost")
    assert assigned(pod("a", {SHARED: 2}, on="n"), [gone]) == {}


@pytest.mark.parametrize(
    ("init", "main", "held", "containers"),
    [
        ({DRS: 1}, {DRS: 1}, [Hold("uid-a", "i", 1, INSTANCE)], {"c0": DIVIDED}),
        ({DRS: 1}, {DRS: 1}, [Hold("uid-a", "c0", 1, INSTANCE)], {"c0": DIVIDED}),
        ({SHARED: 3}, {SHARED: 1}, [hold("a", 3, "i")], {"c0": {"allocated": True, "request": 1}}),
        (
            {SHARED: 1},
            {SHARED: 3},
            [hold("a", 1, "i"), hold("a", 2)],
            {"c0": {"allocated": True, "request": 3}},
        ),
        ({SHARED: 2}, {"cpu": 1}, [hold("a", 2, "i")], {"i": {"allocated": True, "request": 2}}),
        ({SHARED: 2}, {"cpu": 1}, [], None),
    ],
    ids=[
        "reported as the init container's",
        "reported as the later one's",
        "a part of it is handed on",
        "all of it is handed on, and more is given",
        "an init container alone asks",
        "an init container alone asks, and is not reported of",
    ],
)
def test_what_an_init_container_hands_on(
    init: dict[str, int], main: dict[str, int], held: list[Hold], containers: Any
) -> None:
    asking = pod("a", main, init=(container("i", init),), on="n")
    mode = Mode.DRS if DRS in init else Mode.SHARED
    found = assigned(asking, [card(3, mode, *held)])
    assert json.loads(found.get("assigned-containers", "null")) == containers
