"""A run of the reflector against scripted answers, with a clock that only waiting moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from dra_driver.kube.api import Api, Change, Listing
from dra_driver.kube.errors import KubeError, Unavailable
from dra_driver.kube.resources import PODS
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from dra_driver.util.backoff import Backoff
from tests.unit.kube.fakes import FakeApi, FakeWatch, pod


class Told:
    """A handler that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_replace(self, items: Sequence[Object]) -> None:
        self.lines.append("replace " + " ".join(each["metadata"]["name"] for each in items))

    def on_not_served(self) -> None:
        self.lines.append("not served")

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
    on_restored: Callable[[], None] = lambda: None,
) -> Time:
    time = Time(budget)
    reflector = Reflector(
        cast("Api", api),
        PODS,
        told,
        on_restored=on_restored,
        backoff=Backoff(first=0.5, longest=30.0, draw=lambda: 0.0),
        wait=time.wait,
        clock=lambda: 1000.0 + time.now,  # a clock begins anywhere
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


def refuse(error: KubeError) -> Callable[[], Listing]:
    def lists() -> Listing:
        raise error

    return lists
