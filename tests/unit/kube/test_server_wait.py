"""Which answers of an API server are waited for before a program serves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.kube.errors import Forbidden, KubeError, NotFound, TooManyRequests, Unavailable
from dra_driver.kube.server_wait import STARTS, ServerWait
from dra_driver.util.backoff import Backoff

AWAY = Unavailable("the API server did not answer GET /version: refused")
BUSY = TooManyRequests("the API server answered 429", retry_after=7.0)
UNAUTHORIZED = KubeError("the API server answered 401 Unauthorized to GET /version", status=401)
FORBIDDEN = Forbidden("the API server answered 403 Forbidden to GET /version", status=403)


def answering(*answers: KubeError | str) -> Callable[[], str]:
    left = [*answers]

    def call() -> str:
        answer = left.pop(0)
        if isinstance(answer, KubeError):
            raise answer
        return answer

    return call


class Waiter:
    """Remembers the waits; the program is stopped during the wait number `stopped_in`."""

    def __init__(self, stopped_in: int = 0) -> None:
        self.seconds: list[float] = []
        self.problems: list[str | None] = []
        self._stopped_in = stopped_in
        backoff = Backoff(first=1.0, draw=lambda: 0.0)
        self.server_wait = ServerWait(self._wait, backoff)

    def _wait(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        self.problems.append(self.server_wait.problem)
        return len(self.seconds) == self._stopped_in


def test_a_server_that_is_away_or_busy_is_waited_for_ever_longer() -> None:
    waiter = Waiter()
    assert waiter.server_wait.until_answered(answering(AWAY, AWAY, BUSY, AWAY, "yes")) == "yes"
    assert waiter.seconds == [1.0, 2.0, 7.0, 8.0]
    waits = [f"waiting for the API server: {error}" for error in (AWAY, AWAY, BUSY, AWAY)]
    assert waiter.problems == waits
    assert waiter.server_wait.problem is None


def test_the_next_call_waits_shortly_again() -> None:
    waiter = Waiter()
    for _ in range(2):
        waiter.server_wait.until_answered(answering(AWAY, "yes"))
    assert waiter.seconds == [1.0, 1.0]


REFUSALS = pytest.mark.parametrize("error", [UNAUTHORIZED, FORBIDDEN], ids=["401", "403"])


@REFUSALS
def test_a_server_that_starts_refuses_for_seconds(error: KubeError) -> None:
    """It answers before it has listed roles and service accounts."""
    waiter = Waiter()
    assert waiter.server_wait.until_answered(answering(AWAY, error, error, "yes")) == "yes"
    assert waiter.problems[1:] == [f"waiting for the API server: {error}"] * 2


@REFUSALS
def test_a_refusal_that_stays_is_raised(error: KubeError) -> None:
    waiter = Waiter()
    with pytest.raises(KubeError) as raised:
        waiter.server_wait.until_answered(answering(*[error] * 9))
    assert raised.value is error
    assert waiter.seconds == [1.0, 2.0, 4.0, 8.0]
    assert sum(waiter.seconds) == STARTS


def test_a_server_that_starts_once_more_may_refuse_once_more() -> None:
    waiter = Waiter()
    starts = [FORBIDDEN] * 4
    found = waiter.server_wait.until_answered(answering(*starts, AWAY, FORBIDDEN, "yes"))
    assert found == "yes"


def test_what_no_wait_helps_against_is_raised_at_once() -> None:
    waiter = Waiter()
    with pytest.raises(NotFound):
        waiter.server_wait.until_answered(answering(NotFound("no such kind", status=404)))
    assert waiter.seconds == []


def test_a_program_that_is_stopped_waits_no_longer() -> None:
    waiter = Waiter(stopped_in=2)
    with pytest.raises(Unavailable):
        waiter.server_wait.until_answered(answering(AWAY, AWAY, "yes"))


def test_a_reason_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    Waiter().server_wait.until_answered(answering(AWAY, AWAY, BUSY, "yes"))
    assert caplog.messages == [f"waiting for the API server: {error}" for error in (AWAY, BUSY)]
