"""A kill at every effect of every mode, efsmi's calls among them, and of the recovery from it.

Judged from outside: the simulator's cards, the CDI directory, and what the journal says is held.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from tests.seed import DAY
from tests.unit.node.drs_world import DrsWorld, instance, share, slices, tool, whole
from tests.unit.node.effects import Crash, Kill
from tests.unit.node.world import CARDS, Agent, claim, pod

EVERY: Final = 6
"""So many days kill at every moment of a recovery."""

Step = Callable[[DrsWorld, Agent, list[ClaimRef]], object]
Claims = Callable[[], list[dict[str, Any]]]


def prepare(world: DrsWorld, agent: Agent, refs: list[ClaimRef]) -> object:
    return agent.preparer.prepare(refs)


def unprepare(world: DrsWorld, agent: Agent, refs: list[ClaimRef]) -> object:
    return agent.preparer.unprepare(refs)


def reconcile(world: DrsWorld, agent: Agent, refs: list[ClaimRef]) -> object:
    world.reconcile(agent)
    return {}


def two_requests() -> list[dict[str, Any]]:
    results = [share(0, Mode.DRS, 1, "left", "l"), share(0, Mode.DRS, 3, "right", "r")]
    return [claim("a", *results)]


KINDS: dict[str, Claims] = {
    "whole": lambda: [whole("a", 0), whole("b", 1)],
    "shared": lambda: [slices("a", 0, 2), slices("b", 0, 3)],
    "drs": lambda: [instance("a", 0, 3)],
    "two requests": two_requests,
}


def new_world(root: Path, kind: str, **keys: Any) -> tuple[DrsWorld, list[ClaimRef]]:
    world = DrsWorld(root, tool=tool(**keys))
    refs = [world.api.add(each) for each in KINDS[kind]()]
    names = [ref.name for ref in refs]
    uses = [("a/l",), ("a/r",)] if kind == "two requests" else [(name,) for name in names]
    world.api.pods["team", "pod"] = pod({name: name for name in names}, *uses)
    return world, refs


def ready(world: DrsWorld, refs: list[ClaimRef], step: Step) -> None:
    """Bring the node to where the step begins."""
    if step is prepare:
        return
    succeed(world.start().preparer.prepare(refs))
    if step is reconcile:
        world.reboot()


def killed(world: DrsWorld, refs: list[ClaimRef], step: Step, n: int) -> bool:
    """Run the step and kill it at its n-th moment; say whether it was killed."""
    ready(world, refs, step)
    agent = world.boot(kill := Kill())
    if step is reconcile:
        agent.journal.open()
    else:
        agent.recover()
    kill.n = len(kill.moments) + n
    try:
        step(world, agent, refs)
    except Crash:
        return True
    return False


def succeed(answers: object) -> None:
    assert isinstance(answers, dict)
    assert not [str(answer) for answer in answers.values() if isinstance(answer, GcuError)]


def check(world: DrsWorld, agent: Agent) -> None:
    """The invariants at rest."""
    ledger = agent.journal.snapshot()
    held = agent.held()
    assert set(held.values()) <= {"prepared"}
    assert set(world.files()) == {f"gcu.enflame.com-claim-{uid}.json" for uid in held}
    for address in CARDS[:2]:
        card = world.tool.card(str(address))
        owned = sorted(one.uuid or "" for one in ledger.instances(address))
        assert sorted(there.uuid for there in card.instances) == owned
        for uuid in owned:
            assert sum(f"DRS-{uuid}" in text for text in world.files().values()) == 1
        modes = {hold.mode for _, hold in ledger.holders_of(address)}
        assert (card.virtualization == "DRS") == (modes == {Mode.DRS})
        assert len(modes) <= 1


@pytest.mark.parametrize("again", [prepare, unprepare], ids=lambda step: f"then {step.__name__}")
@pytest.mark.parametrize("step", [prepare, unprepare, reconcile], ids=lambda step: step.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_at_every_moment_is_recovered_from(
    fast_path: Path, kind: str, step: Step, again: Step
) -> None:
    for n in itertools.count(1):
        world, refs = new_world(fast_path / f"{n}", kind)
        dead = killed(world, refs, step, n)
        agent = world.start()
        world.reconcile(agent)
        check(world, agent)
        succeed(again(world, agent, refs))
        check(world, agent)
        uids = {ref.uid for ref in refs}
        assert set(agent.held()) == (uids if again is prepare else set())
        if not dead:
            break
    assert n > {"whole": 4, "shared": 4, "drs": 20, "two requests": 25}[kind]


@pytest.mark.parametrize("step", [prepare, unprepare], ids=lambda step: step.__name__)
def test_a_kill_in_the_recovery_from_a_kill(fast_path: Path, step: Step) -> None:
    """Every moment of the step, and of each recovery one in `EVERY`, by turns."""
    recoveries = 0
    for n in itertools.count(1):
        dead = True
        for deaths in itertools.count(1 + (n + DAY) % EVERY, EVERY):
            world, refs = new_world(fast_path / f"{n}-{deaths}", "drs")
            dead = killed(world, refs, step, n)
            kill = Kill(deaths)
            try:
                world.reconcile(world.start(kill))
            except Crash:
                recoveries += 1
            else:
                break
            agent = world.start()
            world.reconcile(agent)
            check(world, agent)
        if not dead:
            break
    assert recoveries > 40


@pytest.mark.parametrize("survive", [False, True], ids=["forgets", "keeps"])
@pytest.mark.parametrize("step", [prepare, unprepare], ids=lambda step: step.__name__)
def test_a_kill_followed_by_a_reboot(fast_path: Path, step: Step, survive: bool) -> None:
    for n in itertools.count(1):
        world, refs = new_world(fast_path / f"{n}", "two requests", instancesSurviveReboot=survive)
        dead = killed(world, refs, step, n)
        world.reboot()
        agent = world.start()
        world.reconcile(agent)
        check(world, agent)
        succeed(prepare(world, agent, refs))
        check(world, agent)
        if not dead:
            break


def test_a_kill_while_a_card_is_examined(fast_path: Path) -> None:
    for n in itertools.count(1):
        world = DrsWorld(fast_path / f"{n}")
        kill = Kill()
        agent = world.start(kill)
        kill.n = len(kill.moments) + n
        try:
            assert world.profile_prober(agent).run(world.cards.all())
        except Crash:
            again = world.start()
            world.reconcile(again)
            check(world, again)
            world.profile_prober(again).run(world.cards.all())
            assert world.tables.table(world.cards.all()[0]) is not None
            check(world, again)
        else:
            break
    assert n > 20


def test_the_points_of_an_instances_life(fast_path: Path) -> None:
    """The list that docs/dev/drs.md gives."""
    world = DrsWorld(fast_path)
    agent = world.start(effects := Kill())
    ref = world.api.add(instance("a", 0, 1))
    begin = len(effects.moments)
    agent.preparer.prepare([ref])
    middle = len(effects.moments)
    agent.preparer.unprepare([ref])

    def points(moments: list[str]) -> list[str]:
        return [name.removeprefix("before ") for name in moments if name.startswith("before")]

    written = ["journal.append", "journal.sync"]
    assert points(effects.moments[begin:middle]) == [
        # Which index the card has, and three lists, as the tool's form is not known yet.
        *["efsmi.call"] * 4,
        *written,
        *["efsmi.call"] * 2,  # DRS on, profiles
        *["cache.write", "cache.rename"],
        *["efsmi.call"] * 2,  # create, list
        *written,
        *["cdi.write", "cdi.rename"],
    ]
    assert points(effects.moments[middle:]) == [
        *written,
        "cdi.remove",
        *["efsmi.call"] * 5,  # list, destroy, list; list, DRS off
        *written,
    ]
