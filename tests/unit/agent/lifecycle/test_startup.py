"""The start: in order, each step until it succeeds."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from dra_driver.agent.lifecycle.startup import Startup, Step
from dra_driver.model.errors import GcuError
from dra_driver.util.backoff import Backoff


class Steps:
    """Steps that fail as often as they are told; `done` is what was run, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.waits: list[float] = []
        self.problems: list[str | None] = []
        self.on_wait: Callable[[], bool] = lambda: False
        self.startup: Startup

    def step(self, name: str, *failures: str) -> Step:
        left = list(failures)

        def run() -> None:
            self.done.append(name)
            if left:
                raise GcuError(left.pop(0))

        return run

    def run(self, *steps: Step) -> Startup:
        backoff = Backoff(first=1.0, draw=lambda: 0.0)
        self.startup = Startup(steps, backoff=backoff, wait=self._wait)
        self.startup.run()
        return self.startup

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.problems.append(self.startup.problem)
        return self.on_wait()


@pytest.fixture
def steps() -> Steps:
    return Steps()


def test_steps_run_in_order(steps: Steps) -> None:
    startup = steps.run(steps.step("one"), steps.step("two"))
    assert steps.done == ["one", "two"]
    assert startup.done.is_set()
    assert startup.problem is None
    assert startup.ended() is None


def test_a_step_is_repeated_until_it_succeeds_and_only_then_the_next(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        steps.run(
            steps.step("one", "disk full", "disk full", "read-only"), steps.step("two", "no folder")
        )
    assert steps.done == ["one"] * 4 + ["two"] * 2
    assert steps.waits == [1, 2, 4, 1]
    assert steps.problems == ["disk full", "disk full", "read-only", "no folder"]
    assert [record.message for record in caplog.records] == [
        f"cannot start yet: {reason}" for reason in ("disk full", "read-only", "no folder")
    ]


def test_a_problem_that_is_over_is_not_told_during_the_next_step(steps: Steps) -> None:
    told: list[str | None] = []
    steps.run(steps.step("one", "disk full"), lambda: told.append(steps.startup.problem))
    assert told == ["the agent is starting"]


def test_stopped_while_it_waits_it_goes_no_further(steps: Steps) -> None:
    steps.on_wait = lambda: True
    startup = steps.run(steps.step("one", "disk full"), steps.step("two"))
    assert steps.done == ["one"]
    assert not startup.done.is_set()
    assert startup.problem == "disk full"


def test_stopped_during_a_step_it_begins_no_other(steps: Steps) -> None:
    startup = steps.run(lambda: steps.startup.stop(0), steps.step("two"))
    assert steps.done == []
    assert not startup.done.is_set()


def test_a_fault_of_ours_ends_it_and_is_seen(steps: Steps) -> None:
    with pytest.raises(ZeroDivisionError):
        steps.run(lambda: print(1 // 0))
    assert not steps.startup.done.is_set()
