"""When a device on which nothing can be made is closed, and when it is open again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.model.card import Problem
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import (
    ForeignCard,
    GcuError,
    HardwareError,
    InvalidValue,
    JournalError,
    Refused,
)
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.node.claims.failures import TRIES, DeviceCircuitBreaker, attribute_to
from dra_driver.simulator.state import Instance
from tests.unit.node.drs_world import DrsWorld, errors, instance, share, slices, whole
from tests.unit.node.world import CARDS, World, claim, hold, pod

DRS = hold(0, mode=Mode.DRS, share_id="s", consumed={"size": "1"})
DEVICE, OTHER = DRS.device_name, hold(1, mode=Mode.DRS).device_name
ONE = str(CARDS[0])
FOREIGN = Instance(1, "1g.6gb", "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11", (0,))

Change = Callable[[DrsWorld], None]


def ref(name: str) -> ClaimRef:
    return ClaimRef("team", name, f"uid-{name}")


class Counted:
    """Failures at a clock of their own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[str] = []
        self.failures = DeviceCircuitBreaker(
            on_tripped=lambda device, _: self.told.append(device), clock=lambda: self.now
        )

    def fail(
        self, name: str, times: int = 1, error: GcuError | None = None, device: str | None = DEVICE
    ) -> None:
        for _ in range(times):
            with (
                pytest.raises(GcuError),
                self.failures.attempt(ref(name), (DRS,)),
                attribute_to(device),
            ):
                raise error or HardwareError("efsmi said no")

    def succeed(self, name: str) -> None:
        self.failures.on_prepared(ref(name), [DEVICE])

    def closed_for(self) -> float:
        """Seconds, to the minute."""
        start, minutes = self.now, 0
        while DEVICE in self.failures.tripped():
            minutes += 1
            self.now = start + 60 * minutes
        self.now = start
        return 60 * minutes


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


@pytest.fixture
def world(tmp_path: Path) -> DrsWorld:
    return DrsWorld(tmp_path)


@pytest.mark.parametrize("fault", ["create-fails", "drs-on-refused"])
def test_a_card_that_makes_no_instance(world: DrsWorld, fault: str) -> None:
    agent = world.start()
    world.tool.set_fault(fault)
    failing = world.api.add(instance("a", 0, 1))
    assert all(errors(agent, *[failing] * TRIES))
    assert world.failures.tripped() == {DEVICE}
    assert agent.held() == {}
    world.tool.clear_faults()
    assert errors(agent, failing) == [""]
    assert world.failures.tripped() == frozenset()


def test_a_card_that_cannot_be_switched_out_of_drs_mode(world: DrsWorld) -> None:
    agent = world.start()
    before, after = world.api.add(instance("a", 0, 1)), world.api.add(whole("b", 0))
    assert errors(agent, before) == [""]
    world.tool.set_fault("drs-off-refused")
    agent.preparer.unprepare([before])
    assert all(errors(agent, *[after] * TRIES))
    assert world.failures.tripped() == {hold(0).device_name}


def test_an_instance_that_cannot_be_made_again(world: DrsWorld) -> None:
    agent = world.start()
    prepared = world.api.add(instance("a", 0, 1))
    assert errors(agent, prepared) == [""]
    world.reboot()
    world.tool.set_fault("create-fails")
    agent = world.start()
    assert all(errors(agent, *[prepared] * (TRIES - 1)))
    assert world.failures.tripped() == {DEVICE}
    assert set(world.failures.waiting()) == {"uid-a"}
    agent.preparer.unprepare([prepared])
    assert (agent.held(), dict(world.failures.waiting())) == ({}, {})


def test_a_neighbour_that_ends_lets_the_next_one_try(world: DrsWorld) -> None:
    agent = world.start()
    neighbour, failing = world.api.add(instance("n", 0, 1)), world.api.add(instance("a", 0, 3))
    assert errors(agent, neighbour) == [""]
    world.tool.set_fault("create-fails")
    assert all(errors(agent, *[failing] * TRIES))
    assert world.failures.tripped() == {DEVICE}
    agent.preparer.unprepare([neighbour])
    assert world.failures.tripped() == frozenset()


def gone(world: DrsWorld) -> None:
    """Off the bus."""
    world.tool.set_card(ONE, lost=True)


def divided(world: DrsWorld) -> None:
    """By somebody else."""
    world.tool.set_card(ONE, instances=(FOREIGN,), virtualization="DRS")


def told_divided(world: DrsWorld) -> None:
    """By somebody else, as a look at the card has found."""
    divided(world)
    world.cards.problems[CARDS[0]] = (Problem(TAINT_FOREIGN, "", "has instances"),)


def well(world: DrsWorld) -> None:
    world.tool.clear_faults()
    if FOREIGN in world.tool.instances(ONE):
        world.tool.set_card(ONE, instances=(), virtualization="Disable")
    world.tool.set_card(ONE, lost=False)
    world.cards.problems.clear()


def faulty(*names: str, **keys: str) -> Change:
    def change(world: DrsWorld) -> None:
        for name in names:
            world.tool.set_fault(name, **keys)

    return change


CLAIMS = {
    Mode.WHOLE: whole("a", 0),
    Mode.SHARED: slices("a", 0, 1),
    Mode.DRS: instance("a", 0, 1),
}
CARD_HANGS = faulty("card-hangs", card=ONE)


