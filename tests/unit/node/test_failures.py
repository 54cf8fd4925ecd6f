"""When a device on which nothing can be made is closed, and when it is open again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.model.claim import ClaimRef
from dra_driver.model.errors import GcuError, HardwareError, InvalidValue, JournalError
from dra_driver.model.mode import Mode
from dra_driver.node.failures import FIRST_PAUSE, TRIES, Failures
from tests.unit.node.drs_world import DrsWorld, errors, instance, whole
from tests.unit.node.world import CARDS, hold

DRS = hold(0, mode=Mode.DRS, share_id="s", consumed={"size": "1"})
DEVICE, OTHER = DRS.device, hold(1, mode=Mode.DRS).device
ONE = str(CARDS[0])


def ref(name: str) -> ClaimRef:
    return ClaimRef("team", name, f"uid-{name}")


class Counted:
    """Failures at a clock of their own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[str] = []
        self.failures = Failures(
            closed=lambda device, _: self.told.append(device), clock=lambda: self.now
        )

    def fail(
        self, name: str, times: int = 1, error: GcuError | None = None, device: str = DEVICE
    ) -> None:
        for _ in range(times):
            with pytest.raises(GcuError), self.failures.counted(ref(name), (DRS,), device):
                raise error or HardwareError("efsmi said no")

    def succeed(self, name: str) -> None:
        with self.failures.counted(ref(name), (DRS,), DEVICE):
            pass

    def closed_for(self) -> float:
        """Seconds, to the minute."""
        start, minutes = self.now, 0
        while DEVICE in self.failures.closed():
            minutes += 1
            self.now = start + 60 * minutes
        self.now = start
        return 60 * minutes


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.mark.parametrize(
    "error",
    [HardwareError("efsmi said no"), InvalidValue("the card has no such size")],
    ids=["the card", "what is asked of it"],
)
def test_a_device_closes_after_some_tries_for_one_claim(counted: Counted, error: GcuError) -> None:
    counted.fail("a", TRIES - 1, error)
    assert (counted.failures.closed(), dict(counted.failures.waiting())) == (frozenset(), {})
    counted.fail("a", error=error)
    assert counted.failures.closed() == {DEVICE}
    waiting = counted.failures.waiting()["uid-a"]
    assert (waiting.owner, waiting.holds, waiting.reason) == (ref("a"), (DRS,), str(error))
    counted.fail("a", 5, error)
    assert counted.told == [DEVICE]


def test_what_is_made_of_another_device_for_the_same_claim_does_not_count(counted: Counted) -> None:
    for _ in range(TRIES):
        with counted.failures.counted(ref("a"), (DRS,), OTHER):
            pass
        counted.fail("a")
    assert counted.failures.closed() == {DEVICE}


def test_a_record_that_cannot_be_written_says_nothing_of_the_device(counted: Counted) -> None:
    counted.fail("a", 9, JournalError("disk full"))
    assert (counted.failures.closed(), dict(counted.failures.waiting())) == (frozenset(), {})


def test_a_claim_that_is_unprepared_begins_anew(counted: Counted) -> None:
    counted.fail("a", TRIES - 1)
    counted.failures.unprepared(ref("a"), ())
    counted.fail("a", TRIES - 1)
    assert counted.failures.closed() == frozenset()


def test_the_device_stays_closed_when_the_claim_has_gone(counted: Counted) -> None:
    counted.fail("a", TRIES)
    counted.failures.unprepared(ref("a"), (DRS,))
    assert counted.failures.closed() == {DEVICE}
    assert dict(counted.failures.waiting()) == {}


def test_it_opens_by_itself_and_closes_at_the_first_failure_for_twice_as_long(
    counted: Counted,
) -> None:
    pauses = []
    for name in "abcdef":
        counted.fail(name, TRIES if name == "a" else 1)
        pauses.append(counted.closed_for())
        counted.now += pauses[-1]
    assert pauses == [600, 1200, 2400, 4800, 7200, 7200]


