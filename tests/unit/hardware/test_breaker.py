"""Which calls fail at once after a hang, and for how long."""

from __future__ import annotations

import pytest

from dra_driver.hardware.breaker import CardSilent, HungCardBreaker
from dra_driver.hardware.drs.locks import CardBusy
from dra_driver.hardware.efsmi.runner import EfsmiFailed, EfsmiHung
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress

HUNG = EfsmiHung("`efsmi -L` did not end within 20 s", remedy="look at the kernel log")
CARD, OTHER = PciAddress.parse("0000:0d:00.0"), PciAddress.parse("0000:0e:00.0")


class Bench:
    """A breaker with a cooldown of 20 s, and its clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.breaker = HungCardBreaker(20, clock=lambda: self.now)

    def read(self, card: PciAddress | None = CARD, error: HardwareError | None = None) -> str:
        """How the call ends: the error's class, or nothing."""
        try:
            with self.breaker.read(card):
                if error is not None:
                    raise error
        except HardwareError as raised:
            return type(raised).__name__
        return ""


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("error", "then"),
    [
        pytest.param(HUNG, "CardSilent", id="hung"),
        pytest.param(CardBusy("has not ended"), "CardSilent", id="an earlier call still runs"),
        pytest.param(EfsmiFailed("ended with 1"), "", id="failed"),
        pytest.param(None, "", id="answered"),
    ],
)
def test_after_a_read_that_hung_calls_for_the_card_fail_at_once(
    bench: Bench, error: HardwareError | None, then: str
) -> None:
    bench.read(error=error)
    assert bench.read() == then
    assert (bench.read(OTHER), bench.read(None)) == ("", "")


def test_after_the_cooldown_the_next_call_tries_again(bench: Bench) -> None:
    bench.read(error=HUNG)
    bench.now = 19.9
    assert bench.read() == "CardSilent"
    bench.now = 20.0
    assert bench.read(error=HUNG) == "EfsmiHung"
    assert bench.read() == "CardSilent"
    bench.now = 40.0
    assert (bench.read(), bench.read()) == ("", "")


def test_a_hang_that_was_seen_elsewhere_counts(bench: Bench) -> None:
    bench.breaker.on_hung(CARD, HUNG)
    bench.breaker.on_hung(None, HUNG)
    assert (bench.read(), bench.read(None), bench.read(OTHER)) == ("CardSilent", "CardSilent", "")


def test_the_error_names_the_card_the_first_error_and_its_remedy(bench: Bench) -> None:
    bench.read(error=HUNG)
    with pytest.raises(CardSilent) as raised, bench.breaker.read(CARD):
        pytest.fail("the call was made")
    assert str(CARD) in str(raised.value)
    assert HUNG.what in str(raised.value)
    assert raised.value.remedy == "look at the kernel log"
