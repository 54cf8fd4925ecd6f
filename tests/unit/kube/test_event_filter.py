"""How many events go out, about one object and in all."""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import pairwise

from dra_driver.kube.event_filter import EventFilter, EventLimits, Topic

WAITING = EventLimits(burst=1, spacing=30.0)  # as the controller has them
ONE = Topic("u", "Failed")


def topics(count: int) -> list[Topic]:
    return [Topic(f"u{number}", "Failed") for number in range(count)]


def sent_at(found: EventFilter, topic: Topic, until: int, note: str = "") -> list[int]:
    """The seconds at which an event goes out, where something is to be said each second: the note,
    or another one each time."""
    times = []
    for now in range(until):
        text = note or str(now)
        if not found.wait(topic, now) and found.is_due(topic, text, now):
            found.on_sent(topic, text, now)
            times.append(now)
    return times


def test_events_about_one_object_become_ever_rarer() -> None:
    times = sent_at(EventFilter(WAITING), ONE, 6000)
    assert times == [0, 30, 90, 210, 450, 930, 1890, 3690, 5490]


def test_what_still_holds_is_repeated_as_long_as_the_server_keeps_events() -> None:
    times = sent_at(EventFilter(WAITING), ONE, 20_000, "8 cards: 8 held")
    gaps = [later - sooner for sooner, later in pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[0] >= 300
    assert gaps[-1] < 3600


def test_a_burst_and_then_one_every_five_minutes() -> None:
    """As client-go's filter: a node may have much to say at once."""
    times = sent_at(EventFilter(EventLimits()), ONE, 400)
    assert times == [*range(25), 24 + 300]


def test_an_object_that_was_quiet_for_long_begins_anew() -> None:
    found = EventFilter(WAITING)
    for other, now in ((ONE, 0.0), (ONE, 30.0), (Topic("v", "Failed"), 30.0 + 3601)):
        assert found.wait(other, now) == 0.0
        found.on_sent(other, str(now), now)
    assert len(found) == 1
    assert found.wait(ONE, 30.0 + 3601) == 0.0


def test_a_thousand_waiting_pods_and_their_claims() -> None:
    """Each has another reason whenever it may say one."""
    found = EventFilter(WAITING)
    due = [(0.0, topic) for topic in topics(2000)]
    hours: Counter[int] = Counter()
    told: dict[Topic, float] = {}
    while due[0][0] < 4 * 3600:
        now, topic = heapq.heappop(due)
        wait = found.wait(topic, now)
        if not wait:
            found.on_sent(topic, str(now), now)
            told.setdefault(topic, now)
            hours[int(now // 3600)] += 1
        heapq.heappush(due, (now + (wait or 1.0), topic))
    assert len(told) == 2000
    assert max(told.values()) < 120
    assert hours[3] <= 2000 * 2  # 1.1 a second


def test_all_together_have_a_rate_whoever_asks_how_often() -> None:
    found = EventFilter(EventLimits(burst=1, spacing=0.5, longest=1.0, rate=5.0, total_burst=50))
    sent = 0
    for now in range(20):
        for topic in topics(200):
            if not found.wait(topic, now):
                found.on_sent(topic, str(now), now)
                sent += 1
    assert sent <= 50 + 20 * 5


def test_a_new_topic_does_not_wait_for_repetitions() -> None:
    found = EventFilter(WAITING)
    known = topics(500)
    for topic in known:
        found.on_sent(topic, "why", 0.0)
    for topic in known:
        if not found.wait(topic, 30.0):
            found.on_sent(topic, "another", 30.0)
    assert found.wait(known[-1], 30.0) > 0
    assert found.wait(Topic("new", "Failed"), 30.0) == 0.0


def test_what_has_to_wait_for_others_does_not_come_back_at_once() -> None:
    found = EventFilter(WAITING)
    for topic in topics(500):
        found.on_sent(topic, "why", 0.0)
    waits = [found.wait(Topic(f"new{number}", "Failed"), 0.0) for number in range(1000)]
    assert len({round(each, 3) for each in waits}) == 1000
    assert max(waits) < 60


def test_what_was_sent_long_ago_takes_no_memory() -> None:
    """Else a controller that runs for months has the notes of all pods that ever waited."""
    found = EventFilter(WAITING)
    for number, topic in enumerate(topics(1000)):
        found.on_sent(topic, "why", number * 10.0)
    assert len(found) <= 361
    for now in range(100_000, 101_000):
        found.on_sent(ONE, str(now), now)
    assert len(found) == 1


def test_who_makes_objects_all_the_time_leaves_no_other_namespace_untold() -> None:
    found = EventFilter(EventLimits(burst=1, spacing=30.0))
    retries: list[tuple[float, Topic]] = []
    for tick in range(6_000):  # two minutes, with 50 new objects a second
        now = tick / 50
        due = [each for at, each in retries if at <= now]
        retries = [each for each in retries if each[0] > now]
        for topic in (*due, Topic(f"u{tick}", "Failed", "busy")):
            if left := found.wait(topic, now):
                retries.append((now + left, topic))
            else:
                found.on_sent(topic, "why", now)
        if tick % 500 == 250:
            quiet = Topic(f"v{tick}", "Failed", "quiet")
            assert found.wait(quiet, now) == 0.0
            found.on_sent(quiet, "why", now)