@pytest.mark.parametrize(
    ("first", "then", "asked"),
    [
        pytest.param(
            faulty("create-reports-failure-but-makes", "destroy-fails"), None, Mode.DRS, id="stays"
        ),
        pytest.param(
            faulty("create-hangs-after-making", "destroy-hangs"), None, Mode.DRS, id="stays, hangs"
        ),
        pytest.param(faulty("create-hangs"), CARD_HANGS, Mode.DRS, id="hangs from a create on"),
        pytest.param(CARD_HANGS, None, Mode.DRS, id="hangs from the start on"),
        pytest.param(
            faulty("create-hangs-after-making"), faulty("efsmi-exit"), Mode.DRS, id="tool fails"
        ),
        pytest.param(faulty("efsmi-exit"), None, Mode.DRS, id="tool fails from the start on"),
        pytest.param(
            faulty("create-fails"), faulty("efsmi-garbage"), Mode.DRS, id="tool says garbage"
        ),
        pytest.param(faulty("efsmi-garbage"), None, Mode.DRS, id="garbage from the start on"),
        pytest.param(gone, None, Mode.DRS, id="lost"),
        pytest.param(faulty("create-hangs-after-making"), gone, Mode.DRS, id="lost later"),
        pytest.param(gone, None, Mode.WHOLE, id="a whole card that is lost"),
        pytest.param(gone, None, Mode.SHARED, id="slices of a card that is lost"),
        pytest.param(divided, None, Mode.DRS, id="somebody else's instance"),
        pytest.param(told_divided, None, Mode.WHOLE, id="a whole card that somebody else divides"),
        pytest.param(
            told_divided, None, Mode.SHARED, id="slices of a card that somebody else divides"
        ),
    ],
)
def test_wherever_in_a_prepare_the_card_fails(
    world: DrsWorld, first: Change, then: Change | None, asked: Mode
) -> None:
    """Each try counts once; when the card is well the next one ends it all."""
    agent = world.start()
    failing = world.api.add(CLAIMS[asked])
    first(world)
    assert errors(agent, failing) != [""]
    if then is not None:
        then(world)
    assert all(errors(agent, *[failing] * (TRIES - 2)))
    assert (world.failures.tripped(), dict(world.failures.waiting())) == (frozenset(), {})
    assert errors(agent, failing) != [""]
    assert world.failures.tripped() == {hold(0, mode=asked).device_name}
    assert set(world.failures.waiting()) == {"uid-a"}
    well(world)
    assert errors(agent, failing) == [""]
    assert (world.failures.tripped(), dict(world.failures.waiting())) == (frozenset(), {})


@pytest.mark.parametrize(
    "shares", [[(0, 1), (0, 5)], [(1, 1), (0, 5)]], ids=["on one card", "on two cards"]
)
def test_what_else_was_made_for_the_claim_is_no_success(
    world: DrsWorld, shares: list[tuple[int, int]]
) -> None:
    """There is no instance of size 5."""
    agent = world.start()
    parts = [
        share(card, Mode.DRS, size, f"s{card}{size}", f"r{at}")
        for at, (card, size) in enumerate(shares)
    ]
    world.api.pods["team", "pod"] = pod({"x": "a"}, ("x/r0",), ("x/r1",))
    failing = world.api.add(claim("a", *parts))
    assert all(errors(agent, *[failing] * TRIES))
    assert world.failures.tripped() == {DEVICE}


@pytest.mark.parametrize("change", [CARD_HANGS, gone], ids=["hangs", "is lost"])
def test_a_prepared_claim_that_waits_for_its_card_after_a_reboot(
    world: DrsWorld, change: Change
) -> None:
    """The kubelet's tries count; not the agent's own, as a container may run with the claim."""
    agent = world.start()
    prepared = world.api.add(instance("a", 0, 1))
    assert errors(agent, prepared) == [""]
    World.reboot(world)  # of a machine that keeps its instances
    change(world)
    for _ in range(TRIES):
        agent = world.start()
    assert (world.failures.tripped(), dict(world.failures.waiting())) == (frozenset(), {})
    assert all(errors(agent, *[prepared] * TRIES))
    assert world.failures.tripped() == {DEVICE}
    well(world)
    agent.preparer.claim_manager.recover(prepared)
    assert (world.failures.tripped(), dict(world.failures.waiting())) == (frozenset(), {})


def test_a_claim_that_runs_does_not_open_what_makes_nothing_for_others(world: DrsWorld) -> None:
    agent = world.start()
    running, failing = world.api.add(instance("n", 0, 1)), world.api.add(instance("a", 0, 1))
    assert errors(agent, running) == [""]
    world.tool.set_fault("create-fails")
    assert all(errors(agent, *[failing] * TRIES))
    assert errors(agent, running) == [""]
    assert world.failures.tripped() == {DEVICE}


def test_an_unprepare_that_fails_is_no_try_of_a_prepare(world: DrsWorld) -> None:
    """It is counted by itself: who has tried both has tried each as often as it is allowed."""
    agent = world.start()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    world.tool.set_fault("destroy-fails")
    for _ in range(TRIES - 1):
        assert agent.preparer.unprepare([ref])[ref.uid] is not None
        assert errors(agent, ref) != [""]
        world.reconcile(agent)
    assert agent.preparer.unprepare([ref])[ref.uid] is None
    assert (world.failures.tripped(), dict(world.failures.waiting())) == (frozenset(), {})


def test_a_card_that_another_claim_holds_has_not_failed(world: DrsWorld) -> None:
    agent = world.start()
    holder, refused = world.api.add(slices("n", 0, 1)), world.api.add(instance("a", 0, 1))
    assert errors(agent, holder) == [""]
    assert all(errors(agent, *[refused] * TRIES))
    assert (world.failures.tripped(), dict(world.failures.waiting())) == (frozenset(), {})
