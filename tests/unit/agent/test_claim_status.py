"""When claims are told what they have: once, again when it changed, and never in vain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from dra_driver.agent.claim_status import ClaimStatuses
from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.errors import Invalid, KubeError, NotFound, TooManyRequests, Unavailable
from dra_driver.kube.resources import RESOURCE_CLAIMS, Resource
from dra_driver.model.card import Card, Problem
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.model.errors import JournalError
from dra_driver.model.pci import PciAddress
from dra_driver.node.failures import Waiting
from dra_driver.node.ledger import Ledger
from dra_driver.node.records import Hold, Kind, record
from tests.unit.node.world import CARDS, card, claim, hold, result

START = datetime(2026, 5, 1, 10, tzinfo=UTC)
ILL = Problem("gcu.enflame.com/unhealthy", "health", "efsmi says no")


class Claims:
    """Claims of the namespace ``team``, and their status as applied. `refusals` are raised by
    patches of the claim of that name."""

    def __init__(self) -> None:
        self.stored: dict[str, Object] = {}
        self.refusals: dict[str, KubeError] = {}
        self.gets: list[str] = []
        self.patches: list[str] = []
        self.on_success: Callable[[], None] = lambda: None

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        assert (resource, namespace) == (RESOURCE_CLAIMS, "team")
        self.gets.append(name)
        if name not in self.stored:
            raise NotFound(f"no claim {name}")
        return deepcopy(self.stored[name])

    def patch(self, resource: Resource, name: str, body: Object, **how: Any) -> Object:
        assert (how["patch_type"], how["subresource"]) == (PatchType.APPLY, "status")
        assert body["metadata"]["uid"] == self.stored[name]["metadata"]["uid"]
        self.patches.append(name)
        if name in self.refusals:
            raise self.refusals[name]
        status = self.stored[name]["status"]
        others = [each for each in status.get("devices", ()) if "gcu" not in each["driver"]]
        status["devices"] = [*others, *deepcopy(body["status"]["devices"])]
        self.on_success()
        return self.stored[name]


class Rig:
    """A writer whose thread is the test's own: `run` ends after `waits`. Each look at the clock
    comes a second after the one before it."""

    def __init__(self) -> None:
        self.api = Claims()
        self.ledger = Ledger()
        self.cards: dict[PciAddress, Card] | None = {
            address: card(address, minor) for minor, address in enumerate(CARDS)
        }
        self.waiting: dict[str, Waiting] = {}
        self.journal_fails = False
        self.waits: list[float] = []
        self.on_wait: Callable[[], bool] = lambda: True
        self.monotonic = 0.0
        self._seconds = 0
        self.statuses = ClaimStatuses(
            cast("Api", self.api),
            ledger=self._ledger,
            cards=lambda: self.cards,
            waiting=lambda: self.waiting,
            backoff=Backoff(first=1.0, longest=60.0, draw=lambda: 0.0),
            now=self._now,
            clock=lambda: self.monotonic,
            wait=self._wait,
        )

    def prepared(self, name: str, at: int, kind: Kind = Kind.PREPARED) -> ClaimRef:
        """The claim is allocated to a whole card, and so far in the journal."""
        self.api.stored.setdefault(name, claim(name, result(at)))
        ref = ClaimRef.of(self.api.stored[name])
        self.hold(ref, hold(at), kind=kind)
        return ref

    def hold(self, ref: ClaimRef, *holds: Hold, kind: Kind = Kind.PREPARED) -> None:
        self.ledger = self.ledger.apply(record(kind, ref, holds))

    def told(self, name: str) -> list[Object]:
        found: list[Object] = self.api.stored[name]["status"].get("devices", [])
        return found

    def ready(self, name: str) -> tuple[str, str]:
        """Status and time of the one condition."""
        [device] = self.told(name)
        [condition] = device["conditions"]
        return condition["status"], condition["lastTransitionTime"]

    def run(self) -> list[float]:
        self.statuses.wake()
        self.statuses.run()
        return self.waits

    def _ledger(self) -> Ledger:
        if self.journal_fails:
            raise JournalError("the disk is gone")
        return self.ledger

    def _now(self) -> datetime:
        self._seconds += 1
        return START + timedelta(seconds=self._seconds)

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return self.on_wait()


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


@pytest.mark.parametrize("kind", [Kind.INTENT, Kind.UNPREPARING, Kind.FORGOTTEN])
def test_only_what_is_prepared_is_told(rig: Rig, kind: Kind) -> None:
    rig.prepared("a", 0, kind)
    rig.statuses.write()
    assert rig.api.gets == []


def test_a_restart_writes_nothing_that_stands_there(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.statuses.write()
    again = Rig()
    again.api, again.ledger = rig.api, rig.ledger
    again.statuses._api = cast("Api", rig.api)
    again.statuses.write()
    assert rig.api.patches == ["a"]
    assert rig.api.gets == ["a", "a"]


def test_a_changed_minor_is_told_and_the_condition_keeps_its_time(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.statuses.write()
    before = rig.ready("a")
    assert rig.cards is not None
    rig.cards[CARDS[0]] = card(CARDS[0], 7)
    rig.statuses.write()
    assert rig.told("a")[0]["data"]["minor"] == 7
    assert rig.ready("a") == before == ("True", "2026-05-01T10:00:01Z")


def test_a_card_that_falls_ill_and_recovers(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.prepared("b", 1)
    rig.statuses.write()
    assert rig.cards is not None
    well = rig.cards[CARDS[0]]
    rig.cards[CARDS[0]] = replace(well, problems=(ILL,))
    rig.statuses.write()
    assert rig.ready("a") == ("False", "2026-05-01T10:00:03Z")
    rig.cards[CARDS[0]] = well
    rig.statuses.write()
    assert rig.ready("a") == ("True", "2026-05-01T10:00:04Z")
    assert rig.api.patches == ["a", "b", "a", "a"]


def test_before_the_cards_are_read_nothing_is_said_of_them(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.cards, cards = None, rig.cards
    rig.statuses.write()
    assert rig.api.gets == []
    rig.cards = cards
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
    rig.hold(ref, kind=Kind.FORGOTTEN)
    another(rig)
    rig.prepared("a", 0)
    rig.statuses.write()
    assert rig.api.patches == ["a", "a"]


def test_a_claim_prepared_once_more_is_told_once_more(rig: Rig) -> None:
    """The server has dropped the status meanwhile, as the claim was released."""
    ref = rig.prepared("a", 0)
    rig.statuses.write()
    rig.hold(ref, kind=Kind.FORGOTTEN)
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
    again = ClaimStatuses(cast("Api", rig.api), ledger=lambda: rig.ledger, cards=lambda: rig.cards)
    again.write()
    assert rig.api.patches == ["a"]


@pytest.mark.parametrize(
    "error",
    [
        Invalid("status.devices: not allocated", status=422),
        Unavailable("failed calling webhook", status=500),
    ],
    ids=["refused", "failed by a webhook that is away"],
)
def test_a_claim_that_fails_keeps_no_other_waiting(rig: Rig, error: KubeError) -> None:
    for at, name in enumerate("abc"):
        rig.prepared(name, at)
    rig.api.refusals["a"] = error
    soonest = rig.statuses.write()
    assert rig.api.patches == ["a", "b", "c"]
    assert soonest is not None
    assert 0.5 <= soonest <= 1.0
    rig.prepared("d", 3)
    del rig.api.refusals["a"]
    rig.statuses.write()
    assert rig.api.patches == ["a", "b", "c", "d"], "a is not due yet"
    rig.monotonic = soonest
    assert rig.statuses.write() is None
    assert rig.api.patches == ["a", "b", "c", "d", "a"]


def test_a_claim_that_is_refused_for_ever_is_tried_ever_more_slowly(rig: Rig) -> None:
    """However often others wake the writer."""
    rig.prepared("a", 0)
    rig.api.refusals["a"] = Invalid("no", status=422)
    for second in range(600):
        rig.monotonic = float(second)
        rig.statuses.write()
    # 1, 2, 4 … 60 s, each shortened by up to half at random.
    assert 14 <= len(rig.api.patches) <= 26


def test_news_that_are_no_news_any_more_are_not_waited_for(rig: Rig) -> None:
    """A card that fell ill while its claim's status was refused, and is well again."""
    rig.prepared("a", 0)
    rig.statuses.write()
    assert rig.cards is not None
    well = rig.cards[CARDS[0]]
    rig.cards[CARDS[0]] = replace(well, problems=(ILL,))
    rig.api.refusals["a"] = Invalid("no", status=422)
    assert rig.statuses.write() is not None
    rig.cards[CARDS[0]] = well
    rig.monotonic = 100.0
    assert rig.statuses.write() is None
    assert rig.api.patches == ["a", "a"]


