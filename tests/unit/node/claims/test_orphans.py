"""Cards that do not let an instance be taken away: no pod waits for that, and nothing is lost."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import Orphan
from dra_driver.model.mode import Mode
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.claims.belongings import cards_with_orphans, orphan_records
from dra_driver.node.claims.failures import TRIES, DeviceCircuitBreaker
from tests.unit.node.claims.test_failures import well
from tests.unit.node.drs_world import DrsWorld, errors, instance, share, tool, whole
from tests.unit.node.effects import Crash, Kill
from tests.unit.node.world import CARDS, Agent, claim, hold, pod

ONE, TWO = map(str, CARDS[:2])
FAULTS = ["card-hangs", "destroy-hangs", "destroy-fails", "efsmi-exit"]
faults = pytest.mark.parametrize("fault", FAULTS)


@pytest.fixture
def told() -> list[str]:
    """What closes devices, in words for people."""
    return []


@pytest.fixture
def world(tmp_path: Path, told: list[str]) -> DrsWorld:
    failures = DeviceCircuitBreaker(
        on_tripped=lambda device, reason: told.append(f"{device}: {reason}")
    )
    world = DrsWorld(tmp_path, tool=tool(), failures=failures)
    world.indexes = lambda card: world.tool.card(str(card)).efsmi_index
    return world


def unprepare(agent: Agent, ref: ClaimRef, times: int = 1) -> list[bool]:
    """Whether each call of the kubelet succeeded."""
    return [agent.preparer.unprepare([ref])[ref.uid] is None for _ in range(times)]


def let_go(world: DrsWorld, agent: Agent, ref: ClaimRef, fault: str = "card-hangs") -> None:
    """The first card fails, and the claim's pod ends."""
    world.tool.set_fault(fault, card=ONE)
    assert unprepare(agent, ref, TRIES) == [False] * (TRIES - 1) + [True]


def remnants(agent: Agent) -> list[str]:
    """The UIDs; of claims nothing else may be on its way."""
    assert set(agent.held().values()) <= {"prepared", "unpreparing"}
    return [uid for uid, state in agent.held().items() if state == "unpreparing"]


def at_rest(world: DrsWorld, agent: Agent) -> None:
    assert (agent.held(), world.files()) == ({}, {})
    for card in (ONE, TWO):
        assert (world.tool.instances(card), world.tool.card(card).virtualization) == ((), "Disable")
    assert agent.journal.snapshot().switched == frozenset()


@faults
def test_a_pod_does_not_wait_for_a_card_that_fails(
    world: DrsWorld, agent: Agent, told: list[str], fault: str
) -> None:
    ref, other = world.api.add(instance("a", 0, 1)), world.api.add(whole("b", 0))
    assert errors(agent, ref) == [""]
    let_go(world, agent, ref, fault)
    [left] = remnants(agent)
    assert isinstance(agent.journal.snapshot().claims[left].owner, Orphan)
    assert world.files() == {}
    assert cards_with_orphans(agent.journal.snapshot()) == {CARDS[0]}
    [text] = told
    assert text.startswith(
        f"drs-0000-0d-00-0: claim team/a has ended, and its device on card {ONE} could not be"
    )
    assert "what claim team/a left" in errors(agent, other)[0]
    world.reconcile(agent)
    assert len(told) == 1
    world.tool.clear_faults()
    world.reconcile(agent)
    at_rest(world, agent)
    assert errors(agent, other) == [""]


@faults
def test_a_card_that_fails_for_a_while_ends_cleanly(
    world: DrsWorld, agent: Agent, told: list[str], fault: str
) -> None:
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    for _ in range(3):  # tries are those in a row
        world.tool.set_fault(fault, card=ONE)
        assert unprepare(agent, ref, TRIES - 1) == [False] * (TRIES - 1)
        world.tool.clear_faults()
        assert unprepare(agent, ref) == [True]
        at_rest(world, agent)
        assert errors(agent, ref) == [""]
    assert told == []


@pytest.mark.parametrize("again", ["card-hangs", "destroy-hangs"])
def test_a_try_waits_once_for_a_card_that_hangs(world: DrsWorld, agent: Agent, again: str) -> None:
    """The kubelet gives up after 45 s, and each call takes its limit of 20 s by default."""
    parts = [share(0, Mode.DRS, 1, f"s{at}", f"r{at}") for at in range(3)]
    world.api.pods["team", "pod"] = pod({"x": "a"}, *((f"x/r{at}",) for at in range(3)))
    ref = world.api.add(claim("a", *parts))
    assert errors(agent, ref) == [""]
    world.tool.set_fault(again, card=ONE)
    hanging = ["-L"] if again == "card-hangs" else ["-L", "--destroy-instance"]
    for _ in range(TRIES):
        world.tool.calls.clear()
        unprepare(agent, ref)
        assert [next(word for word in call if word in hanging) for call in world.tool.calls] == (
            hanging
        )
    assert len(remnants(agent)) == 1
    assert len(agent.journal.snapshot().claims[remnants(agent)[0]].devices) == len(parts)


