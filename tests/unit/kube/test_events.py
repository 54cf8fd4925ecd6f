"""Events: what is written, what is kept back, and that nothing reaches the caller."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import cast

import pytest

from dra_driver.kube.api import Api
from dra_driver.kube.errors import (
    AlreadyExists,
    Forbidden,
    KubeError,
    TooManyRequests,
    Unavailable,
)
from dra_driver.kube.event_filter import EventLimits
from dra_driver.kube.events import EventRecorder, EventType, Note
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object

POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "ns", "name": "p", "uid": "u1"},
}


WAITING = EventLimits(burst=1, spacing=30.0)  # as the controller has them
UNLIMITED = EventLimits(burst=10_000, total_burst=10_000)


class Written:
    """Takes events, or refuses them."""

    def __init__(self, error: KubeError | None = None) -> None:
        self.events: list[Object] = []
        self._error = error

    def create(self, resource: Resource, body: Object) -> Object:
        if self._error is not None:
            raise self._error
        self.events.append(body)
        return body


def recorder(
    api: Written,
    clock: Callable[[], float] = lambda: 0.0,
    limits: EventLimits | None = None,
) -> EventRecorder:
    return EventRecorder(
        cast("Api", api),
        controller="gcu.enflame.com/controller",
        instance="replica-0",
        clock=clock,
        limits=limits,
        now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )


def say(events: EventRecorder, note: Note = "why", regarding: Object = POD) -> float:
    return events.record(
        regarding, kind=EventType.WARNING, reason="Failed", note=note, action="Allocate"
    )


def finish(events: EventRecorder) -> None:
    events.start()
    events.stop()


def test_what_is_written() -> None:
    api = Written()
    events = recorder(api)
    say(events)
    finish(events)
    [event] = api.events
    assert event["metadata"]["namespace"] == "ns"
    assert event["metadata"]["name"].startswith("p.")
    del event["metadata"]
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "gcu.enflame.com/controller",
        "reportingInstance": "replica-0",
        "action": "Allocate",
        "reason": "Failed",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "p",
            "uid": "u1",
        },
        "note": "why",
        "type": "Warning",
    }


def test_the_same_is_told_once_in_a_while() -> None:
    api, now = Written(), [0.0]
    events = recorder(api, lambda: now[0])
    say(events)
    say(events)
    say(events, "another reason")
    now[0] = 299.0
    say(events)
    now[0] = 301.0
    say(events)
    finish(events)
    assert [each["note"] for each in api.events] == ["why", "another reason", "why"]


def test_what_may_not_be_sent_is_not_built() -> None:
    """Why a pod waits is dear to find out: it is counted over all nodes."""
    api, now, built = Written(), [0.0], [0]

    def why() -> str:
        built[0] += 1
        return f"why {built[0]}"

    events = recorder(api, lambda: now[0], WAITING)
    for _ in range(100):
        say(events, why)
        now[0] += 0.1
    assert built == [1]
    now[0] = 30.0
    say(events, why)
    finish(events)
    assert [each["note"] for each in api.events] == ["why 1", "why 2"]


def test_another_note_for_the_same_reason_keeps_its_distance() -> None:
    api, now = Written(), [0.0]
    events = recorder(api, lambda: now[0], WAITING)
    assert say(events, "8 cards: 5 held") == 0.0
    now[0] = 10.0
    assert say(events, "8 cards: 4 held") == 20.0
    assert say(events, "8 cards: 4 held", {**POD, "metadata": {"name": "other"}}) == 0.0
    now[0] = 30.0
    assert say(events, "8 cards: 4 held") == 0.0
    finish(events)
    assert [each["note"] for each in api.events] == [
        "8 cards: 5 held",
        "8 cards: 4 held",
        "8 cards: 4 held",
    ]


def test_a_long_note_is_cut_at_its_bytes() -> None:
    api = Written()
    events = recorder(api)
    say(events, "é" * 1000)
    finish(events)
    note = api.events[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("é…")


def test_events_of_cluster_wide_objects_stand_in_default() -> None:
    api = Written()
    events = recorder(api)
    say(events, regarding={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    finish(events)
    assert api.events[0]["metadata"]["namespace"] == "default"
    assert api.events[0]["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n"}


def test_a_refusal_is_logged_only(caplog: pytest.LogCaptureFixture) -> None:
    events = recorder(Written(Forbidden("not allowed")))
    say(events)
    finish(events)
    assert "not allowed" in caplog.text


class Refusing(Written):
    """Raises these errors, one at each call, then takes events."""

    def __init__(self, *errors: KubeError) -> None:
        super().__init__()
        self.errors = [*errors]
        self.tries: list[Object] = []

    def create(self, resource: Resource, body: Object) -> Object:
        self.tries.append(body)
        if self.errors:
            raise self.errors.pop(0)
        return super().create(resource, body)


def waiting_recorder(api: Written, waits: list[float], *, stops_after: int = 100) -> EventRecorder:
    """Its pauses take no time; the recorder is stopped in the last of so many."""

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) >= stops_after

    return EventRecorder(
        cast("Api", api), controller="gcu.enflame.com/agent", instance="agent-0", wait=wait
    )


def test_an_event_is_written_again_if_the_server_is_away_or_busy() -> None:
    """It says what has just changed, and nobody reports that again."""
    api = Refusing(Unavailable("away"), TooManyRequests("busy", retry_after=7.0))
    waits: list[float] = []
    events = waiting_recorder(api, waits)
    say(events)
    finish(events)
    assert [each["note"] for each in api.events] == ["why"]
    assert api.tries[0] is api.tries[2], "under the same name: the answer may have been lost"
    assert 0.0 < waits[0] <= 1.0
    assert waits[1] == 7.0


def test_an_event_of_which_only_the_answer_was_lost_is_written_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = Refusing(Unavailable("no answer"), AlreadyExists("it is there", status=409))
    events = waiting_recorder(api, [])
    say(events)
    finish(events)
    assert (len(api.tries), api.events) == (2, [])
    assert "cannot write" not in caplog.text


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (Unavailable("away"), 12),
        (Unavailable("a webhook of this namespace failed", status=500), 1),
        (Forbidden("not allowed", status=403), 1),
    ],
    ids=["away", "webhook", "forbidden"],
)
def test_one_event_does_not_delay_the_others_for_ever(error: KubeError, tries: int) -> None:
    api = Refusing(*[error] * tries)
    events = waiting_recorder(api, [])
    say(events)
    say(events, "another")
    finish(events)
    assert len(api.tries) == tries + 1
    assert [each["note"] for each in api.events] == ["another"]


def test_after_the_end_nothing_is_tried_again() -> None:
    api = Refusing(*[Unavailable("away")] * 9)
    events = waiting_recorder(api, [], stops_after=2)
    say(events)
    finish(events)
    assert len(api.tries) == 2


def test_the_end_interrupts_a_pause() -> None:
    api = Refusing(Unavailable("away", retry_after=60.0))
    events = recorder(api)
    say(events)
    events.start()
    events.stop(timeout=60)
    assert not events.is_alive()


def test_a_full_queue_drops_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    events = recorder(Written(), limits=UNLIMITED)
    with caplog.at_level(logging.WARNING):
        for number in range(1001):
            say(events, f"reason {number}")
    assert "dropped Failed: reason 1000" in caplog.text


def test_what_found_no_room_is_told_later() -> None:
    """Else who comes last in a long line would never be told."""
    api = Written()
    events = recorder(api, limits=UNLIMITED)
    for number in range(1000):
        say(events, f"reason {number}")
    assert say(events, "the last") == 30.0
    events.start()
    while say(events, "the last"):
        pass  # until the thread has made room
    events.stop()
    assert api.events[-1]["note"] == "the last"