def test_a_claim_that_ended_is_not_tried_any_more(rig: Rig) -> None:
    ref = rig.prepared("a", 0)
    rig.api.refusals["a"] = Invalid("no", status=422)
    assert rig.statuses.write() is not None
    rig.hold(ref, kind=Kind.FORGOTTEN)
    assert rig.statuses.write() is None


def test_the_thread_comes_back_to_a_refused_claim_by_itself(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.prepared("b", 1)
    rig.api.refusals["a"] = Invalid("no", status=422)
    statuses = ClaimStatuses(
        cast("Api", rig.api), ledger=lambda: rig.ledger, cards=lambda: rig.cards
    )
    told = threading.Event()

    def on_success() -> None:
        if rig.api.patches[-1] == "a":
            told.set()
        rig.api.refusals.clear()

    rig.api.on_success = on_success
    statuses.start()
    assert told.wait(30)
    assert rig.api.patches == ["a", "b", "a"]
    statuses.stop(10)
    assert not statuses.is_alive()


@pytest.mark.parametrize(
    "error",
    [Unavailable("away"), Unavailable("stopping", status=503), TooManyRequests("slower")],
    ids=str,
)
def test_a_server_that_is_away_is_not_asked_for_each_claim(rig: Rig, error: KubeError) -> None:
    for at, name in enumerate("abc"):
        rig.prepared(name, at)
    rig.api.refusals["b"] = error
    with pytest.raises(type(error)):
        rig.statuses.write()
    assert rig.api.patches == ["a", "b"]


def test_refusals_are_tried_again_ever_more_slowly(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.api.refusals["a"] = Unavailable("away")
    rig.on_wait = lambda: len(rig.waits) == 8
    assert rig.run() == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_success_ends_the_back_off(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.api.refusals["a"] = Unavailable("away")

    def come_back() -> bool:
        if len(rig.waits) == 3:
            del rig.api.refusals["a"]
        return len(rig.waits) == 5

    def go_away_again() -> None:
        assert rig.cards is not None
        rig.cards[CARDS[0]] = card(CARDS[0], 7)
        rig.api.refusals["a"] = Unavailable("away again")
        rig.statuses.wake()

    rig.on_wait = come_back
    rig.api.on_success = go_away_again
    assert rig.run() == [1, 2, 4, 1, 2]


def test_a_journal_that_cannot_be_read_is_tried_again(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.prepared("a", 0)
    rig.journal_fails = True
    rig.on_wait = lambda: len(rig.waits) == 2
    assert rig.run() == [1, 2]
    assert _levels(caplog.records) == {"WARNING"}


def _levels(records: Sequence[Any]) -> set[str]:
    return {each.levelname for each in records}


def test_a_claim_that_waits_for_its_card_is_told_why(rig: Rig) -> None:
    rig.api.stored["one"] = claim("one", result(0))
    ref = ClaimRef.of(rig.api.stored["one"])
    rig.waiting[ref.uid] = Waiting(ref, (hold(0),), hold(0).device, "efsmi said no", 3, 0.0)
    rig.statuses.write()
    [device] = rig.told("one")
    [condition] = device["conditions"]
    assert (condition["reason"], condition["message"]) == ("PrepareFailed", "efsmi said no")
    rig.waiting.clear()
    rig.prepared("one", 0)
    rig.statuses.write()
    assert rig.ready("one")[0] == "True"
