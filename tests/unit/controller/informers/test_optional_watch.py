"""A kind that the server may not serve: it is followed where it is, and waits for nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import cast

import pytest

from controller.informers.optional_watch import RETRY, OptionalReflector
from dra_driver.kube.api import Api, Listing
from dra_driver.kube.decode import WHOLE, Decoder, Typed
from dra_driver.kube.errors import Forbidden, KubeError, NotFound, Unavailable
from dra_driver.kube.resources import (
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    Resource,
)
from dra_driver.util.backoff import Backoff
from tests.unit.kube.fakes import FakeWatch, added, pod
from tests.unit.kube.reflector_run import Time, Told

Answer = Listing | KubeError
BOTH = (DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2)


class Versions:
    """A server that answers lists by the version that is asked for, and watches as scripted."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.watches: list[FakeWatch | KubeError] = []
        self.calls: list[str] = []
        self.decoders: list[Decoder] = []

    def list(self, resource: Resource, *, decoder: Decoder = WHOLE, **_: object) -> Listing:
        self.calls.append(f"list {resource.version}")
        self.decoders.append(decoder)
        answer = self.answers.get(resource.version, NotFound("no such kind"))
        if isinstance(answer, KubeError):
            raise answer
        return answer

    def watch(self, resource: Resource, *, resource_version: str, **_: object) -> FakeWatch:
        self.calls.append(f"watch {resource.version} {resource_version}")
        answer = self.watches.pop(0) if self.watches else Unavailable("the script is over")
        if isinstance(answer, KubeError):
            raise answer
        return answer


def listing(*names: str) -> Listing:
    return Listing(tuple(pod(name, 10) for name in names), "10")


def run(
    api: Versions,
    told: Told,
    *,
    budget: float,
    after: Callable[[], None] = lambda: None,
    decoders: Mapping[Resource, Decoder] = MappingProxyType({}),
) -> tuple[OptionalReflector, Time]:
    """`after` happens during the first wait."""
    time = Time(budget)

    def wait(seconds: float) -> bool:
        stopped = time.wait(seconds)
        if len(time.waits) == 1:
            after()
        return stopped

    reflector = OptionalReflector(
        cast("Api", api),
        BOTH,
        told,
        decoders=decoders,
        backoff=Backoff(first=0.5, longest=30.0, draw=lambda: 0.0),
        wait=wait,
        clock=lambda: time.now,
    )
    time.stop = partial(reflector.stop, 0)
    reflector.run()
    return reflector, time


REFUSALS: dict[str, tuple[KubeError, int, bool]] = {
    "not served": (NotFound("no such kind"), logging.INFO, False),
    "no right to list": (Forbidden("may not list"), logging.WARNING, True),
}


@pytest.mark.parametrize(("error", "level", "is_problem"), REFUSALS.values(), ids=REFUSALS)
def test_a_refused_kind_has_no_objects_and_costs_few_requests(
    caplog: pytest.LogCaptureFixture, error: KubeError, level: int, is_problem: bool
) -> None:
    caplog.set_level(logging.INFO)
    api, told = Versions(v1=error, v1beta2=error), Told()
    reflector, time = run(api, told, budget=3600.0)
    assert told.lines == ["not served"]
    assert reflector.synced.is_set()
    assert set(time.waits) == {RETRY}
    assert len(api.calls) == 2 * 3600 / RETRY
    assert [each.levelno for each in caplog.records] == [level]
    assert (reflector.problem is not None) == is_problem


def test_the_first_version_that_is_served_is_followed() -> None:
    api, told = Versions(v1beta2=listing("a")), Told()
    api.watches = [FakeWatch([added("b", 11)], Unavailable("the connection broke"))]
    run(api, told, budget=0.1)
    assert told.lines == ["replace a", "ADDED b"]
    assert api.calls[:3] == ["list v1", "list v1beta2", "watch v1beta2 10"]


def test_each_version_is_decoded_in_its_own_way() -> None:
    older = Typed({"metadata": {"name": str}})
    api, told = Versions(v1beta2=listing("a")), Told()
    run(api, told, budget=0.1, decoders={DEVICE_TAINT_RULES_V1BETA2: older})
    assert api.decoders == [WHOLE, older]


def test_a_newer_version_is_asked_for_whenever_a_watch_of_an_older_one_has_ended() -> None:
    """An upgraded server may serve the older one on."""
    api, told = Versions(v1beta2=listing("a")), Told()

    class EndsByUpgrade(FakeWatch):
        def close(self) -> None:
            api.answers.update(v1=Listing((pod("c", 11),), "11"))

    api.watches = [EndsByUpgrade([added("b", 11)]), FakeWatch([added("d", 12)])]
    run(api, told, budget=0.1)
    assert told.lines == ["replace a", "ADDED b", "replace c", "ADDED d"]
    assert api.calls[2:5] == ["watch v1beta2 10", "list v1", "watch v1 11"]


def test_a_kind_is_followed_once_the_server_serves_it() -> None:
    api, told = Versions(), Told()
    run(api, told, budget=RETRY + 0.1, after=lambda: api.answers.update(v1=listing("a")))
    assert told.lines == ["not served", "replace a"]


def test_a_kind_that_is_refused_later_has_no_objects_any_more() -> None:
    api, told = Versions(v1=listing("a")), Told()
    api.watches = [Forbidden("may not watch")]
    run(api, told, budget=RETRY, after=lambda: api.answers.update(v1=Forbidden("may not list")))
    assert told.lines == ["replace a", "not served"]


def test_a_server_that_has_just_started_forbids_what_it_allows() -> None:
    """It answers before it has listed roles: what was there before stays."""
    api, told = Versions(v1=listing("a")), Told()
    api.watches = [FakeWatch([added("b", 11)], Unavailable("the connection broke"))]
    api.watches += [Forbidden("may not watch"), FakeWatch([added("c", 12)])]
    answers = iter([Forbidden("may not list")] * 2 + [listing("a", "b")])

    def forbid() -> None:
        lists = api.list

        def starting(resource: Resource, **how: object) -> Listing:
            if resource.version == "v1":
                api.answers.update(v1=next(answers, listing()))
            return lists(resource, **how)  # type: ignore[arg-type]

        api.list = starting  # type: ignore[method-assign]

    run(api, told, budget=14.0, after=forbid)
    assert told.lines == ["replace a", "ADDED b", "replace a b", "ADDED c"]


def test_a_server_that_has_just_started_forbids_what_it_does_not_serve() -> None:
    """That is no other answer: it is asked again soon."""
    api, told = Versions(), Told()

    def forbid() -> None:
        api.answers.update(v1=Forbidden("may not list"))

    _, time = run(api, told, budget=RETRY + 2.0, after=forbid)
    assert told.lines == ["not served"]
    assert time.waits == [RETRY, 1.0, 2.0]


def test_nothing_is_told_before_the_server_has_answered() -> None:
    api, told = Versions(v1=Unavailable("no answer")), Told()
    reflector, time = run(api, told, budget=60.0)
    assert told.lines == []
    assert not reflector.synced.is_set()
    assert time.waits[:3] == [0.5, 1.0, 2.0]
