"""Waiting ends with the value, or with words that help."""

from __future__ import annotations

import pytest

from tests.cluster.errors import WaitTimeout
from tests.cluster.waiting import wait_until


def test_gives_the_first_true_value() -> None:
    answers = iter([None, "", "there", "later"])
    assert wait_until(lambda: next(answers), 60, "it", interval=0) == "there"


def test_awaited_errors_are_no_answer_yet() -> None:
    answers = iter([OSError("refused"), "there"])

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return str(answer)

    assert wait_until(ask, 60, "it", retry_on=(OSError,), interval=0) == "there"


def test_other_errors_are_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 // 0, 60, "it", retry_on=(OSError,))


def test_timeout_names_what_was_awaited_and_seen() -> None:
    with pytest.raises(WaitTimeout, match="the door: not within 0 s; last seen: 0"):
        wait_until(lambda: 0, 0, "the door")
    with pytest.raises(WaitTimeout, match="last seen: a log"):
        wait_until(lambda: False, 0, "the door", seen=lambda: "a log")


def test_timeout_is_chained_to_the_last_error() -> None:
    def refuse() -> bool:
        raise OSError("refused")

    with pytest.raises(WaitTimeout, match="OSError: refused") as caught:
        wait_until(refuse, 0, "the door", retry_on=(OSError,))
    assert isinstance(caught.value.__cause__, OSError)
