"""Which changes of cards are reported, and that each is reported once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

import pytest

from dra_driver.agent.cards.card_events import CardEvents
from dra_driver.agent.events import EventReporter
from dra_driver.kube.events import EventType
from dra_driver.model.card import UNHEALTHY_VALUES, Card, Ecc, Problem
from dra_driver.model.names import TAINT_FOREIGN, TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from tests.unit.agent.recorder import ListRecorder
from tests.unit.model.cards import OTHER
from tests.unit.node.world import CARDS, card

WELL = replace(card(CARDS[0], 0), ecc=Ecc(current=True, pending=True), errors=0)
# Of the fields that differ from one look to the next, these alone have events.
REPORTED = {
    "uuid": "GcuCardChanged",
    "ecc": "GcuCardChanged",
    "problems": "GcuCardUnhealthy",
    "errors": "GcuCardErrors",
}


def ill(*values: str) -> Card:
    return replace(WELL, problems=tuple(Problem(TAINT_UNHEALTHY, v, f"{v}!") for v in values))


class EventsByLook:
    """The events of one card, look by look, ten seconds apart unless a test says otherwise."""

    def __init__(self, *, simulated: bool = True) -> None:
        self.recorder = ListRecorder()
        self.now = 0.0
        self._card_events = CardEvents(
            EventReporter(self.recorder, "n1"), simulated=simulated, clock=lambda: self.now
        )
        self._before: Mapping[PciAddress, Card] = {}

    def look(self, *cards: Card, after: float = 10.0, **unusable: str) -> list[str]:
        """The events of this look; `unusable` are reasons by slug of an address."""
        self.now += after
        self.recorder.lines.clear()
        found = {each.address: each for each in cards}
        reasons = {each: unusable["reason"] for each in CARDS[1:2] if unusable}
        self._card_events.emit(self._before, found, reasons)
        self._before = found
        return list(self.recorder.lines)


@pytest.fixture
def events() -> EventsByLook:
    return EventsByLook()


@pytest.mark.parametrize("value", sorted({*UNHEALTHY_VALUES} - {"lost"}))
def test_an_illness_is_reported_once_and_that_it_is_over(events: EventsByLook, value: str) -> None:
    assert events.look(WELL) == []
    assert events.look(ill(value)) == [f"GcuCardUnhealthy card 0000:0d:00.0: {value}!"]
    assert events.look(ill(value)) == []
    assert events.look(WELL) == ["GcuCardHealthy card 0000:0d:00.0 is healthy again"]
    assert [kind for _, kind, _ in events.recorder.recorded] == [
        EventType.WARNING,
        EventType.NORMAL,
    ]


def test_a_card_that_is_ill_at_the_first_look_is_reported(events: EventsByLook) -> None:
    assert events.look(ill("rma")) == ["GcuCardUnhealthy card 0000:0d:00.0: rma!"]


def test_a_second_illness_is_reported_with_the_first(events: EventsByLook) -> None:
    events.look(ill("health"))
    assert events.look(ill("health", "rma")) == [
        "GcuCardUnhealthy card 0000:0d:00.0: health!; rma!"
    ]
    assert events.look(ill("rma")) == []
    assert events.look(WELL) == ["GcuCardHealthy card 0000:0d:00.0 is healthy again"]


def test_another_text_of_an_illness_is_no_news(events: EventsByLook) -> None:
    """Counts stand in it."""
    events.look(ill("errors"))
    more = Problem(TAINT_UNHEALTHY, "errors", "more errors!")
    assert events.look(replace(WELL, problems=(more,))) == []


def test_a_lost_card_that_is_back_ill(events: EventsByLook) -> None:
    events.look(WELL)
    assert events.look(ill("lost")) == ["GcuCardLost card 0000:0d:00.0: lost!"]
    assert events.look(ill("health")) == [
        "GcuCardBack card 0000:0d:00.0 is back",
        "GcuCardUnhealthy card 0000:0d:00.0: health!",
    ]


def test_a_card_that_hangs_and_then_is_lost_is_not_healthy_again(events: EventsByLook) -> None:
    events.look(WELL)
    events.look(ill("efsmi"))
    assert events.look(ill("lost")) == ["GcuCardLost card 0000:0d:00.0: lost!"]
    assert events.look(WELL) == ["GcuCardBack card 0000:0d:00.0 is back"]


def test_whose_a_card_is_is_not_reported_here(events: EventsByLook) -> None:
    assert events.look(replace(WELL, problems=(Problem(TAINT_FOREIGN, "", "made by hand"),))) == []


def test_error_records_are_reported_when_they_grow_and_not_at_each_look(
    events: EventsByLook,
) -> None:
    def look(count: int | None, after: float = 10.0) -> list[str]:
        return events.look(replace(WELL, errors=count), after=after)

    where = "(`efsmi -q`, Error Records)"
    assert look(3) == [], "what was there before is no news"
    assert look(4) == [f"GcuCardErrors card 0000:0d:00.0: error records grew from 3 to 4 {where}"]
    assert look(5) == look(6) == look(None) == []
    assert look(7, after=600) == [
        f"GcuCardErrors card 0000:0d:00.0: error records grew from 4 to 7 {where}"
    ]
    assert look(0, after=600) == [], "a reset"
    assert look(1, after=600) != []


def switched(was: Card) -> Card:
    return replace(was, ecc=Ecc(current=False, pending=False), memory_mib=49152)


def replaced(was: Card) -> Card:
    return replace(switched(was), uuid="TPU2")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (switched, "GcuCardChanged card 0000:0d:00.0: ECC is off now, with 49152 MiB"),
        (
            replaced,
            f"GcuCardChanged card 0000:0d:00.0: S60 {WELL.uuid} was replaced by S60 TPU2",
        ),
    ],
    ids=["ECC", "another card"],
)
def test_a_change_of_the_card_itself(
    events: EventsByLook, change: Callable[[Card], Card], line: str
) -> None:
    events.look(WELL)
    assert events.look(change(WELL)) == [line]
    assert events.look(change(WELL)) == []


@pytest.mark.parametrize("field", [each.name for each in fields(Card)])
def test_a_change_of_another_field_is_not_reported(events: EventsByLook, field: str) -> None:
    assert getattr(OTHER, field) != getattr(WELL, field)
    events.look(WELL)
    lines = events.look(replace(WELL, **{field: getattr(OTHER, field)}))
    assert [each.partition(" ")[0] for each in lines] == [*filter(None, [REPORTED.get(field)])]


def test_a_card_that_cannot_be_published_is_reported_once_a_reason(events: EventsByLook) -> None:
    line = "GcuCardUnusable card 0000:0e:00.0 is not published: no uuid"
    assert events.look(reason="no uuid") == [line]
    assert events.look(reason="no uuid") == []
    assert events.look(reason="no memory") != []


def test_on_real_cards_it_says_once_what_was_never_tried() -> None:
    events = EventsByLook(simulated=False)
    known = replace(WELL, driver_version="1.5.20260710")
    other = replace(card(CARDS[1], 1), model="X9", driver_version="1.5.1")
    [line] = events.look(known)
    assert "has not run on S60 with the vendor's driver 1.5.20260710 yet, only read what" in line
    kinds = [kind for _, kind, _ in events.recorder.recorded]
    [line] = events.look(known, other)
    assert line.startswith("GcuCardUntried this driver knows neither X9 with the vendor's driver 1")
    kinds += [kind for _, kind, _ in events.recorder.recorded[-1:]]
    assert kinds == [EventType.NORMAL, EventType.WARNING]
    assert events.look(known, other) == []
