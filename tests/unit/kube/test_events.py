"""Events: what is written, what is kept back, and that nothing reaches the caller."""

from __future__ import annotations

import logging
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


class Bench:
    """A recorder, whose server raises these errors, one at each call, and then takes events.

    Only a test moves its clock `now`. Its pauses, `waits`, take no time; it is stopped in the last
    of so many.
    """

    def __init__(
        self, *errors: KubeError, limits: EventLimits | None = None, stops_after: int = 100
    ) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.tries: list[Object] = []
        self.events: list[Object] = []
        self._errors = [*errors]
        self._stops_after = stops_after
        self.recorder = EventRecorder(
            cast("Api", self),
            controller="gcu.enflame.com/controller",
            instance="replica-0",
            clock=lambda: self.now,
            limits=limits,
            now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            wait=self._wait,
        )

    def create(self, resource: Resource, body: Object) -> Object:
        self.tries.append(body)
        if self._errors:
            raise self._errors.pop(0)
        self.events.append(body)
        return body

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return len(self.waits) >= self._stops_after

    def say(self, note: Note = "why", regarding: Object = POD) -> float:
        return self.recorder.record(
            regarding, kind=EventType.WARNING, reason="Failed", note=note, action="Allocate"
        )

    def written(self) -> list[str]:
        """The notes of what is there once all was written."""
        self.recorder.start()
        self.recorder.stop()
        return [each["note"] for each in self.events]


def test_what_is_written() -> None:
    bench = Bench()
    bench.say()
    bench.written()
    [event] = bench.events
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
    bench = Bench()
    for bench.now, note in ((0, "why"), (0, "why"), (0, "another"), (299, "why"), (301, "why")):
        bench.say(note)
    assert bench.written() == ["why", "another", "why"]


def test_what_may_not_be_sent_is_not_built() -> None:
    """Why a pod waits is dear to find out: it is counted over all nodes."""
    bench, built = Bench(limits=WAITING), [0]

    def why() -> str:
        built[0] += 1
        return f"why {built[0]}"

    for _ in range(100):
        bench.say(why)
        bench.now += 0.1
    assert built == [1]
    bench.now = 30.0
    bench.say(why)
    assert bench.written() == ["why 1", "why 2"]


def test_another_note_for_the_same_reason_keeps_its_distance() -> None:
    bench = Bench(limits=WAITING)
    assert bench.say("8 cards: 5 held") == 0.0
    bench.now = 10.0
    assert bench.say("8 cards: 4 held") == 20.0
    assert bench.say("of another", {**POD, "metadata": {"name": "other"}}) == 0.0
    bench.now = 30.0
    assert bench.say("8 cards: 4 held") == 0.0
    assert bench.written() == ["8 cards: 5 held", "of another", "8 cards: 4 held"]


def test_a_long_note_is_cut_at_its_bytes() -> None:
    bench = Bench()
    bench.say("é" * 1000)
    [note] = bench.written()
    assert len(note.encode()) <= 1024
    assert note.endswith("é…")


def test_events_of_cluster_wide_objects_stand_in_default() -> None:
    bench = Bench()
    bench.say(regarding={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    bench.written()
    assert bench.events[0]["metadata"]["namespace"] == "default"
    assert bench.events[0]["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n"}


def test_an_event_is_written_again_if_the_server_is_away_or_busy() -> None:
    """It says what has just changed, and nobody reports that again."""
    bench = Bench(Unavailable("away"), TooManyRequests("busy", retry_after=7.0))
    bench.say()
    assert bench.written() == ["why"]
    assert bench.tries[0] is bench.tries[2], "under the same name: the answer may have been lost"
    assert 0.0 < bench.waits[0] <= 1.0
    assert bench.waits[1] == 7.0


def test_an_event_of_which_only_the_answer_was_lost_is_written_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(Unavailable("no answer"), AlreadyExists("it is there", status=409))
    bench.say()
    assert bench.written() == []
    assert len(bench.tries) == 2
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
def test_one_event_does_not_delay_the_others_for_ever(
    error: KubeError, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(*[error] * tries)
    bench.say()
    bench.say("another")
    assert bench.written() == ["another"]
    assert len(bench.tries) == tries + 1
    assert f"cannot write the event Failed: {error}" in caplog.text


def test_after_the_end_nothing_is_tried_again() -> None:
    bench = Bench(*[Unavailable("away")] * 9, stops_after=2)
    bench.say()
    bench.written()
    assert len(bench.tries) == 2


def test_the_end_interrupts_a_pause() -> None:
    api = Bench(Unavailable("away", retry_after=60.0))
    events = EventRecorder(cast("Api", api), controller="gcu.enflame.com/agent", instance="agent-0")
    events.record(POD, kind=EventType.WARNING, reason="Failed", note="why", action="Allocate")
    events.start()
    events.stop(timeout=60)
    assert not events.is_alive()


def test_a_full_queue_drops_and_logs_and_what_found_no_room_is_told_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else who comes last in a long line would never be told."""
    bench = Bench(limits=UNLIMITED)
    for number in range(1000):
        bench.say(f"reason {number}")
    with caplog.at_level(logging.WARNING):
        assert bench.say("the last") == 30.0
    assert "dropped Failed: the last" in caplog.text
    bench.recorder.start()
    while bench.say("the last"):
        pass  # until the thread has made room
    bench.recorder.stop()
    assert bench.events[-1]["note"] == "the last"
