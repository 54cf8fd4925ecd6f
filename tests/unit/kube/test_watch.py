"""The reflector: what it asks for, what it hands on, and how seldom it asks when refused."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import pytest

from dra_driver.kube.api import Api, Change, Listing, WatchEvent
from dra_driver.kube.errors import (
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    TooManyRequests,
    Unavailable,
)
from dra_driver.kube.resources import PODS, Resource
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from dra_driver.util.backoff import Backoff
from tests.unit.kube.fakes import FakeApi, FakeWatch, added, bookmark, pod


class Told:
    """A handler that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_replace(self, items: Sequence[Object]) -> None:
        self.lines.append("replace " + " ".join(each["metadata"]["name"] for each in items))

    def on_event(self, change: Change, obj: Object) -> None:
        self.lines.append(f"{change} {obj['metadata']['name']}")


class Time:
    """A clock that only waiting moves; waiting ends the reflector after `budget` seconds."""

    def __init__(self, budget: float) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self._budget = budget
        self.stop: Callable[[], None] = lambda: None

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        if self.now >= self._budget:
            self.stop()
            return True
        return False


def run(
    api: FakeApi,
    told: Told,
    *,
    budget: float,
    streamed: bool = False,
    on_restored: Callable[[], None] = lambda: None,
) -> Time:
    time = Time(budget)
    reflector = Reflector(
        cast("Api", api),
        PODS,
        told,
        streamed=streamed,
        on_restored=on_restored,
        backoff=Backoff(first=0.5, longest=30.0, draw=lambda: 0.0),
        wait=time.wait,
        clock=lambda: time.now,
    )
    time.stop = partial(reflector.stop, 0)
    reflector.run()
    return time


def listing(*names: str, version: int = 10) -> Listing:
    return Listing(tuple(pod(name, version) for name in names), str(version))


def scripted(*answers: FakeWatch | KubeError) -> Callable[[str], FakeWatch]:
    """The watches one after the other; a refusal after the last."""
    left = list(answers)

    def watch(version: str) -> FakeWatch:
        answer = left.pop(0) if left else Unavailable("the script is over")
        if isinstance(answer, KubeError):
            raise answer
        return answer

    return watch


def test_lists_then_watches_and_goes_on_where_it_was() -> None:
    told = Told()
    api = FakeApi(
        lambda: listing("a", "b"),
        scripted(FakeWatch([added("c", 11), bookmark(20)]), FakeWatch([added("d", 21)])),
    )
    run(api, told, budget=0.1)
    assert told.lines == ["replace a b", "ADDED c", "ADDED d"]
    assert api.calls == ["list", "watch 10", "watch 20", "watch 21"]


def test_a_streamed_list_is_told_as_a_whole_at_its_bookmark() -> None:
    """Objects may change, and go, before the bookmark."""
    told = Told()
    gone = WatchEvent(Change.DELETED, pod("b", 12))
    events = [added("a", 8), added("b", 9), bookmark(11), gone, bookmark(13, ends_list=True)]
    api = FakeApi(listing, scripted(FakeWatch([*events, added("x", 14)]), FakeWatch([])))
    run(api, told, budget=0.1, streamed=True)
    assert told.lines == ["replace a"]
    assert api.calls == ["watch the list", "watch 13"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Invalid("sendInitialEvents is forbidden", status=422), id="no WatchList"),
        pytest.param(KubeError("what is sendInitialEvents", status=400), id="unknown"),
        pytest.param(FakeWatch([added("a", 8)]), id="ended early"),
        pytest.param(FakeWatch([added("a", 8)], Unavailable("reset by peer")), id="broken"),
    ],
)
def test_what_is_not_streamed_is_listed_in_pages(answer: FakeWatch | KubeError) -> None:
    told = Told()
    api = FakeApi(lambda: listing("a", "b"), scripted(answer))
    run(api, told, budget=0.1, streamed=True)
    assert told.lines == ["replace a b"]
    assert api.calls == ["watch the list", "list", "watch 10"]