def test_the_next_pods_of_such_a_card_wait_for_one_try(world: DrsWorld) -> None:
    world.breaker = HungCardBreaker(20.0, clock=lambda: world.now)
    agent = world.start()
    refs = [world.api.add(instance(name, 0, 1)) for name in "abc"]
    assert errors(agent, *refs) == [""] * 3
    let_go(world, agent, refs[0])
    assert [unprepare(agent, ref) for ref in refs[1:]] == [[True], [True]]
    assert len(remnants(agent)) == 3
    world.tool.calls.clear()
    world.now += 20
    findings = world.reconcile(agent)
    assert (len(world.tool.calls), set(findings.unknown)) == (1, {CARDS[0]})
    assert findings.failed == {}, "told at every look"
    world.tool.clear_faults()
    world.now += 20
    world.reconcile(agent)
    at_rest(world, agent)


def test_what_the_claim_had_elsewhere_is_free_at_once(world: DrsWorld, agent: Agent) -> None:
    parts = [share(at, Mode.DRS, 1, f"s{at}", f"r{at}") for at in range(2)]
    world.api.pods["team", "pod"] = pod({"x": "a"}, ("x/r0",), ("x/r1",))
    ref, other = world.api.add(claim("a", *parts)), world.api.add(whole("b", 1))
    assert errors(agent, ref) == [""]
    let_go(world, agent, ref)
    assert cards_with_orphans(agent.journal.snapshot()) == {CARDS[0]}
    assert world.tool.card(TWO).virtualization == "Disable"
    assert errors(agent, other) == [""]
    assert len(world.tool.instances(ONE)) == 1


def test_the_claim_may_be_used_again_meanwhile(world: DrsWorld, agent: Agent) -> None:
    """A claim outlives its pods: the next one's devices are elsewhere, and fail there, too."""
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    let_go(world, agent, ref)
    assert world.api.add(instance("a", 1, 3)) == ref
    assert errors(agent, ref) == [""]
    assert [one.profile for one in world.tool.instances(TWO)] == ["3g.20gb"]
    world.tool.set_fault("card-hangs", card=TWO)
    assert unprepare(agent, ref, TRIES)[-1]
    assert len(remnants(agent)) == 2
    well(world)
    world.reconcile(agent)
    at_rest(world, agent)


def test_a_prepare_that_could_not_be_undone_keeps_no_pod_either(world: DrsWorld) -> None:
    """What the create made has no name in the record; it is known by what was there before."""
    agent = world.start()
    ref = world.api.add(instance("a", 0, 1))
    for fault in ("create-hangs-after-making", "destroy-hangs"):
        world.tool.set_fault(fault, card=ONE)
    assert errors(agent, ref) != [""]
    assert (agent.held(), len(world.tool.instances(ONE))) == ({"uid-a": "intent"}, 1)
    let_go(world, agent, ref)
    well(world)
    world.reconcile(agent)
    at_rest(world, agent)


@pytest.mark.parametrize("healed", [False, True], ids=["still hangs", "answers again"])
def test_the_next_agent_goes_on(world: DrsWorld, agent: Agent, healed: bool) -> None:
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    let_go(world, agent, ref)
    agent.journal.close()
    if healed:
        well(world)
    agent = world.start()
    assert len(remnants(agent)) == (not healed)
    assert unprepare(agent, ref) == [True]
    well(world)
    world.reconcile(agent)
    at_rest(world, agent)


@pytest.mark.parametrize("again", [True, False], ids=["asked again", "pod gone"])
def test_a_kill_at_every_moment_of_letting_go(tmp_path: Path, again: bool) -> None:
    for n in itertools.count(1):
        world = DrsWorld(tmp_path / f"{n}", tool=tool())
        agent = world.start(kill := Kill())
        ref = world.api.add(instance("a", 0, 1))
        assert errors(agent, ref) == [""]
        world.tool.set_fault("card-hangs", card=ONE)
        assert unprepare(agent, ref, TRIES - 1) == [False] * (TRIES - 1)
        kill.n = len(kill.moments) + n
        dead = False
        try:
            assert unprepare(agent, ref) == [True]
        except Crash:
            dead = True
        agent = world.start()
        assert len(world.tool.instances(ONE)) == 1
        other = world.api.add(whole("b", 0))
        assert errors(agent, other) != [""], "given twice"
        if again:
            assert unprepare(agent, ref, TRIES)[-1]
        well(world)
        world.reconcile(agent)
        at_rest(world, agent)
        if not dead:
            break
    assert n > 7


def test_each_has_a_uid_of_its_own() -> None:
    owner = ClaimRef("team", "a", "uid-" + "a" * 59)
    ledger = Ledger()
    for number in range(3):
        for each in orphan_records(ledger, owner, (hold(number, mode=Mode.DRS),)):
            ledger = ledger.apply(each)
    assert len(ledger.claims) == 3
    assert cards_with_orphans(ledger) == set(CARDS[:3])
    assert orphan_records(ledger, owner, ()) == ()