def test_a_success_opens_it_and_is_no_half_measure(counted: Counted) -> None:
    counted.fail("a", TRIES)
    counted.succeed("a")
    assert (counted.failures.closed(), dict(counted.failures.waiting())) == (frozenset(), {})
    counted.fail("b", TRIES - 1)
    assert counted.failures.closed() == frozenset()


def test_what_another_claim_gives_back_may_be_what_was_missing(counted: Counted) -> None:
    counted.fail("a", TRIES)
    counted.failures.unprepared(ref("elsewhere"), (hold(1, mode=Mode.DRS),))
    assert counted.failures.closed() == {DEVICE}
    counted.failures.unprepared(ref("neighbour"), (DRS,))
    assert counted.failures.closed() == frozenset()
    counted.fail("a")
    assert counted.failures.closed() == {DEVICE}
    counted.failures.unprepared(ref("a"), ())
    counted.failures.unprepared(ref("another neighbour"), (DRS,))
    assert counted.failures.closed() == frozenset()


def test_a_claim_that_nobody_asks_for_any_more_is_forgotten(counted: Counted) -> None:
    counted.fail("a", TRIES)
    counted.now = 4000.0
    counted.fail("b", TRIES, device=OTHER)
    assert set(counted.failures.waiting()) == {"uid-b"}


@pytest.mark.parametrize(("left", "closed"), [(-1.0, 0), (90.0, 120), (1e9, FIRST_PAUSE)])
def test_what_another_agent_closed_stays_so_for_the_rest(
    counted: Counted, left: float, closed: float
) -> None:
    counted.failures.close(DEVICE, left)
    assert counted.closed_for() == closed
    counted.now += closed
    counted.fail("a")
    assert counted.closed_for() == 2 * FIRST_PAUSE


@pytest.fixture
def world(tmp_path: Path) -> DrsWorld:
    return DrsWorld(tmp_path)


@pytest.mark.parametrize("fault", ["create-fails", "drs-on-refused"])
def test_a_card_that_makes_no_instance(world: DrsWorld, fault: str) -> None:
    agent = world.start()
    world.tool.set_fault(fault)
    failing = world.api.add(instance("a", 0, 1))
    assert all(errors(agent, *[failing] * TRIES))
    assert world.failures.closed() == {DEVICE}
    assert agent.held() == {}
    world.tool.clear_faults()
    assert errors(agent, failing) == [""]
    assert world.failures.closed() == frozenset()


def test_a_card_that_cannot_be_switched_out_of_drs_mode(world: DrsWorld) -> None:
    agent = world.start()
    before, after = world.api.add(instance("a", 0, 1)), world.api.add(whole("b", 0))
    assert errors(agent, before) == [""]
    world.tool.set_fault("drs-off-refused")
    agent.preparer.unprepare([before])
    assert all(errors(agent, *[after] * TRIES))
    assert world.failures.closed() == {hold(0).device}


def test_an_instance_that_cannot_be_made_again(world: DrsWorld) -> None:
    agent = world.start()
    prepared = world.api.add(instance("a", 0, 1))
    assert errors(agent, prepared) == [""]
    world.reboot()
    world.tool.set_fault("create-fails")
    agent = world.start()
    assert all(errors(agent, *[prepared] * (TRIES - 1)))
    assert world.failures.closed() == {DEVICE}
    assert set(world.failures.waiting()) == {"uid-a"}
    agent.preparer.unprepare([prepared])
    assert (agent.held(), dict(world.failures.waiting())) == ({}, {})


def test_a_neighbour_that_ends_lets_the_next_one_try(world: DrsWorld) -> None:
    agent = world.start()
    neighbour, failing = world.api.add(instance("n", 0, 1)), world.api.add(instance("a", 0, 3))
    assert errors(agent, neighbour) == [""]
    world.tool.set_fault("create-fails")
    assert all(errors(agent, *[failing] * TRIES))
    assert world.failures.closed() == {DEVICE}
    agent.preparer.unprepare([neighbour])
    assert world.failures.closed() == frozenset()
