"""The controller as a whole: which threads it lives by, and that it always ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from controller.allocating.commands import FenceClaim
from controller.app import Controller
from controller.cache.keys import Key
from controller.settings import ControllerSettings
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Unavailable
from dra_driver.selector.parser import source
from tests.unit.controller.allocator.build import claim


class Silent:
    """An API server that takes every call, and answers none before it is `freed`."""

    def __init__(self) -> None:
        self.freed = threading.Event()
        self.called = threading.Event()
        self.answered = threading.Event()

    def __getattr__(self, verb: str) -> Any:
        def call(*args: object, **kwargs: object) -> None:
            self.called.set()
            self.freed.wait(60)
            self.answered.set()
            raise Unavailable(f"the API server did not answer {verb}")

        return call


@pytest.fixture
def silent() -> Iterator[Silent]:
    silent = Silent()
    yield silent
    silent.freed.set()


@pytest.fixture
def controller(silent: Silent) -> Controller:
    settings = ControllerSettings(lease_namespace="default")
    return Controller(settings, cast("Api", silent), CollectorRegistry(), identity="one")


def test_it_stops_in_time_though_nothing_is_answered(
    silent: Silent, controller: Controller
) -> None:
    assert controller.live() == "the worker ended"
    controller.start()
    assert silent.called.wait(60)
    assert controller.live() is None
    controller.stop(within=0.5)
    assert not silent.answered.is_set(), "its calls are still under way"


def test_the_first_pod_does_not_wait_for_the_grammar_of_selectors(controller: Controller) -> None:
    source._parser.cache_clear()
    controller.start()
    controller.stop(within=0.5)
    assert source._parser.cache_info().currsize == 1


def test_without_the_writer_of_events_it_is_not_alive(controller: Controller) -> None:
    controller.start()
    controller._recorder.stop(60)
    assert controller.live() == "the writer of events ended"
    controller.stop(within=0.5)


def test_with_a_step_that_does_not_end_it_is_not_alive(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.start()
    monkeypatch.setattr(controller._worker, "step_seconds", lambda: 119.0)
    assert controller.live() is None
    monkeypatch.setattr(controller._worker, "step_seconds", lambda: 121.4)
    assert controller.live() == "a step of the worker has lasted 121 s"
    controller.stop(within=0.5)


@pytest.mark.parametrize("answered", [True, False], ids=["written", "under way"])
def test_the_lease_is_given_back_only_when_all_is_written(
    controller: Controller, answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[bool] = []
    monkeypatch.setattr(
        controller._elector, "stop", lambda _, *, give_back: given_back.append(give_back)
    )
    if not answered:
        found = claim("c") | {"metadata": {"namespace": "d", "name": "c", "uid": "u"}}
        controller._dispatcher.dispatch(FenceClaim(key=Key.of_claim(found), claims=(found,)))
    controller.stop(within=0.5)
    assert given_back == [answered]
