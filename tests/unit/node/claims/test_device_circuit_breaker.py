"""When a device on which nothing can be made is closed, and when it is open again."""

from __future__ import annotations

import pytest

from dra_driver.model.errors import (
    ForeignCard,
    GcuError,
    HardwareError,
    InvalidValue,
    JournalError,
    Refused,
)
from dra_driver.model.mode import Mode
from dra_driver.node.claims.failures import TRIES
from tests.unit.node.claims.counted import DEVICE, DRS, OTHER, Counted, ref
from tests.unit.node.world import hold


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.mark.parametrize(
    "error",
    [
        HardwareError("efsmi said no"),
        InvalidValue("the card has no such size"),
        ForeignCard("somebody else has divided it"),
    ],
    ids=["the card", "what is asked of it", "who else divides it"],
)
def test_a_device_closes_after_some_tries_for_one_claim(counted: Counted, error: GcuError) -> None:
    counted.fail("a", TRIES - 1, error)
    assert (counted.failures.tripped(), dict(counted.failures.waiting())) == (frozenset(), {})
    counted.fail("a", error=error)
    assert counted.failures.tripped() == {DEVICE}
    waiting = counted.failures.waiting()["uid-a"]
    assert (waiting.owner, waiting.devices, waiting.reason) == (ref("a"), (DRS,), str(error))
    counted.fail("a", 5, error)
    assert counted.told == [DEVICE]


@pytest.mark.parametrize("step", [DEVICE, None], ids=["a step on it", "a step on none of its own"])
@pytest.mark.parametrize(
    "error",
    [JournalError("disk full"), Refused("another claim holds it")],
    ids=["a record that cannot be written", "another holder"],
)
def test_what_says_nothing_of_the_device(
    counted: Counted, error: GcuError, step: str | None
) -> None:
    counted.fail("a", 9, error, device=step)
    assert (counted.failures.tripped(), dict(counted.failures.waiting())) == (frozenset(), {})


def test_a_claim_that_is_unprepared_begins_anew(counted: Counted) -> None:
    counted.fail("a", TRIES - 1)
    counted.failures.on_unprepared(ref("a"), ())
    counted.fail("a", TRIES - 1)
    assert counted.failures.tripped() == frozenset()


def test_the_device_stays_closed_when_the_claim_has_gone(counted: Counted) -> None:
    counted.fail("a", TRIES)
    counted.failures.on_unprepared(ref("a"), (DRS,))
    assert counted.failures.tripped() == {DEVICE}
    assert dict(counted.failures.waiting()) == {}


def test_it_opens_by_itself_and_closes_again_at_the_first_failure(counted: Counted) -> None:
    for name in "abc":
        counted.fail(name, TRIES if name == "a" else 1)
        assert counted.closed_for() == 600
        counted.now += 600
    assert counted.told == [DEVICE] * 3


def test_a_success_opens_it_and_is_no_half_measure(counted: Counted) -> None:
    counted.fail("a", TRIES)
    counted.succeed("a")
    assert (counted.failures.tripped(), dict(counted.failures.waiting())) == (frozenset(), {})
    counted.fail("b", TRIES - 1)
    assert counted.failures.tripped() == frozenset()


def test_what_another_claim_gives_back_may_be_what_was_missing(counted: Counted) -> None:
    counted.fail("a", TRIES)
    counted.failures.on_unprepared(ref("elsewhere"), (hold(1, mode=Mode.DRS),))
    assert counted.failures.tripped() == {DEVICE}
    counted.failures.on_unprepared(ref("neighbour"), (DRS,))
    assert counted.failures.tripped() == frozenset()
    counted.fail("a")
    assert counted.failures.tripped() == {DEVICE}
    counted.failures.on_unprepared(ref("a"), ())
    counted.failures.on_unprepared(ref("another neighbour"), (DRS,))
    assert counted.failures.tripped() == frozenset()


def test_a_claim_that_nobody_asks_for_any_more_is_forgotten(counted: Counted) -> None:
    counted.fail("a", TRIES)
    counted.now = 4000.0
    counted.fail("b", TRIES, device=OTHER)
    assert set(counted.failures.waiting()) == {"uid-b"}
