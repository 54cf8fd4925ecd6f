"""A card that fails in some step closes its device; others and other reasons do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.model.card import Problem
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.node.claims.failures import TRIES
from dra_driver.simulator.state import InstanceState
from tests.unit.node.claims.counted import DEVICE
from tests.unit.node.drs_world import DrsWorld, errors, instance, share, slices, whole
from tests.unit.node.world import CARDS, Agent, World, claim, hold, pod

ONE = str(CARDS[0])
FOREIGN = InstanceState(1, "1g.6gb", "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11", (0,))

Change = Callable[[DrsWorld], None]


def test_a_card_that_cannot_be_switched_out_of_drs_mode(world: DrsWorld, agent: Agent) -> None:
    before, after = world.api.add(instance("a", 0, 1)), world.api.add(whole("b", 0))
    assert errors(agent, before) == [""]
    world.tool.set_fault("drs-off-refused")
    agent.preparer.unprepare([before])
    assert all("out of DRS mode" in told for told in errors(agent, *[after] * TRIES))
    assert world.failures.tripped() == {hold(0).device_name}
    world.tool.clear_faults()
    assert errors(agent, after) == [""]
    assert world.tool.card(ONE).virtualization == "Disable"


def test_an_instance_that_cannot_be_made_again(world: DrsWorld, agent: Agent) -> None:
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


def test_a_neighbour_that_ends_lets_the_next_one_try(world: DrsWorld, agent: Agent) -> None:
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


def without_nodes(world: DrsWorld) -> None:
    """After a boot before udev is done."""
    world.cards.missing_nodes = ("/dev/gcuctl",)


def well(world: DrsWorld) -> None:
    world.tool.clear_faults()
    world.cards.missing_nodes = ()
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
        pytest.param(faulty("create-fails"), None, Mode.DRS, id="makes no instance"),
        pytest.param(faulty("drs-on-refused"), None, Mode.DRS, id="does not come into DRS mode"),
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
        pytest.param(without_nodes, None, Mode.DRS, id="device nodes"),
        pytest.param(without_nodes, None, Mode.WHOLE, id="device nodes of a whole card"),
        pytest.param(without_nodes, None, Mode.SHARED, id="device nodes of slices"),
        pytest.param(divided, None, Mode.DRS, id="somebody else's instance"),
        pytest.param(told_divided, None, Mode.WHOLE, id="a whole card that somebody else divides"),
        pytest.param(
            told_divided, None, Mode.SHARED, id="slices of a card that somebody else divides"
        ),
    ],
)
def test_wherever_in_a_prepare_the_card_fails(
    world: DrsWorld, agent: Agent, first: Change, then: Change | None, asked: Mode
) -> None:
    """Each try counts once; when the card is well the next one ends it all."""
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
    world: DrsWorld, agent: Agent, shares: list[tuple[int, int]]
) -> None:
    """There is no instance of size 5."""
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
    world: DrsWorld, agent: Agent, change: Change
) -> None:
    """The kubelet's tries count; not the agent's own, as a container may run with the claim."""
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


def test_a_claim_that_runs_does_not_open_what_makes_nothing_for_others(
    world: DrsWorld, agent: Agent
) -> None:
    running, failing = world.api.add(instance("n", 0, 1)), world.api.add(instance("a", 0, 1))
    assert errors(agent, running) == [""]
    world.tool.set_fault("create-fails")
    assert all(errors(agent, *[failing] * TRIES))
    assert errors(agent, running) == [""]
    assert world.failures.tripped() == {DEVICE}


def test_an_unprepare_that_fails_is_no_try_of_a_prepare(world: DrsWorld, agent: Agent) -> None:
    """It is counted by itself: who has tried both has tried each as often as it is allowed."""
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    world.tool.set_fault("destroy-fails")
    for _ in range(TRIES - 1):
        assert agent.preparer.unprepare([ref])[ref.uid] is not None
        assert errors(agent, ref) != [""]
        world.reconcile(agent)
    assert agent.preparer.unprepare([ref])[ref.uid] is None
    assert (world.failures.tripped(), dict(world.failures.waiting())) == (frozenset(), {})


@pytest.mark.parametrize("mode", CLAIMS)
def test_a_pod_ends_without_the_device_nodes_of_its_card(
    world: DrsWorld, agent: Agent, mode: Mode
) -> None:
    prepared = world.api.add(CLAIMS[mode])
    assert errors(agent, prepared) == [""]
    without_nodes(world)
    assert agent.preparer.unprepare([prepared]) == {"uid-a": None}
    assert agent.held() == {}


def test_a_cdi_file_that_is_there_keeps_the_nodes_that_are_missing(
    world: DrsWorld, agent: Agent
) -> None:
    """A container that restarts gets an error from its runtime, and not fewer nodes."""
    assert errors(agent, world.api.add(CLAIMS[Mode.WHOLE])) == [""]
    before = world.files()
    without_nodes(world)
    agent = world.start()
    assert world.files() == before
