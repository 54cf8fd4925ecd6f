from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from dra_driver.model.card import Card, Problem
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.profile import Profile, ProfileTable
from dra_driver.node.claims.device_status import device_statuses as statuses_of
from tests.unit.node.world import CARDS, POOL, card, hold

TABLE = ProfileTable.of([Profile("1g.6gb", 0, 6, 6000, 4), Profile("3g.20gb", 1, 2, 20000, 12)])
NOW, THEN = "2026-05-01T10:00:00Z", "2026-04-01T10:00:00Z"
UUID = "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11"
THERE = {CARDS[0]: card(CARDS[0], 3)}
DRS = hold(
    0,
    mode=Mode.DRS,
    share_id="s",
    consumed={"size": "3"},
    instance=Instance(2, "3g.20gb", UUID),
)


device_statuses = partial(statuses_of, table=lambda _card: TABLE)


def test_what_people_read_of_an_instance() -> None:
    assert device_statuses([DRS], THERE, now=NOW) == [
        {
            "driver": "gcu.enflame.com",
            "pool": POOL,
            "device": "drs-0000-0d-00-0",
            "shareID": "s",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Prepared",
                    "message": "prepared on card 0000:0d:00.0",
                    "lastTransitionTime": NOW,
                }
            ],
            "data": {
                "card": "0000:0d:00.0",
                "mode": "drs",
                "index": 3,
                "minor": 3,
                "size": "3",
                "profile": "3g.20gb",
                "instanceID": 2,
                "instanceUUID": UUID,
                "profileID": 1,
            },
        }
    ]


def test_without_the_table_the_profile_has_no_id() -> None:
    [status] = statuses_of([DRS], THERE, table=lambda _card: None, now=NOW)
    assert status["data"].keys() >= {"profile", "instanceID"}
    assert "profileID" not in status["data"]


def test_why_a_claim_is_not_prepared_is_told() -> None:
    [status] = device_statuses([hold(0)], THERE, failure="efsmi said no", now=NOW)
    [condition] = status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "PrepareFailed")
    assert condition["message"] == "efsmi said no"


def test_slices_and_whole_cards() -> None:
    shared = hold(0, mode=Mode.SHARED, share_id="s", consumed={"slices": "2"})
    seen = structs.replace(hold(0, admin_access=True), device_name="admin-0000-0d-00-0")
    statuses = device_statuses([shared, hold(0), seen], THERE, now=NOW)
    assert [status["data"] for status in statuses] == [
        {"card": "0000:0d:00.0", "mode": "shared", "index": 3, "minor": 3, "slices": "2"},
        {"card": "0000:0d:00.0", "mode": "whole", "index": 3, "minor": 3},
        {"card": "0000:0d:00.0", "mode": "whole", "index": 3, "minor": 3, "adminAccess": True},
    ]
    assert "shareID" not in statuses[1]


ILL = replace(
    THERE[CARDS[0]], problems=(Problem("gcu.enflame.com/unhealthy", "health", "efsmi says no"),)
)


@pytest.mark.parametrize(
    ("cards", "status", "reason", "words"),
    [
        pytest.param(THERE, "True", "Prepared", "prepared", id="well"),
        pytest.param({CARDS[0]: ILL}, "False", "CardUnhealthy", "efsmi says no", id="ill"),
        pytest.param({}, "False", "CardLost", "cannot be found", id="lost"),
    ],
)
def test_a_condition_keeps_its_time_while_it_does_not_change(
    cards: dict[Any, Card], status: str, reason: str, words: str
) -> None:
    before = device_statuses([DRS], THERE, now=THEN)
    other = {"driver": "nic.example.com", "pool": POOL, "device": "drs-0000-0d-00-0"}
    (told,) = device_statuses([DRS], cards, [other, *before], now=NOW)
    (condition,) = told["conditions"]
    assert (condition["status"], condition["reason"]) == (status, reason)
    assert words in condition["message"]
    assert condition["lastTransitionTime"] == (THEN if status == "True" else NOW)


def test_each_share_has_its_own_condition() -> None:
    before = device_statuses([DRS], THERE, now=THEN)
    other = structs.replace(DRS, share_id="t")
    told = device_statuses([DRS, other], THERE, before, now=NOW)
    assert [each["conditions"][0]["lastTransitionTime"] for each in told] == [THEN, NOW]


def test_shares_without_ids_have_one_entry() -> None:
    few, many = (
        hold(0, mode=Mode.SHARED, request=request, consumed={"slices": amount})
        for request, amount in (("few", "1"), ("many", "3"))
    )
    [status] = device_statuses([few, many], THERE, now=NOW)
    assert status["data"] == {
        "card": "0000:0d:00.0",
        "mode": "shared",
        "index": 3,
        "minor": 3,
        "shares": [{"request": "few", "slices": "1"}, {"request": "many", "slices": "3"}],
    }