def test_a_stream_that_is_forbidden_is_not_tried_as_a_list() -> None:
    api = FakeApi(listing, scripted(Forbidden("may not watch", status=403)))
    run(api, Told(), budget=0.1, streamed=True)
    assert api.calls == ["watch the list"]


def test_an_expired_version_lists_again() -> None:
    told = Told()
    api = FakeApi(
        lambda: listing("a"),
        scripted(FakeWatch([added("b", 11)], Gone("too old")), FakeWatch([added("c", 12)])),
    )
    run(api, told, budget=1.0)
    assert told.lines == ["replace a", "ADDED b", "replace a", "ADDED c"]
    assert api.calls[:4] == ["list", "watch 10", "list", "watch 10"]


def test_a_broken_watch_goes_on_from_the_last_event_without_a_list() -> None:
    api = FakeApi(listing, scripted(FakeWatch([added("a", 11)], Unavailable("reset by peer"))))
    run(api, Told(), budget=0.9)
    assert api.calls == ["list", "watch 10", "watch 11"]


def test_after_ten_seconds_without_a_server_it_lists_again() -> None:
    """etcd may have been restored from a backup: the watch of version 11 would be silent."""
    told = Told()
    silence = [Unavailable("connection refused")] * 4
    answers = scripted(FakeWatch([added("b", 11)], Unavailable("reset")), *silence, FakeWatch([]))
    lists = iter([listing("a"), listing("a", "z", version=5)])
    api = FakeApi(lambda: next(lists), answers)
    restored = partial(told.lines.append, "restored")
    # Refused after 0.5, 1.5, 3.5 and 7.5 s.
    run(api, told, budget=16.0, on_restored=restored)
    assert api.calls == ["list", "watch 10", *["watch 11"] * 4, "list", "watch 5"]
    assert told.lines == ["replace a", "ADDED b", "restored", "replace a z"]


@pytest.mark.parametrize(
    ("version", "restored"), [(10, True), (11, False), (99_000_000, False), (1_000_000_010, True)]
)
def test_a_list_shows_that_etcd_was_restored(version: int, restored: bool) -> None:
    """Its version is older than what the server gave before, or bumped."""
    told = Told()
    answers = scripted(FakeWatch([bookmark(11)], Gone("compacted")))
    lists = iter([listing("a"), listing("a", version=version)])
    api = FakeApi(lambda: next(lists), answers)
    run(api, told, budget=1.0, on_restored=partial(told.lines.append, "restored"))
    assert told.lines == ["replace a", *["restored"] * restored, "replace a"]


class Fleet:
    """One reflector for each of many agents, that all began together; time only passes by waiting
    and by watching."""

    def __init__(self, away: tuple[float, float]) -> None:
        self.away = away
        self.now = 0.0
        self.asked: list[float] = []  # when a watch was opened

    def follow(self, agent: int, budget: float) -> None:
        """All that one agent does in `budget` seconds."""
        self.now = 0.0
        rng = random.Random(agent)
        reflector = Reflector(
            cast("Api", self),
            PODS,
            Told(),
            backoff=Backoff(draw=rng.random),
            wait=self._wait,
            clock=lambda: self.now,
            draw=rng.random,
        )
        self._budget, self._stop = budget, partial(reflector.stop, 0)
        reflector.run()

    def list(self, resource: Resource, **_: object) -> Listing:
        self._check()
        return listing()

    def watch(self, resource: Resource, *, timeout: float, **_: object) -> FakeWatch:
        self._check()
        self.asked.append(self.now)
        begun, (away, _back) = self.now, self.away
        self._wait(timeout if self.now > away else min(timeout, away - self.now))
        return FakeWatch([bookmark(11)] if self.now > begun else [])

    def busiest(self, since: float, until: float, seconds: float) -> float:
        """The largest share of what was asked for then that came within so many seconds."""
        asked = sorted(each for each in self.asked if since <= each < until)
        counts = [bisect_left(asked, each + seconds) - at for at, each in enumerate(asked)]
        return max(counts) / len(asked)

    def _check(self) -> None:
        if self.away[0] <= self.now < self.away[1]:
            raise Unavailable("connection refused")

    def _wait(self, seconds: float) -> bool:
        self.now += seconds
        if self.now >= self._budget:
            self._stop()
            return True
        return False


