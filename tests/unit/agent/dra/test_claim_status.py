"""When claims are told what they have: once, again when it changed, and never in vain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dra_driver.node.checkpoint.records import ClaimStep
from tests.unit.agent.claim_statuses import ILL, Rig, run_here
from tests.unit.node.world import CARDS, card, claim, result


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_claim_is_told_once(rig: Rig) -> None:
    rig.prepared("a", 1)
    rig.statuses.write()
    rig.statuses.write()
    assert rig.api.patches == ["a"]
    assert rig.api.gets == ["a"]
    [device] = rig.told("a")
    assert device["data"] == {"card": str(CARDS[1]), "mode": "whole", "index": 1, "minor": 1}


@pytest.mark.parametrize(
    "kind", [ClaimStep.PREPARE_STARTED, ClaimStep.UNPREPARE_STARTED, ClaimStep.FORGOTTEN]
)
def test_only_what_is_prepared_is_told(rig: Rig, kind: ClaimStep) -> None:
    rig.prepared("a", 0, kind)
    rig.statuses.write()
    assert rig.api.gets == []


def test_a_restart_writes_nothing_that_stands_there(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.statuses.write()
    rig.another(spawn=run_here).write()
    assert rig.api.patches == ["a"]
    assert rig.api.gets == ["a", "a"]


def test_a_changed_minor_is_told_and_the_condition_keeps_its_time(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.statuses.write()
    before = rig.ready("a")
    rig.cards.latest[CARDS[0]] = card(CARDS[0], 7)
    rig.statuses.write()
    assert rig.told("a")[0]["data"]["minor"] == 7
    assert rig.ready("a") == before == ("True", "2026-05-01T10:00:01Z")


def test_a_card_that_falls_ill_and_recovers(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.prepared("b", 1)
    rig.statuses.write()
    well = rig.cards.latest[CARDS[0]]
    rig.cards.latest[CARDS[0]] = replace(well, problems=(ILL,))
    rig.statuses.write()
    assert rig.ready("a") == ("False", "2026-05-01T10:00:03Z")
    rig.cards.latest[CARDS[0]] = well
    rig.statuses.write()
    assert rig.ready("a") == ("True", "2026-05-01T10:00:04Z")
    assert rig.api.patches == ["a", "b", "a", "a"]


def test_before_the_cards_are_read_nothing_is_said_of_them(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.cards.latest, cards = None, rig.cards.latest
    rig.statuses.write()
    assert rig.api.gets == []
    rig.cards.latest = cards
    rig.statuses.write()
    assert rig.ready("a")[0] == "True"


def gone(rig: Rig) -> None:
    del rig.api.stored["a"]


def another(rig: Rig) -> None:
    rig.api.stored["a"] = claim("a", result(0), uid="uid-later")


def released(rig: Rig) -> None:
    del rig.api.stored["a"]["status"]["allocation"]


@pytest.mark.parametrize("what", [gone, another, released], ids=lambda each: each.__name__)
def test_a_claim_that_is_not_the_one_any_more_is_left_alone(
    rig: Rig, what: Callable[[Rig], None]
) -> None:
    rig.prepared("a", 0)
    what(rig)
    rig.statuses.write()
    rig.statuses.write()
    assert rig.api.patches == []
    assert rig.api.gets == ["a"]


def test_a_claim_made_anew_under_its_name_is_told(rig: Rig) -> None:
    ref = rig.prepared("a", 0)
    rig.statuses.write()
    rig.hold(ref, kind=ClaimStep.FORGOTTEN)
    another(rig)
    rig.prepared("a", 0)
    rig.statuses.write()
    assert rig.api.patches == ["a", "a"]


def test_a_claim_prepared_once_more_is_told_once_more(rig: Rig) -> None:
    """The server has dropped the status meanwhile, as the claim was released."""
    ref = rig.prepared("a", 0)
    rig.statuses.write()
    rig.hold(ref, kind=ClaimStep.FORGOTTEN)
    rig.statuses.write()
    rig.api.stored["a"]["status"].pop("devices")
    rig.prepared("a", 0)
    rig.statuses.write()
    assert rig.api.patches == ["a", "a"]


def test_entries_of_other_drivers_do_not_matter(rig: Rig) -> None:
    rig.prepared("a", 0)
    theirs = {"driver": "nic.example.com", "pool": "p", "device": "d"}
    rig.api.stored["a"]["status"]["devices"] = [theirs]
    rig.statuses.write()
    assert rig.told("a")[0] == theirs
    rig.another(spawn=run_here).write()
    assert rig.api.patches == ["a"]
