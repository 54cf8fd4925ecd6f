"""Who is asked again, and when."""

from __future__ import annotations

import pytest

from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.errors import CardBusy, CardSilent
from dra_driver.hardware.efsmi.runner import EfsmiFailed, EfsmiHung
from dra_driver.model.errors import HardwareError

HUNG = EfsmiHung("`efsmi -L` did not end within 20 s", remedy="look at the kernel log")


def ask(silence: HungCardBreaker, whom: str, error: HardwareError | None = None) -> str:
    """How it ends: the error's class, or nothing."""
    try:
        with silence.asking(whom):
            if error is not None:
                raise error
    except HardwareError as raised:
        return type(raised).__name__
    return ""


@pytest.mark.parametrize(
    ("error", "then"),
    [
        pytest.param(HUNG, "CardSilent", id="hung"),
        pytest.param(CardBusy("has not ended"), "CardSilent", id="an earlier call still runs"),
        pytest.param(EfsmiFailed("ended with 1", 1), "", id="an answer, if a bad one"),
    ],
)
def test_who_did_not_answer_in_a_step_is_not_asked_in_the_next(
    error: HardwareError, then: str
) -> None:
    silence = HungCardBreaker()
    with silence.step():
        ask(silence, "card a", error)
        assert ask(silence, "card a") == "", "what the call did must be seen"
    with silence.step():
        assert ask(silence, "card a") == then
        assert ask(silence, "card b") == ""
    silence.end()
    assert ask(silence, "card a") == ""


def test_outside_of_steps_everybody_is_asked() -> None:
    silence = HungCardBreaker()
    assert ask(silence, "card a", HUNG) == "EfsmiHung"
    assert ask(silence, "card a") == ""


def test_the_error_says_what_was_seen_and_what_to_do() -> None:
    silence = HungCardBreaker()
    with silence.step():
        ask(silence, "card a", HUNG)
    with pytest.raises(CardSilent) as raised, silence.asking("card a"):
        pytest.fail("it was asked")
    assert str(raised.value) == f"card a is not asked again for now: {HUNG}"


def test_who_hung_before_is_not_asked_until_the_end() -> None:
    silence = HungCardBreaker()
    silence.begin({"card a": HUNG})
    with silence.step():
        assert ask(silence, "card a") == "CardSilent"
        assert ask(silence, "card b") == ""
    silence.end()
    assert ask(silence, "card a") == ""