def test_many_agents_spread_what_they_ask_for() -> None:
    """Whoever began together: after an hour without a server nobody asks together, and later on
    the watches do not end together."""
    back = 1000.0 + 3600.0
    fleet = Fleet(away=(1000.0, back))
    for agent in range(100):
        fleet.follow(agent, back + 4000.0)
    assert fleet.busiest(0.0, 1.0, 1.0) == 1.0
    assert fleet.busiest(back, back + 31.0, 1.0) < 0.12
    assert fleet.busiest(back + 600.0, back + 1200.0, 10.0) < 0.12
    rate = sum(back + 600.0 <= each < back + 3600.0 for each in fleet.asked) / 100 / 50.0
    assert 0.1 <= rate <= 0.2  # a minute of one agent


def refuse(error: KubeError) -> Callable[[], Listing]:
    def lists() -> Listing:
        raise error

    return lists


@pytest.mark.parametrize(
    "api",
    [
        pytest.param(lambda: FakeApi(refuse(Forbidden("no")), scripted()), id="list forbidden"),
        pytest.param(lambda: FakeApi(refuse(Unavailable("no")), scripted()), id="server away"),
        pytest.param(
            lambda: FakeApi(listing, lambda _: scripted(Forbidden("no"))("")), id="watch forbidden"
        ),
        pytest.param(
            lambda: FakeApi(listing, lambda _: scripted(Gone("old"))("")), id="always expired"
        ),
        pytest.param(lambda: FakeApi(listing, lambda _: FakeWatch([])), id="watches end at once"),
    ],
)
def test_a_refusing_server_sees_few_requests(api: Callable[[], FakeApi]) -> None:
    """Doubling from 0.5 to 30 s: 6 failures in the first half minute, then two a minute."""
    refusing = api()
    time = run(refusing, Told(), budget=600.0)
    assert time.waits[:8] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert len(refusing.calls) <= 2 * 26


def test_a_server_that_asks_for_patience_gets_it() -> None:
    api = FakeApi(refuse(TooManyRequests("later", retry_after=120.0)), scripted())
    assert run(api, Told(), budget=300.0).waits == [120.0, 120.0, 120.0]


def test_a_watch_that_worked_resets_the_delay() -> None:
    answers = [Unavailable("no")] * 3 + [FakeWatch([bookmark(11)], Unavailable("no"))]
    time = run(FakeApi(listing, scripted(*answers)), Told(), budget=4.1)
    assert time.waits == [0.5, 1.0, 2.0, 0.5, 1.0]


def test_it_says_why_it_follows_nothing() -> None:
    watch = FakeWatch([bookmark(11)], stays=True)
    answers = [listing, refuse(Forbidden("may not list"))]

    def lists() -> Listing:
        return answers.pop()()

    problems: list[str | None] = []

    def look(seconds: float) -> bool:
        problems.append(reflector.problem)
        return False

    api = FakeApi(lists, lambda _: watch)
    reflector = Reflector(cast("Api", api), PODS, Told(), wait=look)
    assert reflector.problem is None
    reflector.start()
    assert reflector.synced.wait(60)
    reflector.stop(5)
    assert problems == ["cannot follow pods: may not list"]
    assert reflector.problem is None


def test_stop_ends_an_open_watch() -> None:
    watch = FakeWatch([bookmark(11)], stays=True)
    reflector = Reflector(cast("Api", FakeApi(listing, lambda _: watch)), PODS, Told())
    reflector.start()
    assert reflector.synced.wait(60)
    reflector.stop(5)
    assert watch.closed.is_set()
    assert not reflector.is_alive()
