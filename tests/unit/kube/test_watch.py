"""The reflector: what it asks for, what it hands on, and what it says of its problems."""

from __future__ import annotations

import threading
from functools import partial
from typing import cast

import pytest

from dra_driver.kube.api import Api, Change, Listing
from dra_driver.kube.errors import (
    Forbidden,
    Gone,
    KubeError,
    TooManyRequests,
    Unavailable,
)
from dra_driver.kube.resources import PODS
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from dra_driver.util.backoff import Backoff
from tests.unit.kube.fakes import FakeApi, FakeWatch, added, bookmark
from tests.unit.kube.reflector_run import Told, listing, refuse, run, scripted


def test_lists_then_watches_and_goes_on_where_it_was() -> None:
    told = Told()
    api = FakeApi(
        lambda: listing("a", "b"),
        scripted(FakeWatch([added("c", 11), bookmark(20)]), FakeWatch([added("d", 21)])),
    )
    run(api, told, budget=0.1)
    assert told.lines == ["replace a b", "ADDED c", "ADDED d"]
    assert api.calls == ["list", "watch 10", "watch 20", "watch 21"]


def test_an_expired_version_lists_again() -> None:
    told = Told()
    api = FakeApi(
        lambda: listing("a"),
        scripted(FakeWatch([added("b", 11)], Gone("too old")), FakeWatch([added("c", 12)])),
    )
    run(api, told, budget=1.0)
    assert told.lines == ["replace a", "ADDED b", "replace a", "ADDED c"]
    assert api.calls[:4] == ["list", "watch 10", "list", "watch 10"]


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("internal error: cannot decode an event", status=500),
        Unavailable("the watch cache is not initialised", status=503),
        KubeError("bad request", status=400),
    ],
    ids=["500", "503", "400"],
)
def test_a_watch_that_opens_and_sends_an_error_lists_again(error: KubeError) -> None:
    """From the same version it would send the same error for ever (client-go lists, too)."""
    told = Told()
    lists = iter([listing("a"), listing("a", "b", version=20)])
    answers = scripted(FakeWatch([added("b", 11)], error), FakeWatch([added("c", 21)]))
    api = FakeApi(lambda: next(lists), answers)
    waited = run(api, told, budget=0.9)
    assert api.calls == ["list", "watch 10", "list", "watch 20", "watch 21"]
    assert told.lines == ["replace a", "ADDED b", "replace a b", "ADDED c"]
    assert waited.waits[0] == 0.5


def test_a_watch_that_asks_for_patience_goes_on_from_the_last_event() -> None:
    busy = FakeWatch([added("a", 11)], TooManyRequests("slower", retry_after=3.0))
    api = FakeApi(listing, scripted(busy))
    waited = run(api, Told(), budget=3.1)
    assert api.calls == ["list", "watch 10", "watch 11"]
    assert waited.waits[0] == 3.0


def test_after_a_short_silence_it_goes_on_without_a_list() -> None:
    silence = [Unavailable("connection refused")] * 2
    api = FakeApi(listing, scripted(FakeWatch([added("a", 11)]), *silence, FakeWatch([])))
    run(api, Told(), budget=4.0)
    assert api.calls[:5] == ["list", "watch 10", "watch 11", "watch 11", "watch 11"]
    assert api.calls.count("list") == 1


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


def test_reconnected_it_goes_on_at_once_from_where_it_was() -> None:
    """Its watch may be dead without a word, or it may have been waiting for long."""
    dead = FakeWatch([added("b", 11)], stays=True)
    mended = threading.Event()

    def watches(version: str) -> FakeWatch:
        if version == "10":
            return dead
        if not mended.is_set():
            refused.set()
            raise Unavailable("connection refused")
        return FakeWatch([added("c", 12)], stays=True)

    class Awaited(Told):
        def on_event(self, change: Change, obj: Object) -> None:
            super().on_event(change, obj)
            seen[obj["metadata"]["name"]].set()

    refused = threading.Event()
    seen = {"b": threading.Event(), "c": threading.Event()}
    told, api = Awaited(), FakeApi(lambda: listing("a"), watches)
    hours = Backoff(first=7200.0, longest=7200.0)
    reflector = Reflector(cast("Api", api), PODS, told, backoff=hours, draw=lambda: 0.0)
    reflector.start()
    assert seen["b"].wait(60)
    reflector.reconnect()
    assert dead.closed.is_set()
    assert refused.wait(60)
    mended.set()
    reflector.reconnect()
    assert seen["c"].wait(60)
    reflector.stop(5)
    assert not reflector.is_alive()
    assert told.lines == ["replace a", "ADDED b", "ADDED c"]


def test_reconnected_it_waits_as_after_the_first_failure() -> None:
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 4:
            reflector.reconnect()
        if len(waits) == 7:
            reflector.stop(0)
        return False

    api = FakeApi(refuse(Unavailable("no")), scripted())
    backoff = Backoff(draw=lambda: 0.0)
    reflector = Reflector(cast("Api", api), PODS, Told(), backoff=backoff, wait=wait)
    reflector.run()
    assert waits == [0.5, 1.0, 2.0, 4.0, 0.5, 1.0, 2.0]
