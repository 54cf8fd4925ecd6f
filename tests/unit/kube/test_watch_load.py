"""How seldom the reflector asks a server that refuses, or that many agents ask at once."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest

from dra_driver.kube.api import Api, Listing
from dra_driver.kube.errors import Forbidden, Gone, TooManyRequests, Unavailable
from dra_driver.kube.resources import PODS, Resource
from dra_driver.kube.watch import Reflector
from dra_driver.util.backoff import Backoff
from tests.unit.kube.fakes import FakeApi, FakeWatch, bookmark
from tests.unit.kube.reflector_run import Told, listing, refuse, run, scripted


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
